import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"

it("every law has a clause and a test, and specs/laws.md says which", () => {
  const script = fileURLToPath(new URL("table.mjs", import.meta.url))
  const { status, stderr } = spawnSync(process.execPath, [script, "--check"], { encoding: "utf8" })
  assert.strictEqual(stderr, "")
  assert.strictEqual(status, 0)
})
