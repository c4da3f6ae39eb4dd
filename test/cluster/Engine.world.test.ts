/** The locks of shards, in a real database. */
import { assert, it } from "@effect/vitest"
import { RunnerAddress, ShardId } from "@effect/cluster"
import * as SqlClient from "@effect/sql/SqlClient"
import { Context, Effect, Layer } from "effect"
import { describe } from "vitest"
import * as Engine from "../../packages/cluster/src/Engine.ts"
import * as Postgres from "../../packages/postgres/src/Postgres.ts"
import { lacks } from "../support/Parts.ts"
import { freshSchema } from "../support/Postgres.ts"

describe.skipIf(lacks("postgres"))("locks of shards", () => {
  it.scopedLive("CU-28: a node gives up the shards that it gives up together in one statement, and no others", () =>
    Effect.gen(function* () {
      const context = yield* Layer.build(Postgres.layerConnections(yield* freshSchema))
      const sql = Context.get(context, SqlClient.SqlClient)
      yield* sql`CREATE TABLE cluster_locks (shard_id text PRIMARY KEY, address text NOT NULL)`
      yield* sql`INSERT INTO cluster_locks SELECT 'default:' || n, CASE WHEN n < 40 THEN 'h:1' ELSE 'h:2' END
        FROM generate_series(1, 50) AS s (n)`
      let deletes = 0
      const counting = new Proxy(sql, {
        apply: (target, self, [texts, ...values]: [TemplateStringsArray, ...Array<unknown>]) => {
          if (texts[0]?.startsWith("DELETE") === true) deletes += 1
          return Reflect.apply(target, self, [texts, ...values])
        }
      })
      const release = Engine.makeRelease(counting, RunnerAddress.make("h", 1))
      const shards = Array.from({ length: 45 }, (_, n) => ShardId.make("default", n + 3))
      yield* Effect.forEach(shards, release, { concurrency: "unbounded" })
      assert.deepStrictEqual(
        (yield* sql<{ readonly address: string }>`SELECT address FROM cluster_locks ORDER BY address`).map(
          ({ address }) => address
        ),
        ["h:1", "h:1", ...Array.from({ length: 11 }, () => "h:2")]
      )
      assert.strictEqual(deletes, 1)
      yield* release(ShardId.make("default", 1))
      assert.strictEqual(deletes, 2)
    })
  )
})
