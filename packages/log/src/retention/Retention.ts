/**
 * Prunes sessions to bounds on age, place or the size of the file, the longest unused session first, and puts archives
 * back. `Plan.ts` finds what can go, `Prune.ts` removes it, `Space.ts` gives free pages back. Spec: RT-23, RT-24,
 * RT-40, RT-41 in specs/log.md.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import { Chunk, Clock, type Duration, Effect, Layer, Metric, Option, Schedule, Stream } from "effect"
import { ConsumerStore } from "../consumer/ConsumerStore.ts"
import { SessionID } from "../domain/Identifiers.ts"
import { EventLog, type EventUnreadable, type LogUnavailable } from "../log/EventLog.ts"
import * as EventRow from "../log/EventRow.ts"
import { checksumOf, selectIdentity, unavailable } from "../log/EventRow.ts"
import * as SessionBase from "../projection/SessionBase.ts"
import { ReadSql } from "../storage/Database.ts"
import { isPostgres } from "../storage/Dialect.ts"
import * as Metrics from "../support/Metrics.ts"
import * as Archive from "./Archive.ts"
import { ArchiveUnusable, type Header, type StoredEvent } from "./Archive.ts"
import { gentle, type Pace, paced } from "./Pace.ts"
import {
  type Bounds,
  type Cut,
  cutOf,
  type Holders,
  selectSubject,
  selectSubjects,
  type Subject,
  type SubjectCursor
} from "./Plan.ts"
import {
  asClaimed,
  claim,
  type Claimed,
  finish,
  prune,
  type PruneLost,
  type PruneOptions,
  sweepMoved,
  typed
} from "./Prune.ts"
import * as PrunedParts from "./PrunedParts.ts"
import * as Space from "./Space.ts"

// Puts an archive's events back at their positions, below the floor, until one transaction lowers the floor.

/** Why the archive does not fit the session; undefined if it does. */
const misfit = (header: Header, database: string, subject: Subject | undefined): string | undefined => {
  const { incarnation, sessionID, to } = header
  if (header.database !== database || subject === undefined || subject.incarnation !== incarnation) {
    return `${sessionID} was removed, or is of another database; an archive goes back only into the session it came from`
  }
  if (subject.floor < to) return `the events of ${sessionID} up to ${to} are in the log already`
  return subject.floor > to
    ? `${sessionID} was pruned further, up to ${subject.floor}: first restore the archive that ends there`
    : undefined
}

/** Refuses events that were changed, and counts the others. */
const verified = ({ header, events }: Archive.Reading, file: string) =>
  Stream.runFoldEffect(events, 0, (count, page) => {
    const changed = page.find(
      ({ checksum, ...event }) => checksumOf({ ...event, session_id: header.sessionID }) !== checksum
    )
    return changed === undefined
      ? Effect.succeed(count + page.length)
      : Effect.fail(new ArchiveUnusable({ file, details: `event ${changed.seq} was changed` }))
  })

/** Inserts a page as it was: an event that this database numbered stores no id. Names of types are never removed. */
const insert = (sql: Sql, { database, sessionID }: Header, page: ReadonlyArray<StoredEvent>) => {
  const idAt = EventRow.makeEventIds(database)
  return Effect.forEach(
    page,
    ({ checksum, created, data, id, position, seq, type }) =>
      sql`INSERT INTO event (position, session, seq, type, created, checksum, id, data)
        SELECT ${position}, s.session, ${seq}, t.type, ${created}, ${checksum},
          ${id === idAt(created, position) ? null : id}, ${data}
        FROM event_sequence s, event_type t WHERE s.session_id = ${sessionID} AND t.name = ${type}`,
    { discard: true }
  )
}

/** Readers see the events from here on. */
const lower = (sql: Sql, { base, from, sessionID }: Header) => {
  const state = base === null ? null : SessionBase.encode(base)
  return Effect.zipRight(
    sql`UPDATE event_sequence SET floor = ${from} WHERE session_id = ${sessionID}`,
    sql`UPDATE session_floor SET base = ${state}, position = ${base?.position ?? null} WHERE session_id = ${sessionID}`
  )
}

/** Writes the pages of a claimed session, and lowers its floor. */
const putBack = Effect.fnUntraced(function* (
  sql: Sql,
  claimed: Claimed,
  { events, header }: Archive.Reading,
  { pace, progress = () => Effect.void }: PruneOptions
) {
  yield* Stream.runForEach(events, (page) =>
    Effect.zipRight(
      paced(pace)(asClaimed(sql, claimed)(insert(sql, header, page))),
      progress({ copied: page.length, deleted: 0 })
    )
  )
  const { from, sessionID, to } = header
  yield* PrunedParts.putBack(sql, sessionID, { from, through: to }, (step) =>
    paced(pace)(asClaimed(sql, claimed)(step))
  )
  yield* asClaimed(sql, claimed)(lower(sql, header))
})

/**
 * Puts the events of an archive back. The whole archive is verified first. A refusal changes nothing; after a kill the
 * session is as before, and the same restore can be repeated.
 */
export const restore = Effect.fn("Retention.restore")(function* (file: string, options: PruneOptions) {
  const sql = yield* SqlClient.SqlClient
  const archive = yield* Archive.read(file)
  const { header } = archive
  const events = yield* verified(archive, file)
  const subject = yield* selectSubject(sql, header.sessionID)
  const details = misfit(header, yield* selectIdentity(sql), subject)
  if (details !== undefined || subject === undefined)
    return yield* new ArchiveUnusable({ file, details: details ?? "" })
  yield* finish(header.sessionID, options)
  const claimed = yield* claim(sql, subject)
  yield* putBack(sql, claimed, archive, options)
  yield* sweepMoved(sql, claimed, header.from, options)
  return { header, events }
}, typed)

/** Which events may go. */
export interface Request {
  /** Only these sessions; otherwise all. */
  readonly sessions?: ReadonlyArray<SessionID> | undefined
  /** Keep the events of this many milliseconds. */
  readonly keep?: number | undefined
  readonly to?: Bounds["to"]
  /** Prune only until the file, or what PostgreSQL's tables would take without free space, is at most so many bytes. */
  readonly maxSize?: number | undefined
  /** The readers that hold floors back; none with `--force`. */
  readonly holders: Holders
}

/** For a request that no reader holds back. */
export const noHolders: Holders = () => Effect.succeed([])

/** The registered consumers that have not read a session to its end. */
export const consumersOf =
  ({ holds }: typeof ConsumerStore.Service): Holders =>
  (sessionID) =>
    Effect.map(holds(sessionID), (found) => found.map(({ consumer, seq }) => ({ name: consumer, after: seq })))

/** The registered consumers, and the tails of this process. */
const readersOf =
  (consumers: typeof ConsumerStore.Service, log: Pick<typeof EventLog.Service, "tailing">): Holders =>
  (sessionID) =>
    Effect.zipWith(consumersOf(consumers)(sessionID), log.tailing(sessionID), (held, tails) => [
      ...held,
      ...tails.map((after) => ({ name: "a tail of this process", after }))
    ])

export interface Outcome {
  readonly sessions: number
  readonly events: number
  /** Bytes of the file or of PostgreSQL's tables; on PostgreSQL with `maxSize`, without the tables' free space. */
  readonly before: number
  readonly after: number
  readonly archives: ReadonlyArray<string>
  /** Sessions that were not pruned, with the reason. */
  readonly failed: ReadonlyArray<{ readonly sessionID: SessionID; readonly reason: string }>
}

/** The share of removed payload bytes that a prune frees, for estimates: the rest are compressed blocks of kept events. */
const freedShare = 0.85

export const estimatedBytes = ({ bytes }: Pick<Cut, "bytes">): number => Math.round(bytes * freedShare)

type Sql = SqlClient.SqlClient

/**
 * Tells after each cut whether the database fits. On PostgreSQL a measurement reads every event, so there is none until
 * the cuts since the last one can be enough.
 */
const fitting = (sql: Sql, maxSize: number | undefined) => {
  let excess = 0
  return (cut?: Cut): Effect.Effect<boolean, SqlError.SqlError> => {
    if (maxSize === undefined) return Effect.succeed(false)
    if (cut !== undefined) excess -= Space.mostFreed(cut)
    if (excess > 0 && isPostgres(sql)) return Effect.succeed(false)
    return Effect.map(Space.usedBytes(sql), (bytes) => {
      excess = bytes - maxSize
      return excess <= 0
    })
  }
}

/** All sessions, the one unused for the longest time first, or the requested ones. */
const subjectsOf = (sql: Sql, { sessions }: Request): Stream.Stream<Subject, SqlError.SqlError> =>
  sessions === undefined
    ? Stream.paginateChunkEffect(undefined as SubjectCursor | undefined, (after) =>
        Effect.map(selectSubjects(sql, after), ({ next, subjects }) => [
          Chunk.fromIterable(subjects),
          Option.fromNullable(next)
        ])
      )
    : Stream.fromIterable(sessions).pipe(
        Stream.mapEffect((id) => selectSubject(sql, id)),
        Stream.filter((subject) => subject !== undefined)
      )

/** The cuts of sessions that can be pruned or are held back, up to `maxSize`. Writes nothing. */
export const plan = (request: Request): Stream.Stream<Cut, LogUnavailable, ReadSql> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const sql = yield* ReadSql
      const now = yield* Clock.currentTimeMillis
      const { holders, keep, maxSize, to } = request
      const bounds: Bounds = {
        ...(keep === undefined ? {} : { before: now - keep }),
        ...(to === undefined ? {} : { to })
      }
      let excess = maxSize === undefined ? Infinity : (yield* Space.usedBytes(sql)) - maxSize
      const freedBy = (cut: Cut) => estimatedBytes(isPostgres(sql) ? { bytes: Space.mostFreed(cut) } : cut)
      return subjectsOf(sql, request).pipe(
        // Each cut is known before the next session is asked for.
        Stream.rechunk(1),
        Stream.takeWhile(() => excess > 0),
        Stream.mapEffect((subject) =>
          Effect.flatMap(holders(subject.sessionID), (held) => cutOf(sql, subject, bounds, held))
        ),
        Stream.filter(({ floor, held, to }) => to > floor || held.length > 0),
        Stream.tap((cut) => Effect.sync(() => (excess -= freedBy(cut))))
      )
    })
  ).pipe(Stream.mapError((error) => (error instanceof SqlError.SqlError ? unavailable("plan a prune")(error) : error)))

/** Sessions whose prune a dead process left unfinished. */
const selectUnfinished = (sql: Sql) =>
  sql<{ readonly session_id: string }>`SELECT session_id FROM session_floor WHERE claim IS NOT NULL`

export interface RunOptions extends PruneOptions {
  readonly starts?: (cut: Cut) => Effect.Effect<void>
  readonly pruned?: (cut: Cut) => Effect.Effect<void>
  readonly freed?: (pages: number) => Effect.Effect<void>
}

/**
 * Prunes, session by session, and gives the free pages back. A session that cannot be pruned keeps its events and is
 * reported. Interruption stops between two steps: every session is then either as before or pruned.
 */
export const run = Effect.fn("Retention.run")(function* (request: Request, options: RunOptions) {
  const [sql, read] = [yield* SqlClient.SqlClient, yield* ReadSql]
  const { maxSize } = request
  // The tables of PostgreSQL do not shrink.
  const size = maxSize === undefined || !isPostgres(sql) ? Space.sizeOf : Space.usedBytes
  const before = yield* size(sql)
  for (const { session_id } of yield* selectUnfinished(sql)) {
    // Lost: a later claim finishes it.
    yield* Effect.catchTag(
      finish(SessionID.make(session_id, { disableValidation: true }), options),
      "PruneLost",
      () => Effect.void
    )
  }
  const archives: Array<string> = []
  const failed: Array<Outcome["failed"][number]> = []
  const kept =
    ({ sessionID }: Cut) =>
    ({ message }: PruneLost | EventUnreadable) =>
      Effect.sync(() => {
        failed.push({ sessionID, reason: message })
        return Option.none<string | undefined>()
      })
  let [sessions, events] = [0, 0]
  const fits = fitting(sql, maxSize)
  // Planned without the size: what a prune frees is measured, not estimated.
  yield* plan({ ...request, maxSize: undefined }).pipe(
    Stream.filter(({ floor, to }) => to > floor),
    Stream.takeUntilEffect((cut) =>
      Effect.gen(function* () {
        if (yield* fits()) return true
        yield* options.starts?.(cut) ?? Effect.void
        const pruned = yield* prune(cut, options).pipe(
          Effect.asSome,
          Effect.catchTags({ PruneLost: kept(cut), EventUnreadable: kept(cut) })
        )
        if (Option.isNone(pruned)) return false
        sessions += 1
        events += cut.events
        yield* options.pruned?.(cut) ?? Effect.void
        if (pruned.value !== undefined) archives.push(pruned.value)
        return yield* fits(cut)
      })
    ),
    Stream.runDrain
  )
  yield* Space.shrink(sql, options.pace, options.freed)
  const after = yield* size(read)
  return { sessions, events, before, after, archives, failed } satisfies Outcome
}, typed)

/** Whether a session has been pruned as planned, for the account of an interrupted run. */
export const isPruned = Effect.fn("Retention.isPruned")(function* ({ incarnation, sessionID, to }: Cut) {
  const subject = yield* selectSubject(yield* ReadSql, sessionID)
  return subject?.incarnation === incarnation && subject.floor === to
}, typed)

// Prunes in the background, at a bounded rate, while a server runs.

/** What is removed without a person. */
export interface Policy {
  /** Keep the events of this many milliseconds. */
  readonly keep?: number | undefined
  /** Bytes of the file, or of PostgreSQL's tables without their free space. */
  readonly maxSize?: number | undefined
  readonly archive?: string | undefined
  readonly pace?: Pace
  /** The pause between two runs; by default an hour. */
  readonly every?: Duration.DurationInput
}

/** One run for each bound: by age first, then by size. */
const requests = ({ keep, maxSize }: Policy, holders: Holders): ReadonlyArray<Request> => [
  ...(keep === undefined ? [] : [{ keep, holders }]),
  ...(maxSize === undefined ? [] : [{ maxSize, holders }])
]

/**
 * Runs work that the nodes of a database on PostgreSQL do one at a time. A node does nothing while another one is at work,
 * because their claims would take sessions from each other.
 */
const unlessElsewhere = <E, R>(sql: Sql, work: Effect.Effect<void, E, R>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const connection = yield* sql.reserve
      const own = Effect.provideService(SqlClient.TransactionConnection, [connection, 0] as const)
      const name = sql`hashtextextended('daybook retention ' || current_schema(), 0)`
      const [lock] = yield* own(sql<{ readonly held: number }>`SELECT pg_try_advisory_lock(${name}) AS held`)
      if (lock?.held !== 1) return yield* Effect.logDebug("retention: another node is at work")
      yield* Effect.addFinalizer(() => Effect.ignore(own(sql`SELECT pg_advisory_unlock(${name})`)))
      yield* work
    })
  )

/** Applies the policy once, and reports in the log and in metrics what it did. */
export const apply = (policy: Policy) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => {
    const work = applyNow(policy)
    return isPostgres(sql) ? typed(unlessElsewhere(sql, work)) : work
  })

const applyNow = Effect.fn("Retention.apply")(function* (policy: Policy) {
  const holders = readersOf(yield* ConsumerStore, yield* EventLog)
  for (const request of requests(policy, holders)) {
    const outcome = yield* run(request, { pace: policy.pace ?? gentle, archive: policy.archive })
    const { after, before, events, failed, sessions } = outcome
    yield* Metric.incrementBy(Metrics.pruned, events)
    yield* Metric.set(Metrics.databaseBytes, after)
    if (sessions > 0) {
      yield* Effect.logInfo(
        `retention: ${events} events of ${sessions} sessions pruned; ${before} bytes are ${after} now`
      )
    }
    for (const { reason, sessionID } of failed)
      yield* Effect.logWarning(`retention: ${sessionID} was not pruned: ${reason}`)
    if (request.maxSize !== undefined && after > request.maxSize) {
      yield* Effect.logWarning(
        `retention: the database has ${after} bytes, more than ${request.maxSize}; nothing else may go`
      )
    }
  }
})

/** Applies the policy now and after each pause until the scope closes. A failed run is logged. */
export const layerPolicy = <A, E, R>(policy: Policy, pruned: Effect.Effect<A, E, R>) =>
  Layer.scopedDiscard(
    Effect.zipRight(apply(policy), pruned).pipe(
      Effect.catchAllCause((cause) => Effect.logWarning("retention failed; it is tried again", cause)),
      Effect.repeat(Schedule.spaced(policy.every ?? "1 hour")),
      Effect.forkScoped
    )
  )
