/** Implements the nodes of a database on PostgreSQL; a file has none. Contract: `NodeStore.ts`. */
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect, Layer, Schedule, Schema } from "effect"
import { unavailable } from "../log/EventRow.ts"
import { isPostgres } from "../storage/Dialect.ts"
import { NodeStore } from "./NodeStore.ts"

/** Nodes that start together make the table together, which PostgreSQL refuses to all but one. */
const together = Schedule.intersect(Schedule.recurs(10), Schedule.spaced("100 millis"))

/** Seconds without a word after which a node counts as gone: as long as its shards' leases. */
const silence = 6

const Rows = Schema.Array(
  Schema.Struct({
    address: Schema.String,
    workspaces: Schema.parseJson(Schema.Array(Schema.String)),
    running: Schema.Int,
    since: Schema.Int,
    leaving: Schema.BooleanFromString
  })
)

const make = Effect.map(SqlClient.SqlClient, (sql) => {
  const run = <A>(operation: string, effect: Effect.Effect<A, SqlError>) =>
    Effect.mapError(effect, unavailable(operation))

  const create = sql`CREATE TABLE IF NOT EXISTS cluster_node (address text PRIMARY KEY, workspaces text NOT NULL,
    running integer NOT NULL, leaving boolean NOT NULL, since timestamptz NOT NULL, beat timestamptz NOT NULL)`

  const find = Effect.gen(function* () {
    const [known] = yield* sql<{ readonly found: unknown }>`SELECT to_regclass('cluster_node') AS found`
    // No process was ever a node.
    if (known?.found === null) return []
    return yield* sql`SELECT address, workspaces, running, (extract(epoch FROM since) * 1000)::bigint AS since,
      leaving::text FROM cluster_node WHERE beat > now() - make_interval(secs => ${silence}) ORDER BY address`
  })

  return NodeStore.of({
    begin: (address, workspaces) => {
      const names = JSON.stringify(workspaces)
      const insert = sql`INSERT INTO cluster_node VALUES (${address}, ${names}, 0, false, now(), now())
        ON CONFLICT (address) DO UPDATE
        SET workspaces = ${names}, running = 0, leaving = false, since = now(), beat = now()`
      return run("begin the node", Effect.asVoid(Effect.zipRight(Effect.retry(create, together), insert)))
    },
    renew: ({ address, leaving, running }) =>
      run(
        "renew the node",
        Effect.asVoid(sql`UPDATE cluster_node SET running = ${running}, leaving = ${leaving}, beat = now()
          WHERE address = ${address}`)
      ),
    end: (address) => run("end the node", Effect.asVoid(sql`DELETE FROM cluster_node WHERE address = ${address}`)),
    living: isPostgres(sql)
      ? Effect.flatMap(run("read the nodes", find), (rows) => Effect.orDie(Schema.decodeUnknown(Rows)(rows)))
      : Effect.succeed([])
  })
})

export const layer = Layer.effect(NodeStore, make)
