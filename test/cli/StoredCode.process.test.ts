/** V8's compiled code beside the files of the bundle, as a process that starts finds it. */
import { assert, beforeAll, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { dirname } from "node:path"
import { build } from "./support/Bundle.ts"

beforeAll(() => void build())

/** Loads each command's bundle; prints how many files that loads, and those of them whose stored code V8 rejects. */
const program = `
const { loaded, load } = require("./bin/load.js")
for (const name of ["reader.js", "ctx.js", "main.js"]) load(process.cwd() + "/dist/bundle/" + name)
const rejected = [...loaded].flatMap(([file, { script }]) => (script.cachedDataRejected === false ? [] : [file]))
console.log(JSON.stringify({ rejected, loaded: loaded.size }))`

it("CL-60: V8 accepts the stored code of every file that a command loads at its start", () => {
  const cwd = dirname(dirname(build().bin))
  const { stderr, stdout } = spawnSync(process.execPath, ["-e", program], { cwd, env: {}, encoding: "utf8" })
  assert.strictEqual(stderr, "")
  const { loaded, rejected } = JSON.parse(stdout)
  assert.deepStrictEqual(rejected, [])
  assert.isAbove(loaded, 20)
})
