/** Which session is meant, at a terminal: several are offered with numbers. Also what doctor says of a folder of somebody else. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { chmodSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { lacks } from "../support/Parts.ts"
import { build } from "./support/Bundle.ts"
import { jsonLines, place } from "./support/Process.ts"

beforeAll(() => void build())

const terminal = { columns: 200, rows: 30 }

const prepared = Effect.gen(function* () {
  const here = yield* place
  yield* here.run(["prompt", "--no-run", "same"])
  yield* here.run(["prompt", "--no-run", "same"])
  const ids = jsonLines((yield* here.run(["sessions", "--json"])).stdout).map(({ id }) => String(id))
  return { here, ids }
})

describe("which session", () => {
  for (const [words, why] of [
    [["show", "same"], "a title of two sessions"],
    [["rename"], "a missing word"]
  ] as const) {
    it.scopedLive(`CL-775: ${why} asks for one by its number`, () =>
      Effect.gen(function* () {
        const { here, ids } = yield* prepared
        const running = yield* here.start(words, { terminal })
        const shown = yield* running.until("stdout", (text) => text.includes("which one? [1-2]"))
        assert.isBelow(shown.indexOf(ids[0] ?? "none"), shown.indexOf(ids[1] ?? "none"))
        yield* running.type("2\r")
        const { stdout } = yield* running.ended
        const after = stdout.slice(stdout.indexOf("which one?"))
        if (words[0] === "show") assert.include(after, ids[1] ?? "none")
        else assert.match(after, /TITLE is missing/)
      })
    )
  }

  it.scopedLive("CL-775: without a choice the command refuses, as without a terminal", () =>
    Effect.gen(function* () {
      const { here } = yield* prepared
      const running = yield* here.start(["show", "same"], { terminal })
      yield* running.until("stdout", (text) => text.includes("which one? [1-2]"))
      yield* running.type("\r")
      assert.strictEqual((yield* running.ended).code, 2)
    })
  )
})

describe.skipIf(lacks("root"))("doctor", () => {
  it.scopedLive("CL-176: a database that cannot be made because of its folder is an error", () =>
    Effect.gen(function* () {
      const here = yield* place
      chmodSync(here.root, 0o755)
      const folder = join(here.root, "locked")
      mkdirSync(folder, { mode: 0o755 })
      const env = { HOME: folder, DAYBOOK_DB: join(folder, "data", "daybook.sqlite") }
      const { code, stdout } = yield* here.run(["doctor"], { uid: 65_534, gid: 65_534, env, cwd: folder })
      assert.match(stdout, /error\s+database\s+\S+ cannot be created: its folder cannot be written/)
      assert.strictEqual(code, 6)
    })
  )
})
