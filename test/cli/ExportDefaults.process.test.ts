import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "./support/Bundle.ts"
import { place } from "./support/Process.ts"

beforeAll(() => void build())

describe("export", () => {
  it.scopedLive("CL-834: export takes the last session here, and the format that the file's name says", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["prompt", "The first"])
      yield* here.run(["prompt", "The second"])
      for (const [name, begins] of [
        ["a.md", /^# /],
        ["a.html", /^<!doctype html>/i]
      ] as const) {
        const { code } = yield* here.run(["export", "--out", name])
        assert.strictEqual(code, 0)
        const text = readFileSync(join(here.cwd, name), "utf8")
        assert.match(text, begins)
        assert.include(text, "The second")
        assert.notInclude(text, "The first")
      }
      const short = yield* here.run(["export", "--format", "md"])
      assert.match(short.stdout, /^# The second/)
      const file = yield* here.run(["export", "b.md"])
      assert.deepStrictEqual([file.code, file.stderr], [2, "daybook: write to a file with --out b.md\n"])
      const unnamed = yield* here.run(["export", "--out", "a.jsonl"])
      assert.strictEqual(unnamed.code, 2)
      assert.include(unnamed.stderr, "say what to write: --format")
    })
  )
})
