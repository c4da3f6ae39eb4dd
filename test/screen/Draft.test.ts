/** Method: drafts in a data folder of their own; a process that has ended stands for a crash. */
import { afterAll, assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, renameSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Draft from "../../packages/cli/src/screen/Draft.ts"

const root = mkdtempSync(join(tmpdir(), "daybook-draft-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const env = { XDG_DATA_HOME: root }
const folder = join(root, "daybook", "drafts")
const files = () => readdirSync(folder)

/** Gives the files to a process that has ended. */
const crash = () => {
  const { pid } = spawnSync(process.execPath, ["-e", "0"])
  for (const name of files()) renameSync(join(folder, name), join(folder, name.replace(/\d+$/, String(pid))))
}

describe("the half-written prompt", () => {
  it("SC-515: is a private file while it is written, and none afterwards", () => {
    const draft = Draft.make("/work/a", env)
    draft.keep("half\na prompt", "ses_1")
    const [name = ""] = files()
    assert.strictEqual(statSync(join(folder, name)).mode & 0o777, 0o600)
    draft.keep("", undefined)
    assert.deepStrictEqual(files(), [])
  })

  it("SC-515: is that of its folder, once, after its process has gone", () => {
    Draft.make("/work/a", env).keep("half\na prompt", "ses_1")
    assert.strictEqual(Draft.recover("/work/a", env).text, "")
    crash()
    assert.strictEqual(Draft.recover("/work/b", env).text, "")
    const { sessionID, taken, text } = Draft.recover("/work/a", env)
    assert.deepStrictEqual([text, sessionID], ["half\na prompt", "ses_1"])
    assert.strictEqual(files().length, 1)
    taken()
    assert.strictEqual(Draft.recover("/work/a", env).text, "")
  })
})
