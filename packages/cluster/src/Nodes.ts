/**
 * The nodes that live, each a row that it writes at intervals: for people, and for what waits for a workspace. Who holds
 * which shard is the engine's own matter. Spec: CU-34, CU-35 in specs/scale.md.
 */
import { type LogUnavailable } from "@daybook/log/log/EventLog"
import { NodesReport } from "@daybook/log/domain/NodesReport"
import { unavailable } from "@daybook/log/log/EventRow"
import { Inbox } from "@daybook/log/store/Inbox"
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schedule, Schema } from "effect"

/** Nodes that start together make the table together, which PostgreSQL refuses to all but one. */
export const together = Schedule.intersect(Schedule.recurs(10), Schedule.spaced("100 millis"))

const beatEvery = "2 seconds"

/** Seconds without a beat after which a node counts as gone: as long as its shards' leases. */
const silence = 9

export interface Self {
  readonly address: string
  readonly workspaces: ReadonlyArray<string>
  readonly running: Effect.Effect<number>
  readonly leaving: () => boolean
}

/** Keeps this node's row until the scope closes. */
export const keep = Effect.fnUntraced(function* ({ address, leaving, running, workspaces }: Self) {
  const sql = yield* SqlClient.SqlClient
  const names = JSON.stringify(workspaces)
  const create = sql`CREATE TABLE IF NOT EXISTS cluster_node (address text PRIMARY KEY, workspaces text NOT NULL,
    running integer NOT NULL, leaving boolean NOT NULL, since timestamptz NOT NULL, beat timestamptz NOT NULL)`
  const begin = sql`INSERT INTO cluster_node VALUES (${address}, ${names}, 0, false, now(), now())
    ON CONFLICT (address) DO UPDATE SET workspaces = ${names}, running = 0, leaving = false, since = now(), beat = now()`
  const beat = Effect.flatMap(
    running,
    (count) => sql`UPDATE cluster_node SET running = ${count}, leaving = ${leaving()}, beat = now()
      WHERE address = ${address}`
  )
  const end = sql`DELETE FROM cluster_node WHERE address = ${address}`
  yield* Effect.retry(create, together)
  yield* Effect.acquireRelease(begin, () => Effect.ignoreLogged(end))
  yield* Effect.forkScoped(Effect.repeat(Effect.ignoreLogged(beat), Schedule.spaced(beatEvery)))
  return { beat: Effect.ignoreLogged(beat) }
})

const Rows = Schema.Array(
  Schema.Struct({
    address: Schema.String,
    workspaces: Schema.parseJson(Schema.Array(Schema.String)),
    running: Schema.Int,
    since: Schema.Int,
    leaving: Schema.BooleanFromString
  })
)

const living = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [known] = yield* sql<{ readonly table: unknown }>`SELECT to_regclass('cluster_node') AS "table"`
  // No process was ever a node.
  if (known?.table === null) return []
  return yield* sql`SELECT address, workspaces, running, (extract(epoch FROM since) * 1000)::bigint AS since, leaving::text
    FROM cluster_node WHERE beat > now() - make_interval(secs => ${silence}) ORDER BY address`
}).pipe(Effect.mapError(unavailable("read the nodes")))

/** Whether a node that lives has the workspace. */
export const hasWorkspace = (workspaceID: string) =>
  Effect.map(Effect.flatMap(living, Schema.decodeUnknown(Rows)), (nodes) =>
    nodes.some(({ workspaces }) => workspaces.includes(workspaceID))
  ).pipe(Effect.catchTag("ParseError", Effect.die))

/** The nodes that live, and the sessions that wait for another one. */
export const report: Effect.Effect<NodesReport, LogUnavailable, SqlClient.SqlClient | Inbox> = Effect.gen(function* () {
  const inbox = yield* Inbox
  const nodes = yield* Effect.orDie(Schema.decodeUnknown(Rows)(yield* living))
  const known = new Set(nodes.flatMap(({ workspaces }) => workspaces))
  const sessions = yield* Effect.catchTag(inbox.sessions, "MessageUnreadable", Effect.die)
  const waiting = sessions.flatMap(({ id, location: { workspaceID } }) =>
    workspaceID === undefined || known.has(workspaceID) ? [] : [{ sessionID: id, workspaceID }]
  )
  return { nodes, waiting }
})
