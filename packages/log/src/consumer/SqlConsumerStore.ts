/** Keeps consumers in the database of their log. Contract: `ConsumerStore.ts`. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import { Clock, Data, Effect, Layer } from "effect"
import * as OwnerID from "../coordination/OwnerID.ts"
import { SessionID } from "../domain/Identifiers.ts"
import { type LogUnavailable, SessionNotFound } from "../log/EventLog.ts"
import { ofSession, unavailable } from "../log/EventRow.ts"
import { ReadSql } from "../storage/Database.ts"
import { lockLog, newestPosition } from "../storage/Dialect.ts"
import { immediately, OwnTransaction, retryBusy } from "../storage/Transaction.ts"
import {
  type Claim,
  type ClaimOptions,
  ConsumerMismatch,
  ConsumerReplaced,
  type ConsumerStatus,
  ConsumerStore,
  describeSource,
  type Hold,
  type ConsumerCursor,
  type PoisonEvent,
  type SkippedEvent
} from "./ConsumerStore.ts"

type Row = {
  readonly name: string
  readonly session_id: string | null
  readonly incarnation: number | null
  readonly cursor: number
  readonly removals: number
  readonly epoch: number
  readonly owner_id: string | null
  readonly time_updated: number
}

type PoisonRow = {
  readonly cursor: number
  readonly session_id: string | null
  readonly seq: number
  readonly position: number | null
  readonly type: string
  readonly details: string
  readonly time_created: number
}

type StatusRow = Row & {
  readonly head: number | null
  readonly count: number
}

const pageSize = 512

/** Ids in the database passed the schema when they were written. */
const sessionOf = (id: string): SessionID => SessionID.make(id, { disableValidation: true })

const toPoison = (row: PoisonRow): PoisonEvent => ({
  cursor: row.cursor,
  ...(row.session_id === null ? {} : { sessionID: row.session_id }),
  seq: row.seq,
  ...(row.position === null ? {} : { position: row.position }),
  type: row.type,
  details: row.details
})

const toSkipped = (row: PoisonRow): SkippedEvent => ({ ...toPoison(row), time: row.time_created })

/** Carries the work's own failure through the transaction, apart from the failures of its statements. */
class WorkFailed<E> extends Data.TaggedError("WorkFailed")<{ readonly error: E }> {}

const run = <A>(operation: string, effect: Effect.Effect<A, SqlError.SqlError>) =>
  Effect.mapError(retryBusy(effect), unavailable(operation))

type End = { readonly head: number; readonly incarnation: number | null }

/** The current end of a source; undefined for a session without events. */
const endOf = (sql: SqlClient.SqlClient, sessionID: SessionID | undefined) =>
  Effect.map(
    sessionID === undefined
      ? sql<End>`SELECT ${newestPosition(sql)} AS head, NULL AS incarnation`
      : sql<End>`SELECT seq AS head, incarnation FROM event_sequence WHERE session_id = ${sessionID} AND seq >= 0`,
    ([end]) => end
  )

const firstPlace = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, { sessionID, start }: ClaimOptions) {
  const end = yield* endOf(sql, sessionID)
  if (end === undefined) return yield* new SessionNotFound({ sessionID: sessionID ?? "" })
  const beginning = sessionID === undefined ? 0 : -1
  // The events of sessions that were removed before are gone, so the consumer never sees these sessions.
  const [newest] = yield* sql<{ readonly number: number | null }>`SELECT max(number) AS number FROM session_removal`
  const place: ConsumerCursor = {
    cursor: start === "end" ? end.head : beginning,
    removals: newest?.number ?? 0,
    incarnation: end.incarnation ?? undefined
  }
  return place
})

/** Registers the consumer, or takes it over, in the current transaction. */
const claimRow = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, options: ClaimOptions, owner: string) {
  const { name, sessionID } = options
  yield* lockLog(sql)
  const [found] = yield* sql<Row>`SELECT * FROM consumer WHERE name = ${name}`
  if (found === undefined) {
    const place = yield* firstPlace(sql, options)
    yield* sql`INSERT INTO consumer ${sql.insert({
      name,
      session_id: sessionID ?? null,
      incarnation: place.incarnation ?? null,
      cursor: place.cursor,
      removals: place.removals,
      epoch: 0,
      owner_id: owner,
      time_updated: yield* Clock.currentTimeMillis
    })}`
    return { name, epoch: 0, place }
  }
  if (found.session_id !== (sessionID ?? null)) {
    const follows = describeSource(found.session_id === null ? undefined : sessionOf(found.session_id))
    return yield* new ConsumerMismatch({ consumer: name, follows })
  }
  yield* sql`UPDATE consumer SET epoch = epoch + 1, owner_id = ${owner} WHERE name = ${name}`
  yield* sql`DELETE FROM consumer_poison WHERE consumer = ${name} AND skipped = 0`
  const { cursor, epoch, incarnation, removals } = found
  return { name, epoch: epoch + 1, place: { cursor, removals, incarnation: incarnation ?? undefined } }
})

const replaced = ({ name }: Claim) => new ConsumerReplaced({ consumer: name })

/** Moves the cursor in the current transaction, if the claim still holds. */
const move = (sql: SqlClient.SqlClient, claim: Claim, { cursor, incarnation, removals }: ConsumerCursor) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const moved = yield* sql`UPDATE consumer SET cursor = ${cursor}, removals = ${removals},
        incarnation = ${incarnation ?? null}, time_updated = ${now}
      WHERE name = ${claim.name} AND epoch = ${claim.epoch} RETURNING 1`
    if (moved.length === 0) return yield* replaced(claim)
  })

/** Records an event, if the claim still holds. The session's row deletes the record with the session. */
const record = (sql: SqlClient.SqlClient, { epoch, name }: Claim, event: PoisonEvent, skipped: boolean) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const stored = yield* sql`INSERT INTO consumer_poison
        (consumer, cursor, session_id, seq, position, type, details, skipped, time_created)
      SELECT c.name, ${event.cursor}, e.session_id, ${event.seq}, ${event.position ?? null}, ${event.type},
        CASE WHEN e.session_id IS NULL THEN 'the details are not kept, because no session''s removal would delete them'
          ELSE ${event.details} END, ${skipped ? 1 : 0}, ${now}
      FROM consumer c LEFT JOIN event_sequence e ON e.session_id = ${event.sessionID ?? null}
      WHERE c.name = ${name} AND c.epoch = ${epoch}
      ON CONFLICT (consumer, cursor) DO UPDATE SET session_id = excluded.session_id, seq = excluded.seq,
        position = excluded.position, type = excluded.type, details = excluded.details, skipped = excluded.skipped,
        time_created = excluded.time_created
      RETURNING 1`
    if (stored.length === 0) return yield* new ConsumerReplaced({ consumer: name })
  })

/** Runs `first`, then the work, in one transaction. */
const together = <A, E, R>(
  sql: SqlClient.SqlClient,
  first: Effect.Effect<void, SqlError.SqlError | ConsumerReplaced>,
  work: Effect.Effect<A, E, R>
) =>
  Effect.zipRight(
    first,
    Effect.mapError(Effect.provideService(work, OwnTransaction, sql), (error) => new WorkFailed({ error }))
  ).pipe(
    immediately(sql),
    retryBusy,
    Effect.catchAll((error): Effect.Effect<never, E | ConsumerReplaced | LogUnavailable> => {
      if (error instanceof WorkFailed) return Effect.fail(error.error)
      return error instanceof SqlError.SqlError ? Effect.fail(unavailable("move a consumer")(error)) : error
    }),
    Effect.provideService(SqlClient.SqlClient, sql)
  )

/** Selects consumers with the end of their source. If the session began a new life, the lag is 0. */
const status = (sql: SqlClient.SqlClient, name: string | null, isGone: (owner: string) => boolean) =>
  Effect.gen(function* () {
    const rows = yield* sql<StatusRow>`SELECT c.*,
        CASE WHEN c.session_id IS NULL THEN ${newestPosition(sql)}
          ELSE (SELECT e.seq FROM event_sequence e WHERE e.session_id = c.session_id
            AND (c.incarnation IS NULL OR e.incarnation = c.incarnation)) END AS head,
        (SELECT count(*) FROM consumer_poison p WHERE p.consumer = c.name AND p.skipped = 1) AS count
      FROM consumer c WHERE ${name === null ? sql`true` : sql`c.name = ${name}`} ORDER BY c.name`
    const stops = yield* sql<PoisonRow & { readonly consumer: string }>`SELECT * FROM consumer_poison
      WHERE skipped = 0 AND ${name === null ? sql`true` : sql`consumer = ${name}`}`
    const stopped = new Map(stops.map((row) => [row.consumer, toPoison(row)]))
    return rows.map((row): ConsumerStatus => {
      const poison = stopped.get(row.name)
      const running = row.owner_id !== null && !isGone(row.owner_id)
      return {
        name: row.name,
        ...(row.session_id === null ? {} : { sessionID: sessionOf(row.session_id) }),
        cursor: row.cursor,
        lag: Math.max(0, (row.head ?? row.cursor) - row.cursor),
        state: poison !== undefined ? "stopped" : running ? "running" : "idle",
        ...(poison === undefined ? {} : { poison }),
        skipped: row.count,
        updated: row.time_updated
      }
    })
  })

/** The consumers of the session and of the feed, with the last event of the session that each has applied. */
const holdsOf = (sql: SqlClient.SqlClient, sessionID: SessionID) =>
  sql<Hold>`SELECT c.name AS consumer, c.cursor AS seq FROM consumer c
      JOIN event_sequence e ON e.session_id = c.session_id
      WHERE c.session_id = ${sessionID} AND (c.incarnation IS NULL OR c.incarnation = e.incarnation)
    UNION ALL SELECT c.name, coalesce((SELECT e.seq FROM event e
        WHERE ${ofSession(sql, sessionID)} AND e.position <= c.cursor ORDER BY e.seq DESC LIMIT 1), -1)
      FROM consumer c WHERE c.session_id IS NULL`

export interface Options {
  /** Identifies this process and checks other processes. */
  readonly process?: OwnerID.OwnProcess
}

const make = Effect.fnUntraced(function* (options: Options) {
  const sql = yield* SqlClient.SqlClient
  const readSql = yield* ReadSql
  let found = options.process
  // Made when it is needed, because it reads the process table.
  const own = () => (found ??= OwnerID.make())

  const commit = <A, E, R>(claim: Claim, to: ConsumerCursor, work: Effect.Effect<A, E, R>) =>
    together(sql, move(sql, claim, to), work)

  return ConsumerStore.of({
    claim: (claimOptions) =>
      Effect.acquireRelease(
        retryBusy(immediately(sql)(claimRow(sql, claimOptions, own().ownerID()))).pipe(
          Effect.catchTag("SqlError", (error) => Effect.fail(unavailable("start a consumer")(error)))
        ),
        ({ epoch, name }) =>
          Effect.ignoreLogged(sql`UPDATE consumer SET owner_id = NULL WHERE name = ${name} AND epoch = ${epoch}`)
      ),
    check: (claim) =>
      Effect.flatMap(
        run("read a consumer", readSql`SELECT 1 FROM consumer WHERE name = ${claim.name} AND epoch = ${claim.epoch}`),
        (rows) => (rows.length === 0 ? Effect.fail(replaced(claim)) : Effect.void)
      ),
    commit,
    skip: (claim, to, event) =>
      Effect.catchTag(commit(claim, to, record(sql, claim, event, true)), "SqlError", (error) =>
        Effect.fail(unavailable("record a skipped event")(error))
      ),
    stop: (claim, event) =>
      Effect.catchTag(retryBusy(record(sql, claim, event, false)), "SqlError", (error) =>
        Effect.fail(unavailable("record where a consumer stopped")(error))
      ),
    finish: (claim, work) =>
      together(
        sql,
        Effect.flatMap(
          sql`DELETE FROM consumer WHERE name = ${claim.name} AND epoch = ${claim.epoch} RETURNING 1`,
          (rows) => (rows.length === 0 ? Effect.fail(replaced(claim)) : Effect.void)
        ),
        work
      ),
    list: Effect.suspend(() => run("read the consumers", status(readSql, null, own().isGone))),
    get: (name) => Effect.map(run("read a consumer", status(readSql, name, own().isGone)), ([one]) => one),
    skipped: (name, after = Number.MIN_SAFE_INTEGER) =>
      Effect.map(
        run(
          "read skipped events",
          readSql<PoisonRow>`SELECT * FROM consumer_poison
            WHERE consumer = ${name} AND cursor > ${after} AND skipped = 1 ORDER BY cursor LIMIT ${pageSize}`
        ),
        (rows) => rows.map(toSkipped)
      ),
    remove: (name) =>
      Effect.map(
        run("remove a consumer", sql`DELETE FROM consumer WHERE name = ${name} RETURNING 1`),
        (rows) => rows.length > 0
      ),
    holds: (sessionID) => run("read the consumers", holdsOf(readSql, sessionID))
  })
})

export const layer = (options: Options = {}) => Layer.effect(ConsumerStore, make(options))
