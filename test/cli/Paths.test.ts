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

  it("CL-801: a database of PostgreSQL has a folder, named by host, port, database and schema alone", () => {
    const path = (database: string) =>
      databasePath({ DAYBOOK_DB: database, XDG_DATA_HOME: "/data" }, "/home/ada", "/work")
    const folder = path("postgres://ada:secret@db.example/book")
    assert.match(folder, /^\/data\/daybook\/postgres\/[0-9a-f]{16}\/database$/)
    assert.strictEqual(path("postgresql://bob@db.example:5432/book?schema=daybook"), folder)
    for (const other of ["db.example:5433/book", "db2.example/book", "db.example/two", "db.example/book?schema=two"]) {
      assert.notStrictEqual(path(`postgres://ada:secret@${other}`), folder)
    }
    assert.strictEqual(path("postgres://ada:secret@/book?host=/run"), path("postgresql://bob@/book?host=/run"))
    for (const none of ["postgres:secret", "postgres://ada@/book", "mysql://db.example/book"]) {
      assert.strictEqual(path(none), "/data/daybook/postgres/unusable/database")
    }
    const env = { DAYBOOK_DB: "postgres://db.example/book", XDG_DATA_HOME: "/data" }
    assert.strictEqual(rootPath(env, "/home/ada", "/work"), folder.replace(/database$/, "ctx"))
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
