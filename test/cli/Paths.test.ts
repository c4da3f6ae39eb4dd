import { assert, describe, it } from "@effect/vitest"
import { databasePath, rootPath } from "../../packages/cli/src/support/Paths.ts"

describe("Paths", () => {
  it("CL-20: DAYBOOK_DB, else XDG_DATA_HOME, else the home folder", () => {
    const path = (env: Record<string, string>) => databasePath(env, "/home/ada", "/work")
    assert.strictEqual(path({ DAYBOOK_DB: "/x/d.sqlite", XDG_DATA_HOME: "/data" }), "/x/d.sqlite")
    assert.strictEqual(path({ DAYBOOK_DB: "d.sqlite" }), "/work/d.sqlite")
    assert.strictEqual(path({ DAYBOOK_DB: ":memory:" }), ":memory:")
    assert.strictEqual(path({ XDG_DATA_HOME: "/data" }), "/data/daybook/daybook.sqlite")
    assert.strictEqual(path({ XDG_DATA_HOME: "relative" }), "/home/ada/.local/share/daybook/daybook.sqlite")
    assert.strictEqual(path({ DAYBOOK_DB: "", XDG_DATA_HOME: "" }), "/home/ada/.local/share/daybook/daybook.sqlite")
  })

  it("CL-101: the files lie in DAYBOOK_ROOT, else beside the database", () => {
    const path = (env: Record<string, string>) => rootPath(env, "/home/ada", "/work")
    assert.strictEqual(path({ DAYBOOK_ROOT: "/ctx", DAYBOOK_DB: "/x/d.sqlite" }), "/ctx")
    assert.strictEqual(path({ DAYBOOK_ROOT: "files" }), "/work/files")
    assert.strictEqual(path({ DAYBOOK_ROOT: "", DAYBOOK_DB: "/x/d.sqlite" }), "/x/ctx")
    assert.strictEqual(path({ XDG_DATA_HOME: "/data" }), "/data/daybook/ctx")
    assert.strictEqual(path({ DAYBOOK_DB: ":memory:" }), "/home/ada/.local/share/daybook/ctx")
  })
})
