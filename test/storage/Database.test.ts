/** Opening a database: how it is set, and what is refused, in which words, with nothing changed. */
import { chmodSync, existsSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Effect, Exit, Fiber, Layer, Scope } from "effect"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Database from "../../packages/log/src/storage/Database.ts"
import * as Transaction from "../../packages/log/src/storage/Transaction.ts"
import { childProgram, startChild } from "../support/Child.ts"
import { logAt, stores, temporaryDatabase, temporaryFolder } from "../support/Database.ts"
import { heldAppend, rounds } from "../support/Holding.ts"
import { begin, readAll, renamed, session } from "../support/Logs.ts"

const refusal = (filename: string) => Effect.flip(Effect.scoped(Layer.build(Database.layer({ filename }))))

const open = <A, E>(filename: string, use: Effect.Effect<A, E, SqlClient.SqlClient | EventLog | Database.ReadSql>) =>
  Effect.provide(use, logAt(filename))

for (const [store, layer] of Object.entries(stores)) {
  it.layer(layer)(`an open database, ${store}`, (it) => {
    it.effect("ST-3: commits are synced, keys enforced, freed pages given back, the file marked as ours", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const value = (name: string) => Effect.map(sql.unsafe(`PRAGMA ${name}`).values, (rows) => rows[0]?.[0])
        assert.strictEqual(yield* value("journal_mode"), store === "file" ? "wal" : "memory")
        assert.strictEqual(yield* value("synchronous"), 2)
        assert.strictEqual(yield* value("foreign_keys"), 1)
        assert.strictEqual(yield* value("auto_vacuum"), 2)
        assert.strictEqual(yield* value("application_id"), Database.applicationID)
      })
    )
  })
}

it.effect(
  "ST-28: more texts than a connection keeps statements all run, and one that failed to prepare may run later",
  () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const later = sql`SELECT n FROM later`
      assert.include(String((yield* Effect.flip(later)).cause), "no such table")
      for (const pass of [1, 2]) {
        for (let n = 0; n < 500; n++) assert.deepStrictEqual(yield* sql.unsafe(`SELECT ${n} AS n`), [{ n }], `${pass}`)
      }
      yield* sql`CREATE TABLE later (n INTEGER) STRICT`
      yield* sql`INSERT INTO later VALUES (7)`
      assert.deepStrictEqual(yield* later, [{ n: 7 }])
    }).pipe(Effect.provide(logAt(":memory:")))
)

it.scopedLive("ST-2: the reading connection reads while a write transaction is open, and cannot write", () =>
  Effect.gen(function* () {
    yield* open(
      yield* temporaryDatabase,
      Effect.gen(function* () {
        const [log, sql, read, id] = [yield* EventLog, yield* SqlClient.SqlClient, yield* Database.ReadSql, session()]
        yield* begin(id)
        const seen = yield* Transaction.immediately(sql)(
          Effect.zipRight(sql`UPDATE session SET title = 'not yet'`, Effect.exit(log.read({ sessionID: id })))
        )
        assert.isTrue(Exit.isSuccess(seen))
        const written = yield* Effect.flip(read`UPDATE session SET title = 'no'`)
        assert.include(String(written.cause), "readonly")
      })
    )
  })
)

it.scopedLive("ST-4: a write transaction takes the write lock at its start", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    yield* open(
      filename,
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const other = new Sqlite(filename, { timeout: 0 })
        const busy = yield* Transaction.immediately(sql)(
          Effect.sync(() => attempt(() => other.exec("BEGIN IMMEDIATE")))
        )
        assert.strictEqual(busy, "SQLITE_BUSY")
        assert.strictEqual(
          attempt(() => other.exec("BEGIN IMMEDIATE; ROLLBACK")),
          "done"
        )
        other.close()
      })
    )
  })
)

const attempt = (run: () => unknown): string => {
  try {
    run()
    return "done"
  } catch (error) {
    return error instanceof Sqlite.SqliteError ? error.code : String(error)
  }
}

it.scopedLive("ST-5: what was appended is there after closing and opening again; opening twice changes nothing", () =>
  Effect.gen(function* () {
    const [filename, id] = [yield* temporaryDatabase, session()]
    const stored = yield* open(filename, begin(id, 10))
    const bytes = readFileSync(filename)
    assert.deepStrictEqual(yield* open(filename, readAll(id)), stored)
    assert.isTrue(readFileSync(filename).equals(bytes))
    assert.isFalse(existsSync(`${filename}-wal`))
  })
)

/** The statements that make a database of this build, as another process runs them. */
const creation = Effect.gen(function* () {
  const model = yield* temporaryDatabase
  yield* open(model, Effect.void)
  const made = new Sqlite(model)
  const tables = made
    .prepare<[], { readonly sql: string }>(
      "SELECT sql FROM sqlite_master WHERE sql NOT NULL AND name NOT LIKE 'sqlite%'"
    )
    .all()
  const rows = made
    .prepare<[], { readonly migration_id: number; readonly name: string }>("SELECT * FROM migration")
    .all()
  made.close()
  return [
    `PRAGMA application_id = ${Database.applicationID}`,
    ...tables.map(({ sql }) => sql),
    "INSERT INTO log_identity VALUES (1, '00000000')",
    ...rows.map(
      ({ migration_id, name }) => `INSERT INTO migration (migration_id, name) VALUES (${migration_id}, '${name}')`
    )
  ].join(";\n")
})

/** Calls back once, before the first statement that holds the text is prepared by whichever connection. */
const beforeStatement = (text: string, callback: () => void) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const { prepare } = Sqlite.prototype
      let waits = true
      Sqlite.prototype.prepare = function (this: Sqlite.Database, source: string) {
        if (waits && source.includes(text)) {
          waits = false
          callback()
        }
        return prepare.call(this, source)
      } as typeof prepare
      return prepare
    }),
    (prepare) => Effect.sync(() => void (Sqlite.prototype.prepare = prepare))
  )

it.scopedLive("ST-6: a database that another process makes between two looks at the file is opened", () =>
  Effect.gen(function* () {
    const script = yield* creation
    for (const look of ["application_id", "sqlite_master", "max(migration_id)"]) {
      const filename = yield* temporaryDatabase
      const other = new Sqlite(filename)
      other.pragma("journal_mode = WAL")
      yield* Effect.scoped(
        Effect.zipRight(
          beforeStatement(look, () => other.exec(`BEGIN IMMEDIATE;\n${script};\nCOMMIT`)),
          open(filename, begin(session()))
        )
      )
      other.close()
    }
  })
)

it.scopedLive("ST-7: a database of a newer schema is refused, and not touched", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    yield* open(filename, begin(session()))
    const other = new Sqlite(filename)
    other.exec("INSERT INTO migration (migration_id, name) VALUES (99, 'later')")
    other.close()
    const bytes = readFileSync(filename)
    const error = yield* refusal(filename)
    assert.deepInclude(error, { _tag: "DatabaseError", reason: "newer-version" })
    // ST-761
    assert.match(error.message, /another build of Daybook made this database .*: use a newer Daybook, or/)
    assert.isTrue(readFileSync(filename).equals(bytes))
  })
)

it.scopedLive("ST-7: another program's SQLite file is refused, and not touched", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    const other = new Sqlite(filename)
    other.exec("CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')")
    other.close()
    const bytes = readFileSync(filename)
    const error = yield* refusal(filename)
    assert.deepInclude(error, { _tag: "DatabaseError", reason: "not-daybook" })
    assert.isTrue(readFileSync(filename).equals(bytes))
  })
)

it.scopedLive("ST-7: a file that is no database, and one whose pages are broken, are refused as damaged", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const text = join(folder, "notes.txt")
    writeFileSync(text, "not a database, but long enough to have a header of a hundred bytes ".repeat(20))
    const error = yield* refusal(text)
    assert.deepInclude(error, { _tag: "DatabaseError", reason: "corrupt" })
    assert.include(error.message, "restore it")
    assert.include(readFileSync(text, "utf8"), "not a database")
    const cut = join(folder, "cut.db")
    yield* open(cut, begin(session(), 2000))
    truncateSync(cut, 4096)
    assert.strictEqual((yield* refusal(cut)).reason, "corrupt")
  })
)

it.scopedLive("ST-7: a missing folder, and a folder in place of a file, are refused with what to do", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const missing = yield* refusal(join(folder, "no", "such", "daybook.db"))
    assert.strictEqual(missing.reason, "cannot-open")
    assert.include(missing.message, "directory does not exist")
    mkdirSync(join(folder, "daybook.db"))
    const instead = yield* refusal(join(folder, "daybook.db"))
    assert.strictEqual(instead.reason, "cannot-open")
    assert.include(instead.message, "it is a folder and cannot be used as a file; name a file, such as ")
    assert.include(instead.message, join(folder, "daybook.db", "daybook.sqlite"))
  })
)

it.scopedLive("ST-7: an empty name, and one with a NUL, are refused before SQLite makes another of it", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    for (const filename of ["", join(folder, "a\u0000b")]) {
      const error = yield* refusal(filename)
      assert.deepInclude(error, { _tag: "DatabaseError", reason: "cannot-open" })
      assert.include(error.message, "this is not a valid file name; give")
    }
    assert.isFalse(existsSync(join(folder, "a")))
  })
)

it.scopedLive("ST-7: a folder or a file that may not be written is refused as read-only", () =>
  Effect.gen(function* () {
    const program = yield* childProgram()
    const [empty, full] = [yield* temporaryFolder, yield* temporaryFolder]
    yield* open(join(full, "daybook.db"), begin(session()))
    const bytes = readFileSync(join(full, "daybook.db"))
    // The superuser may write everywhere: the child then runs as nobody.
    const nobody = process.getuid?.() === 0 ? { uid: 65534 } : {}
    for (const folder of [empty, full]) {
      chmodSync(folder, 0o555)
      chmodSync(join(full, "daybook.db"), 0o444)
      const child = yield* startChild(program.outfile, join(folder, "daybook.db"), nobody)
      yield* child.tell({ do: "open" })
      const answer = yield* child.answer
      assert.deepInclude(answer, { is: "failed", tag: "DatabaseError" })
      assert.include(answer.is === "failed" ? answer.message : "", "cannot be written")
      chmodSync(folder, 0o755)
    }
    assert.isFalse(existsSync(join(empty, "daybook.db")))
    assert.isTrue(readFileSync(join(full, "daybook.db")).equals(bytes))
  })
)

it.scopedLive("LG-5: an append to a closed log fails typed, and so does a read", () =>
  Effect.gen(function* () {
    const [filename, id, scope] = [yield* temporaryDatabase, session(), yield* Scope.make()]
    const context = yield* Scope.extend(Layer.build(logAt(filename)), scope)
    const log = yield* Effect.provide(EventLog, context)
    yield* Effect.provide(begin(id), context)
    yield* Scope.close(scope, Exit.void)
    const closed = yield* Effect.flip(log.append(id, [renamed("late")]))
    assert.deepInclude(closed, { _tag: "LogUnavailable", reason: "closed" })
    const reading = yield* Effect.flip(log.read({ sessionID: id }))
    assert.deepInclude(reading, { _tag: "LogUnavailable", reason: "closed" })
  })
)

it.scopedLive("LG-5: a log that closes finishes the commit in hand, and tells those who wait behind it", () =>
  Effect.gen(function* () {
    const [filename, id, scope] = [yield* temporaryDatabase, session(), yield* Scope.make()]
    const context = yield* Scope.extend(Layer.build(logAt(filename)), scope)
    const log = yield* Effect.provide(EventLog, context)
    yield* Effect.provide(begin(id), context)
    const { appending: inHand, open: release } = yield* Effect.provide(heldAppend(id, [renamed("in hand")]), context)
    const behind = yield* Effect.fork(Effect.flip(log.append(id, [renamed("behind")])))
    yield* rounds
    const closing = yield* Effect.fork(Scope.close(scope, Exit.void))
    yield* rounds
    assert.isNull(closing.unsafePoll())
    yield* release
    const [event] = yield* Fiber.join(inHand)
    assert.deepInclude(yield* Fiber.join(behind), { _tag: "LogUnavailable", reason: "closed" })
    yield* Fiber.join(closing)
    assert.deepStrictEqual((yield* open(filename, readAll(id))).at(-1), event)
  })
)
