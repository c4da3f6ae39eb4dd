/** Consumers over a client. Each storage of cursors keeps one contract; a database also the transaction of HT-80. */
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import * as Consumer from "../../packages/client/src/Consumer.ts"
import * as FileStorage from "../../packages/client/src/FileStorage.ts"
import * as SqlStorage from "../../packages/client/src/SqlStorage.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { begin, renamed, session } from "../contracts/Samples.ts"
import { temporaryFolder } from "../support/Harness.ts"
import { layer as served } from "./support/ServedClient.ts"
import { storageContract } from "./support/StorageContract.ts"

const inFolder = (folder: string) => Effect.provide(FileStorage.make(folder), NodeFileSystem.layer)

type SqlStored = Effect.Effect.Success<typeof SqlStorage.make>

/** A connection of its own to the database. */
const connected = (filename: string) =>
  Effect.flatMap(Layer.build(Layer.fresh(SqliteClient.layer({ filename }))), (context) =>
    Effect.provide(Effect.all([SqlClient.SqlClient, SqlStorage.make]), context)
  )

storageContract("memory", Consumer.memoryStorage)
storageContract(
  "a folder",
  Effect.flatMap(temporaryFolder, (folder) => inFolder(join(folder, "cursors")))
)
storageContract(
  "a database",
  Effect.flatMap(temporaryFolder, (folder) => Effect.map(connected(join(folder, "own.db")), ([, storage]) => storage))
)

layer(served())("a consumer that writes in the database of its cursor", (it) => {
  it.scoped(
    "HT-80: effect and cursor are committed together, whichever fails, and are there for the next process",
    () =>
      Effect.gen(function* () {
        const id = session()
        yield* begin(id, 5)
        const filename = join(yield* temporaryFolder, "own.db")
        const [sql, storage] = yield* connected(filename)
        yield* sql`CREATE TABLE applied (seq INTEGER NOT NULL)`
        const consume = (client: SqlClient.SqlClient, storage: SqlStored, refuses: boolean) =>
          Consumer.run({
            name: "own",
            sessionID: id,
            follow: false,
            storage,
            apply: (events) =>
              Effect.gen(function* () {
                for (const { seq } of events) yield* client`INSERT INTO applied VALUES (${seq})`
                if (refuses) yield* Effect.fail("refused")
              })
          })
        const applied = (client: SqlClient.SqlClient) =>
          Effect.map(client<{ readonly seq: number }>`SELECT seq FROM applied ORDER BY rowid`, (rows) =>
            rows.map(({ seq }) => seq)
          )

        // The work fails behind its effect.
        assert.strictEqual(yield* Effect.flip(consume(sql, storage, true)), "refused")
        assert.deepEqual(yield* applied(sql), [])
        // The database refuses the cursor.
        yield* sql`CREATE TRIGGER refusing BEFORE INSERT ON daybook_cursors BEGIN SELECT RAISE(ABORT, 'no'); END`
        assert.propertyVal(yield* Effect.flip(consume(sql, storage, false)), "_tag", "SqlError")
        assert.deepEqual(yield* applied(sql), [])
        yield* sql`DROP TRIGGER refusing`

        yield* consume(sql, storage, false)
        const [again, kept] = yield* connected(filename)
        yield* consume(again, kept, false)
        assert.deepEqual(yield* applied(again), [0, 1, 2, 3, 4, 5])
      })
  )

  it.scoped("HT-81: of two consumers with one name, the one that comes second fails, and its effect is undone", () =>
    Effect.gen(function* () {
      const [log, id] = [yield* EventLog, session()]
      yield* begin(id, 5)
      const filename = join(yield* temporaryFolder, "own.db")
      const [[first, one], [second, two]] = [yield* connected(filename), yield* connected(filename)]
      yield* first`CREATE TABLE applied (seq INTEGER NOT NULL)`
      const consume = (sql: SqlClient.SqlClient, storage: SqlStored, gate: Effect.Effect<unknown> = Effect.void) =>
        Consumer.run({
          name: "own",
          sessionID: id,
          follow: false,
          storage,
          apply: (events) =>
            Effect.zipRight(
              gate,
              Effect.forEach(events, ({ seq }) => sql`INSERT INTO applied VALUES (${seq})`)
            )
        })
      // Before the first cursor, and behind one.
      for (const last of [5, 6]) {
        const [begun, gate] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const held = Effect.zipRight(Deferred.succeed(begun, undefined), Deferred.await(gate))
        const late = yield* Effect.fork(Effect.flip(consume(first, one, held)))
        yield* Deferred.await(begun)
        yield* consume(second, two)
        yield* Deferred.succeed(gate, undefined)
        assert.deepInclude(yield* Fiber.join(late), { _tag: "ConsumerReplaced", consumer: "own" })
        const rows = yield* first<{ readonly seq: number }>`SELECT seq FROM applied ORDER BY rowid`
        assert.deepEqual(
          rows.map(({ seq }) => seq),
          Array.from({ length: last + 1 }, (_, seq) => seq)
        )
        yield* log.append(id, [renamed("one more")])
      }
    })
  )
})
