/**
 * Prunes one session up to a safe boundary, in steps that each hold the write lock briefly:
 *
 *   claim -> copy what rows refer to and rows of parts into blocks, archive -> raise the floor -> delete both below it
 *
 * Readers see the old floor until one transaction raises it. A process that dies before leaves blocks above the floor,
 * one that dies after leaves events and parts below it: both are invisible, and the next prune of the session removes
 * them. Spec: RT-6..RT-11.
 */
import { randomUUID } from "node:crypto"
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import type * as Statement from "@effect/sql/Statement"
import { Effect, Either, Option, Schema } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import { EventUnreadable } from "../log/EventLog.ts"
import * as EventRow from "../log/EventRow.ts"
import { ofSession, selectCheckedPage, selectIdentity, sessionKey, toEvent, unavailable } from "../log/EventRow.ts"
import { ReadSql } from "../storage/Database.ts"
import { forUpdate, storedBytesOf } from "../storage/Dialect.ts"
import { immediately, retryBusy } from "../storage/Transaction.ts"
import * as Archive from "./Archive.ts"
import { StoredEvent } from "./Archive.ts"
import { type Pace, paced } from "./Pace.ts"
import { checkpoint } from "./Space.ts"
import { type Cut, selectSubject, type Subject } from "./Plan.ts"
import * as PrunedParts from "./PrunedParts.ts"
import { isDecision, isKept } from "./PrunedParts.ts"
import * as Content from "../store/Content.ts"
import * as ContentBlock from "../store/ContentBlock.ts"
import { type CheckedEvent, referencesOf } from "../store/ContentBlock.ts"
import * as SessionBase from "../projection/SessionBase.ts"

/** The session was removed, or another process pruned or restored its events, after the cut was planned. */
export class PruneLost extends Schema.TaggedError<PruneLost>("@daybook/log/PruneLost")("PruneLost", {
  sessionID: Schema.String
}) {
  override get message() {
    return `${this.sessionID} was removed, or another process prunes or restores its events`
  }
}

export interface Step {
  readonly copied: number
  readonly deleted: number
}

export interface PruneOptions {
  readonly pace: Pace
  readonly archive?: string | undefined
  /** Called after each step. */
  readonly progress?: (step: Step) => Effect.Effect<void>
}

type Sql = SqlClient.SqlClient

/** A claimed session. Only the latest claim of a session may continue: of two processes that prune it, the first one stops. */
export interface Claimed {
  readonly subject: Subject
  readonly token: string
  /** Whether it replaced a claim: of a process that died, or that stops now. */
  readonly replaced: boolean
}

/** Fails unless the statement finds a row. */
const unlessLost = ({ sessionID }: Subject, found: Effect.Effect<ReadonlyArray<unknown>, SqlError.SqlError>) =>
  Effect.flatMap(found, (rows): Effect.Effect<void, PruneLost> =>
    rows.length === 1 ? Effect.void : new PruneLost({ sessionID })
  )

const isUnchanged = (sql: Sql, subject: Subject, lock: Statement.Fragment) =>
  unlessLost(
    subject,
    sql`SELECT 1 FROM event_sequence WHERE session_id = ${subject.sessionID}
      AND coalesce(incarnation, 0) = ${subject.incarnation} AND floor = ${subject.floor} ${lock}`
  )

/** Claims a session. On PostgreSQL it waits for a step of the claim before, and for a removal (PG-42). */
export const claim = (sql: Sql, subject: Subject) => {
  const { sessionID } = subject
  const token = randomUUID()
  return retryBusy(
    immediately(sql)(
      Effect.gen(function* () {
        yield* sql`INSERT INTO session_floor (session_id) VALUES (${sessionID}) ON CONFLICT DO NOTHING`
        const [former] = yield* sql<{ readonly claim: string | null }>`SELECT claim FROM session_floor
          WHERE session_id = ${sessionID} ${forUpdate(sql)}`
        yield* isUnchanged(sql, subject, forUpdate(sql))
        yield* sql`UPDATE session_floor SET claim = ${token} WHERE session_id = ${sessionID}`
        return { subject, token, replaced: (former?.claim ?? null) !== null } satisfies Claimed
      })
    )
  )
}

/**
 * Runs a write of a claimed session, unless another claim replaced it or the session changed. On PostgreSQL another claim, a
 * change of the floor and a removal wait for the row that it locks; appends do not (PG-42).
 */
export const asClaimed =
  (sql: Sql, { subject, token }: Claimed) =>
  <A, E>(write: Effect.Effect<A, E>) =>
    retryBusy(
      immediately(sql)(
        unlessLost(
          subject,
          sql`SELECT 1 FROM session_floor WHERE session_id = ${subject.sessionID} AND claim = ${token} ${forUpdate(sql)}`
        ).pipe(Effect.zipRight(isUnchanged(sql, subject, sql.literal(""))), Effect.zipRight(write))
      )
    )

type FloorRow = { readonly base: string | null; readonly position: number | null }

/** The state at the present floor; undefined at the beginning of the log. */
export const selectBase = Effect.fnUntraced(function* (sql: Sql, sessionID: SessionID, floor: number) {
  if (floor < 0) return undefined
  const [row] = yield* sql<FloorRow>`SELECT base, position FROM session_floor WHERE session_id = ${sessionID}`
  const base = SessionBase.decode(row?.base)
  if (Either.isRight(base) && base.right.row.id === sessionID) return { ...base.right, position: row?.position ?? 0 }
  const details = "the session's state at its floor cannot be read"
  return yield* new EventUnreadable({ sessionID, seq: floor, type: "unknown", details })
})

const storedEvents = Schema.decodeUnknownEither(Schema.Array(StoredEvent))

/** Rows per page: with `longPayload`s, at most 4 MiB. */
const pageRows = 64

/** One page of the events that go, decoded and as stored. */
const selectPage = Effect.fnUntraced(function* (sql: Sql, { sessionID, to }: Cut, after: number) {
  const rows = (yield* selectCheckedPage(sql, sessionID, after, pageRows)).filter((row) => Number(row["seq"]) <= to)
  const events: Array<SessionEvent> = []
  for (const row of rows) {
    const event = toEvent(row)
    const seq = after + events.length + 1
    if (Option.isNone(event) || row["seq"] !== seq) return yield* missing(sessionID, seq)
    events.push(yield* event.value)
  }
  return rows.length === 0
    ? yield* missing(sessionID, after + 1)
    : { stored: yield* Effect.orDie(storedEvents(rows)), events }
})

const missing = (sessionID: SessionID, seq: number) =>
  new EventUnreadable({ sessionID, seq, type: "unknown", details: "the row is missing, or of an unknown type" })

/** What the copying of a session carries from page to page. */
interface Copying {
  /** Events whose content the rows of the copied pages need, and that no page had yet. */
  readonly referenced: Set<number>
  readonly idAt: ReturnType<typeof EventRow.makeEventIds>
  /** Holds what does not fill a block yet. */
  readonly divider: ContentBlock.Divider
  base: SessionBase.SessionBase | undefined
  position: number
}

/** Copies the kept events of a page into blocks; the last block waits for more events unless the page is the last. */
const keep = Effect.fnUntraced(function* (
  [sql, read]: readonly [Sql, Sql],
  claimed: Claimed,
  { divider, idAt, referenced }: Copying,
  { events, stored }: Effect.Effect.Success<ReturnType<typeof selectPage>>,
  last: boolean
) {
  const { sessionID } = claimed.subject
  const range = { from: (events[0]?.seq ?? 0) - 1, through: events.at(-1)?.seq ?? -1 }
  const parts = yield* PrunedParts.select(read, sessionID, range)
  const made = yield* Content.selectReferenced(read, sessionID, range)
  for (const seq of [...made, ...parts.flatMap(referencesOf)]) referenced.add(seq)
  const kept = stored.flatMap((row, index): ReadonlyArray<CheckedEvent> => {
    const event = events[index]
    const isReferenced = referenced.delete(row.seq)
    if (event === undefined || !(isKept(event.type) || isReferenced)) return []
    return [{ ...row, id: row.id === idAt(row.created, row.position) ? null : row.id }]
  })
  const full = divider.add(kept, parts)
  const blocks = yield* Effect.forEach(last ? [...full, ...divider.rest()] : full, ContentBlock.pack)
  const decisions = events.filter(({ type }) => isDecision(type))
  if (blocks.length === 0 && decisions.length === 0) return
  yield* asClaimed(
    sql,
    claimed
  )(
    Effect.zipRight(
      Content.insertBlocks(sql, sessionID, blocks),
      Effect.forEach(
        decisions,
        ({ position, seq }) =>
          sql`INSERT INTO kept_decision (position, session_id, seq) VALUES (${position}, ${sessionID}, ${seq})`,
        { discard: true }
      )
    )
  )
})

/** Archives the events that go, and copies kept events into blocks. Returns the state at the new floor. */
const copy = Effect.fnUntraced(function* (
  [sql, read]: readonly [Sql, Sql],
  claimed: Claimed,
  cut: Cut,
  { archive, pace, progress = ignore }: PruneOptions
) {
  const from = yield* selectBase(read, cut.sessionID, cut.floor)
  const database = yield* selectIdentity(read)
  const written = archive === undefined ? undefined : yield* Archive.begin(archive, headerOf(database, cut, from))
  const copying: Copying = {
    referenced: new Set(),
    idAt: EventRow.makeEventIds(database),
    divider: ContentBlock.makeDivider(),
    base: from,
    position: from?.position ?? 0
  }
  const step = Effect.fnUntraced(function* (cursor: number) {
    // Another claim that prunes the session removes events: then the claim is lost, and no event is damaged.
    const page = yield* Effect.catchTag(selectPage(read, cut, cursor), "EventUnreadable", (error) =>
      asClaimed(sql, claimed)(error)
    )
    const { events, stored } = page
    const through = cursor + events.length
    if (written !== undefined) yield* written.add(stored)
    yield* keep([sql, read], claimed, copying, page, through === cut.to)
    for (const event of events) copying.base = SessionBase.after(copying.base, event)
    copying.position = events.at(-1)?.position ?? copying.position
    return through
  })
  for (let cursor = cut.floor; cursor < cut.to;) {
    const through = yield* paced(pace)(step(cursor))
    yield* progress({ copied: through - cursor, deleted: 0 })
    cursor = through
  }
  const { base, position } = copying
  return { base, position, path: yield* written?.finish ?? Effect.succeed(undefined) }
})

const headerOf = (
  database: string,
  cut: Cut,
  base: (SessionBase.SessionBase & { readonly position: number }) | undefined
) => ({
  archive: "daybook" as const,
  version: 1 as const,
  database,
  sessionID: cut.sessionID,
  incarnation: cut.incarnation,
  from: cut.floor,
  to: cut.to,
  head: cut.head,
  base: base ?? null
})

/** Readers see the new floor from here on. */
const raise = (sql: Sql, { sessionID, to }: Cut, base: SessionBase.SessionBase | undefined, position: number) =>
  Effect.zipRight(
    sql`UPDATE event_sequence SET floor = ${to} WHERE session_id = ${sessionID}`,
    sql`UPDATE session_floor SET base = ${base === undefined ? null : SessionBase.encode(base)}, position = ${position}
      WHERE session_id = ${sessionID}`
  )

/** Events per step, and bytes of payloads: a longer one is a step of its own. */
const [stepEvents, stepBytes] = [256, 1024 * 1024]
const stepBlocks = 16

type Sized = { readonly seq: number; readonly bytes: number }

const stepEnd = (rows: ReadonlyArray<Sized>): number | undefined => {
  let bytes = 0
  const over = rows.findIndex((row) => (bytes += row.bytes) > stepBytes)
  return (over < 0 ? rows.at(-1) : rows[Math.max(0, over - 1)])?.seq
}

/** Steps between two checkpoints. SQLite's own copies 8 MB at once, within the commit of a prompt. */
const stepsPerCheckpoint = 2

/** Deletes what one step of the work selects, until nothing is left. */
const inSteps = Effect.fnUntraced(function* (
  sql: Sql,
  claimed: Claimed,
  { pace, progress = ignore }: PruneOptions,
  step: Effect.Effect<number, SqlError.SqlError>
) {
  for (let steps = 1; ; steps++) {
    const deleted = yield* paced(pace)(asClaimed(sql, claimed)(step))
    if (deleted === 0) return
    yield* progress({ copied: 0, deleted })
    if (steps % stepsPerCheckpoint === 0) yield* paced(pace)(checkpoint(sql))
  }
})

/** One step of deleting the events at or below the floor, oldest first. */
const deleteBelow = Effect.fnUntraced(function* (sql: Sql, sessionID: SessionID, floor: number) {
  const rows = yield* sql<Sized>`SELECT e.seq, ${storedBytesOf(sql, "e.data")} AS bytes FROM event e
    WHERE ${ofSession(sql, sessionID)} AND e.seq <= ${floor} ORDER BY e.seq LIMIT ${stepEvents}`
  const end = stepEnd(rows)
  if (end === undefined) return 0
  yield* sql`DELETE FROM event AS e WHERE ${ofSession(sql, sessionID)} AND e.seq <= ${end}`
  return rows.filter(({ seq }) => seq <= end).length
})

const deleteAbove = Effect.fnUntraced(function* (sql: Sql, sessionID: SessionID, floor: number) {
  const rows = yield* sql<{ readonly last: number }>`SELECT last FROM content
    WHERE session = ${sessionKey(sql, sessionID)} AND last > ${floor} ORDER BY last LIMIT ${stepBlocks}`
  const end = rows.at(-1)?.last
  if (end === undefined) return 0
  yield* sql`DELETE FROM content WHERE session = ${sessionKey(sql, sessionID)} AND last > ${floor} AND last <= ${end}`
  yield* sql`DELETE FROM kept_decision WHERE session_id = ${sessionID} AND seq > ${floor} AND seq <= ${end}`
  return rows.length
})

/** Deletes the rows of parts that blocks hold, of messages after `from` up to the floor. */
const deleteParts = (sql: Sql, claimed: Claimed, from: number, { pace }: PruneOptions) => {
  const { floor, sessionID } = claimed.subject
  return Effect.iterate(from, {
    while: (last) => last < floor,
    body: (last) => paced(pace)(asClaimed(sql, claimed)(PrunedParts.deleteStep(sql, sessionID, last, floor)))
  })
}

/** The claim is done. A session that was never pruned has no row. */
const release = (sql: Sql, sessionID: SessionID, floor: number) =>
  Effect.all(
    [
      sql`DELETE FROM kept_decision WHERE session_id = ${sessionID} AND seq > ${floor}`,
      sql`UPDATE session_floor SET claim = NULL WHERE session_id = ${sessionID}`,
      sql`DELETE FROM session_floor WHERE session_id = ${sessionID} AND position IS NULL`
    ],
    { discard: true }
  )

/**
 * Deletes what no reader sees: events and parts after `from` up to the floor, and blocks above it. Only as claimed: a restore
 * puts such events back, and a new session with the id has events of the same numbers.
 */
const sweep = Effect.fnUntraced(function* (sql: Sql, claimed: Claimed, from: number, options: PruneOptions) {
  const { floor, sessionID } = claimed.subject
  yield* inSteps(sql, claimed, options, deleteBelow(sql, sessionID, floor))
  yield* deleteParts(sql, claimed, from, options)
  yield* inSteps(sql, claimed, { ...options, progress: ignore }, deleteAbove(sql, sessionID, floor))
  yield* asClaimed(sql, claimed)(release(sql, sessionID, floor))
})

/** Sweeps after the claim has moved the floor. A later claim of the session does the rest. */
export const sweepMoved = (sql: Sql, { subject, ...claimed }: Claimed, floor: number, options: PruneOptions) =>
  Effect.catchTag(
    sweep(sql, { ...claimed, subject: { ...subject, floor } }, Math.min(subject.floor, floor), options),
    "PruneLost",
    () => Effect.void
  )

const ignore = () => Effect.void

/** Gives a driver's error its type in the log. */
export const typed = <A, E, R>(effect: Effect.Effect<A, E | SqlError.SqlError, R>) =>
  Effect.mapError(effect, (error) =>
    // The compiler does not narrow a type parameter.
    error instanceof SqlError.SqlError ? unavailable("prune")(error) : (error as Exclude<E, SqlError.SqlError>)
  )

/** Finishes what a process that died left of a session's prune. */
export const finish = Effect.fn("Retention.finish")(function* (sessionID: SessionID, options: PruneOptions) {
  const sql = yield* SqlClient.SqlClient
  const subject = yield* selectSubject(sql, sessionID)
  if (subject === undefined) return
  const claimed = yield* claim(sql, subject)
  // Without another claim no process died between the floor and the parts: the walk over all messages would find none.
  yield* sweep(sql, claimed, claimed.replaced ? -1 : subject.floor, options)
}, typed)

/**
 * Prunes a session as planned. Returns the path of its archive, if one was requested. Interruption stops it between two
 * steps; the session is then either as before or pruned, and its next prune finishes the rest.
 */
export const prune = Effect.fn("Retention.prune")(function* (cut: Cut, options: PruneOptions) {
  const [sql, read] = [yield* SqlClient.SqlClient, yield* ReadSql]
  yield* finish(cut.sessionID, options)
  if (cut.to <= cut.floor) return undefined
  const claimed = yield* claim(sql, cut)
  const { base, path, position } = yield* Effect.scoped(copy([sql, read], claimed, cut, options))
  yield* asClaimed(sql, claimed)(raise(sql, cut, base, position))
  yield* sweepMoved(sql, claimed, cut.to, options)
  return path
}, typed)
