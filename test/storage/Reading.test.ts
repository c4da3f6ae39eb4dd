/** A database that is opened only for reads. */
import { readFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Effect, Layer } from "effect"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Database from "../../packages/log/src/storage/Database.ts"
import * as Store from "../../packages/log/src/Store.ts"
import { logAt, temporaryDatabase } from "../support/Database.ts"
import { begin, renamed, session } from "../support/Logs.ts"

const sessionID = session()

const reading = (filename: string) => Store.layerReading({ filename })

const written = Effect.tap(temporaryDatabase, (filename) => Effect.provide(begin(sessionID, 1), logAt(filename)))

it.scopedLive("CL-136: a reader sees every event, refuses an append, and leaves the file as it was", () =>
  Effect.gen(function* () {
    const filename = yield* written
    const before = readFileSync(filename)
    yield* Effect.gen(function* () {
      const log = yield* EventLog
      const { events } = yield* log.read({ sessionID })
      assert.strictEqual(events.length, 2)
      const refused = yield* Effect.flip(log.append(sessionID, [renamed("two")]))
      assert.strictEqual(refused._tag, "LogUnavailable")
    }).pipe(Effect.provide(reading(filename)))
    assert.isTrue(before.equals(readFileSync(filename)))
  })
)

it.scopedLive("CL-136: a reader opens a database while another process holds its write lock", () =>
  Effect.gen(function* () {
    const filename = yield* written
    const other = yield* Effect.acquireRelease(
      Effect.sync(() => new Sqlite(filename)),
      (db) => Effect.sync(() => db.close())
    )
    other.exec("BEGIN IMMEDIATE")
    const { events } = yield* Effect.provide(
      Effect.flatMap(EventLog, (log) => log.read({ sessionID })),
      reading(filename)
    )
    assert.strictEqual(events.length, 2)
  })
)

it.scopedLive("CL-136: a database without this build's schema is migrated first", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    new Sqlite(filename).exec("PRAGMA journal_mode = WAL").close()
    const schema = yield* Effect.provide(
      Effect.flatMap(
        Database.ReadSql,
        (sql) => sql<{ readonly latest: number }>`SELECT max(migration_id) AS latest FROM migration`
      ),
      Database.layerReading({ filename })
    )
    assert.deepStrictEqual(schema, [{ latest: Database.schemaVersion }])
  })
)

it.scopedLive("CL-136: a file that is no database is refused in the same words as by a writer", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    new Sqlite(filename).exec("CREATE TABLE other (x)").close()
    const refusal = <A>(layer: Layer.Layer<A, Database.DatabaseError>) => Effect.flip(Effect.scoped(Layer.build(layer)))
    const [read, write] = [
      yield* refusal(Database.layerReading({ filename })),
      yield* refusal(Database.layer({ filename }))
    ]
    assert.deepStrictEqual([read.reason, read.message], ["not-daybook", write.message])
  })
)
