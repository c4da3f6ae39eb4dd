/** Pictures in prompts of the command, where `sharp` is installed beside it and where it is not. */
import { assert, beforeAll, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { picture } from "../support/Pictures.ts"
import { build } from "./support/Bundle.ts"
import { jsonLines, place } from "./support/Process.ts"

beforeAll(() => void build())

/** Makes the package look as if it were not installed. */
const absent = `const { Module } = require("node:module")
const resolve = Module._resolveFilename
Module._resolveFilename = (name, ...rest) => {
  if (name === "sharp") throw Object.assign(new Error("Cannot find module"), { code: "MODULE_NOT_FOUND" })
  return resolve(name, ...rest)
}
`

const Admitted = Schema.Struct({
  data: Schema.Struct({
    prompt: Schema.Struct({
      expansion: Schema.Struct({
        parts: Schema.Array(Schema.Struct({ kind: Schema.String, note: Schema.optional(Schema.String) }))
      })
    })
  })
})

it.scopedLive(
  "CL-182, CL-60, PC-2: the command brings pictures into form with the decoder, and names the limit without",
  () =>
    Effect.gen(function* () {
      const here = yield* place
      const preload = join(here.root, "absent.cjs")
      writeFileSync(preload, absent)
      writeFileSync(join(here.cwd, "wide.png"), yield* picture({ width: 8_400, height: 42 }))
      const admitted = Effect.fnUntraced(function* (name: string, env: Readonly<Record<string, string>>) {
        const ended = yield* here.run(["prompt", "--session", name, "--no-run", "see @wide.png"], { env })
        assert.strictEqual(ended.code, 0, ended.stderr)
        const events = jsonLines((yield* here.run(["events", name, "--json"])).stdout)
        const found = events.find(({ type }) => type === "session.next.prompt.admitted")
        return { found, parts: Schema.decodeUnknownSync(Admitted)(found).data.prompt.expansion.parts }
      })
      const decoded = yield* admitted("with", {})
      assert.deepStrictEqual(decoded.parts, [{ kind: "media", note: "scaled from 8400x42 to 2000x10 pixels" }])
      const without = yield* admitted("without", { NODE_OPTIONS: `--require ${preload}` })
      assert.deepStrictEqual(without.parts, [{ kind: "failure" }])
      assert.include(JSON.stringify(without.found), "8400x42 pixels, and providers take 8000 along an edge")
    })
)
