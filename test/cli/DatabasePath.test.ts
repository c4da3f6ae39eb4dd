import { assert, describe, it } from "@effect/vitest"
import { databasePath } from "../../packages/cli/src/DatabasePath.ts"

describe("DatabasePath", () => {
  it("CL-20: DAYBOOK_DB, else XDG_DATA_HOME, else the home folder", () => {
    const path = (env: Record<string, string>) => databasePath(env, "/home/ada", "/work")
    assert.strictEqual(path({ DAYBOOK_DB: "/x/d.sqlite", XDG_DATA_HOME: "/data" }), "/x/d.sqlite")
    assert.strictEqual(path({ DAYBOOK_DB: "d.sqlite" }), "/work/d.sqlite")
    assert.strictEqual(path({ DAYBOOK_DB: ":memory:" }), ":memory:")
    assert.strictEqual(path({ XDG_DATA_HOME: "/data" }), "/data/daybook/daybook.sqlite")
    assert.strictEqual(path({ XDG_DATA_HOME: "relative" }), "/home/ada/.local/share/daybook/daybook.sqlite")
    assert.strictEqual(path({ DAYBOOK_DB: "", XDG_DATA_HOME: "" }), "/home/ada/.local/share/daybook/daybook.sqlite")
  })
})
