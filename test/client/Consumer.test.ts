/** Consumers over a client. Each storage of cursors keeps one contract; a database also the transaction of HT-80. */
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Consumer from "../../packages/client/src/Consumer.ts"
import * as FileStorage from "../../packages/client/src/FileStorage.ts"
import * as MemoryStorage from "../../packages/client/src/MemoryStorage.ts"
import * as SqlStorage from "../../packages/client/src/SqlStorage.ts"
import { begin, session } from "../../packages/log/src/testing/Samples.ts"
import { temporaryFolder } from "../support/Harness.ts"
import { layer as served } from "./support/ServedClient.ts"
import { storageContract } from "./support/StorageContract.ts"

const inFolder = (folder: string) => Effect.provide(FileStorage.make(folder), NodeFileSystem.layer)

/** A connection of its own to the database. */
const connected = (filename: string) =>
  Effect.flatMap(Layer.build(Layer.fresh(SqliteClient.layer({ filename }))), (context) =>
    Effect.provide(Effect.all([SqlClient.SqlClient, SqlStorage.make]), context)
  )

storageContract("memory", MemoryStorage.make)
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
        const consume = (client: SqlClient.SqlClient, storage: Consumer.Storage<SqlError>, refuses: boolean) =>
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
})
