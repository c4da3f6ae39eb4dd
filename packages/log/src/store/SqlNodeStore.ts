/** Implements the nodes of a database on PostgreSQL; a file has none. Contract: `NodeStore.ts`. */
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect, Layer, Schema, Struct } from "effect"
import { NodeReport, NodeWork } from "../domain/NodesReport.ts"
import { unavailable } from "../log/EventRow.ts"
import { isPostgres } from "../storage/Dialect.ts"
import { retryBusy } from "../storage/Transaction.ts"
import { NodeStore } from "./NodeStore.ts"

/** Seconds without a word after which a node counts as gone: as long as its shards' leases. */
const silence = 6

const Work = Schema.parseJson(NodeWork)

const Rows = Schema.Array(
  Schema.Struct({
    ...Struct.pick(NodeReport.fields, "address", "running", "since"),
    workspaces: Schema.parseJson(Schema.Array(Schema.String)),
    work: Work,
    leaving: Schema.BooleanFromString
  })
)

const encodeWork = Schema.encodeSync(Work)

const make = Effect.map(SqlClient.SqlClient, (sql) => {
  // Each statement may run twice.
  const run = <A>(operation: string, effect: Effect.Effect<A, SqlError>) =>
    Effect.mapError(retryBusy(effect), unavailable(operation))

  const find = sql`SELECT address, workspaces, running, (extract(epoch FROM since) * 1000)::bigint AS since,
    work, leaving::text FROM cluster_node WHERE beat > now() - make_interval(secs => ${silence}) ORDER BY address`

  return NodeStore.of({
    begin: (address, workspaces) => {
      const names = JSON.stringify(workspaces)
      const insert = sql`INSERT INTO cluster_node VALUES (${address}, ${names}, 0, false, now(), now())
        ON CONFLICT (address) DO UPDATE
        SET workspaces = ${names}, running = 0, leaving = false, since = now(), beat = now(), work = DEFAULT`
      return run("begin the node", Effect.asVoid(insert))
    },
    renew: ({ address, leaving, running, ...work }) =>
      run(
        "renew the node",
        Effect.asVoid(sql`UPDATE cluster_node SET running = ${running}, leaving = ${leaving}, beat = now(),
          work = ${encodeWork(work)}
          WHERE address = ${address}`)
      ),
    end: (address) => run("end the node", Effect.asVoid(sql`DELETE FROM cluster_node WHERE address = ${address}`)),
    release: (address, shards) =>
      run(
        "release shards",
        Effect.asVoid(sql`DELETE FROM cluster_locks WHERE address = ${address} AND ${sql.in("shard_id", shards)}`)
      ),
    living: isPostgres(sql)
      ? run("read the nodes", find).pipe(
          Effect.flatMap((rows) => Effect.orDie(Schema.decodeUnknown(Rows)(rows))),
          Effect.map((rows) => rows.map(({ work, ...row }) => ({ ...row, ...work })))
        )
      : Effect.succeed([])
  })
})

export const layer = Layer.effect(NodeStore, make)
