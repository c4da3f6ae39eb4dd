/** The locks of shards, in a real database. */
import { assert, it } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import { Context, Effect, Layer } from "effect"
import { describe } from "vitest"
import { NodeStore } from "../../packages/log/src/store/NodeStore.ts"
import * as SqlNodeStore from "../../packages/log/src/store/SqlNodeStore.ts"
import * as Postgres from "../../packages/postgres/src/Postgres.ts"
import { lacks } from "../support/Parts.ts"
import { freshSchema } from "../support/Postgres.ts"

describe.skipIf(lacks("postgres"))("locks of shards", () => {
  it.scopedLive("CU-28: a node releases its own shards, those that it names", () =>
    Effect.gen(function* () {
      const context = yield* Layer.build(Postgres.layerConnections(yield* freshSchema))
      const sql = Context.get(context, SqlClient.SqlClient)
      yield* sql`CREATE TABLE cluster_locks (shard_id text PRIMARY KEY, address text NOT NULL)`
      yield* sql`INSERT INTO cluster_locks SELECT 'default:' || n, CASE WHEN n < 40 THEN 'h:1' ELSE 'h:2' END
        FROM generate_series(1, 50) AS s (n)`
      const nodes = Context.get(
        yield* Layer.build(Layer.provide(SqlNodeStore.layer, Layer.succeedContext(context))),
        NodeStore
      )
      yield* nodes.release(
        "h:1",
        Array.from({ length: 45 }, (_, n) => `default:${n + 3}`)
      )
      assert.deepStrictEqual(
        (yield* sql<{ readonly address: string }>`SELECT address FROM cluster_locks ORDER BY address`).map(
          ({ address }) => address
        ),
        ["h:1", "h:1", ...Array.from({ length: 11 }, () => "h:2")]
      )
    })
  )
})
