/**
 * Replays events of another log with their ids and sequence numbers. Events that are already stored must be identical;
 * new ones must follow the head without a gap. Replay writes rows and starts no work (RP-5). Spec: RP-1..RP-6.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import { Array as Arr, Data, Effect, Either, Equal, Option, Predicate, Schema } from "effect"
import { EventID, SessionID } from "../domain/Identifiers.ts"
import * as Registry from "../events/Registry.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import { lockLog } from "../storage/Dialect.ts"
import { directly, reasonOf } from "../storage/Transaction.ts"
import { isEventRefused, runProjectors, type Target, toAppendError, writeRows } from "./Appends.ts"
import {
  type EventRefused,
  type ForeignEvent,
  InvalidDurableEvent,
  type LogUnavailable,
  type ReplayOptions,
  ReplayRefused
} from "./EventLog.ts"
import { checksumOf, insertEvents, type NewEvent, pageSize, selectByID, selectEvents, unavailable } from "./EventRow.ts"
import { incarnationOf, type Last, type Moved, selectLast, writeHead } from "./Heads.ts"
import type { Commit } from "./Tails.ts"

/** The envelope of a foreign event, validated before anything else reads it (EV-5). */
const Foreign = Schema.Struct({
  id: EventID,
  sessionID: SessionID,
  seq: Schema.NonNegativeInt,
  type: Schema.NonEmptyString,
  created: Schema.Int,
  data: Schema.Record({ key: Schema.String, value: Schema.Unknown })
})

/** Converts a JSON value to a form that compares deeply, ignoring key order. */
const canonical = (value: unknown): unknown =>
  Array.isArray(value)
    ? Data.array(value.map(canonical))
    : typeof value === "object" && value !== null
      ? Data.struct(Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, canonical(inner)])))
      : value

/** Whether two JSON values are deeply equal, ignoring key order. */
export const sameJson = (a: unknown, b: unknown): boolean => Equal.equals(canonical(a), canonical(b))

const refuse = (event: ForeignEvent, reason: ReplayRefused["reason"], details: string) =>
  new ReplayRefused({ reason, sessionID: String(event.sessionID), seq: event.seq, details })

type Checked = readonly [ForeignEvent, Registry.DecodedEvent]

/** Validates without the database: envelopes, payloads, a single session, no gaps and no repeated ids. */
export const check = (events: ReadonlyArray<ForeignEvent>) => {
  const checked: Array<Checked> = []
  const ids = new Set<string>()
  for (const [index, raw] of events.entries()) {
    const decoded = Schema.decodeUnknownEither(Foreign)(raw)
    if (Either.isLeft(decoded)) {
      const type = Predicate.hasProperty(raw, "type") ? String(raw.type) : "unknown"
      return Either.left(new InvalidDurableEvent({ type, details: decoded.left.message }))
    }
    const event = decoded.right
    const before = checked[index - 1]?.[0]
    const { sessionID: inside } = event.data
    if (inside !== undefined && inside !== event.sessionID) {
      return Either.left(refuse(event, "session-mismatch", `its payload belongs to ${String(inside)}`))
    }
    if (before !== undefined && before.sessionID !== event.sessionID) {
      return Either.left(refuse(event, "mixed-sessions", `the events before it belong to ${before.sessionID}`))
    }
    if (before !== undefined && before.seq + 1 !== event.seq) {
      return Either.left(refuse(event, "gap", `the event before it is ${before.seq}`))
    }
    if (ids.has(event.id))
      return Either.left(refuse(event, "event-id-taken", `${event.id} came earlier in this replay`))
    ids.add(event.id)
    const payload = Registry.decode(event.type, event.data)
    if (Option.isNone(payload)) {
      return Either.left(refuse(event, "unknown-type", `this build does not know ${event.type}`))
    }
    if (Either.isLeft(payload.value)) {
      return Either.left(new InvalidDurableEvent({ type: event.type, details: payload.value.left.message }))
    }
    checked.push([event, payload.value.right])
  }
  return Either.right(checked)
}

/** A stored payload that is not valid JSON (the file was edited) equals nothing. */
const isSameData = (data: unknown, given: unknown): boolean =>
  Either.match(Schema.decodeUnknownEither(Schema.parseJson())(data), {
    onLeft: () => false,
    onRight: (stored) => sameJson(stored, given)
  })

const compare = (
  event: ForeignEvent,
  stored: Readonly<Record<string, unknown>> | undefined
): ReplayRefused | undefined => {
  if (stored === undefined) return refuse(event, "divergence", "the event stored there is no longer kept")
  if (stored["id"] !== event.id)
    return refuse(event, "divergence", `${String(stored["id"])} is stored there, not ${event.id}`)
  if (stored["type"] !== event.type) return refuse(event, "divergence", `a ${String(stored["type"])} is stored there`)
  return isSameData(stored["data"], event.data) ? undefined : refuse(event, "divergence", "its data differs")
}

/** What a replay stores: the session's new head, its events, and their rows. */
export interface Fresh {
  readonly sessionID: SessionID
  readonly head: Moved
  /** The session has no row yet. */
  readonly isNew: boolean
  readonly rows: ReadonlyArray<NewEvent>
  readonly events: Arr.NonEmptyReadonlyArray<SessionEvent>
}

/** Where events are replayed to, inside a write transaction. */
export interface ReplayTarget {
  readonly sql: SqlClient.SqlClient
  readonly idAt: Target["idAt"]
  /** The last numbers given. */
  readonly last: Effect.Effect<Last, SqlError.SqlError>
  readonly store: (fresh: Fresh) => Effect.Effect<void, SqlError.SqlError | EventRefused>
}

/** Pages of events, so that no statement grows with the length of the replay. */
export const pagesOf = (events: Arr.NonEmptyReadonlyArray<SessionEvent>) => Arr.chunksOf(events, pageSize)

/** Replays to SQLite. */
export const targetOf = (target: Target): ReplayTarget => {
  const { idAt, sql, types } = target
  return {
    sql,
    idAt,
    last: directly(sql, selectLast),
    store: ({ events, head, isNew, rows, sessionID }) => {
      const pages = pagesOf(events)
      const keys = new Map([[sessionID, head.session]])
      return directly(
        sql,
        (statements) => {
          types.begin()
          writeHead(statements, sessionID, head, isNew)
          insertEvents(statements, types, rows)
          for (const page of pages) writeRows(statements, page, keys)
          for (const page of pages) runProjectors(target, page)
        },
        isEventRefused
      )
    }
  }
}

/** Replays the events inside a write transaction. Returns the new ones, or undefined if there are none. */
export const replay = ({ idAt, last: selectNumbers, sql, store }: ReplayTarget) =>
  Effect.fnUntraced(function* (checked: Arr.NonEmptyReadonlyArray<Checked>, options: ReplayOptions) {
    const [first] = checked[0]
    const { sessionID } = first
    yield* lockLog(sql)
    const [head] = yield* sql<{
      readonly session: number
      readonly seq: number
      readonly incarnation: number | null
      readonly replay_owner: string | null
    }>`
      SELECT session, seq, incarnation, replay_owner FROM event_sequence WHERE session_id = ${sessionID}`
    const owner = head?.replay_owner ?? null
    if (owner !== null && owner !== (options.ownerID ?? null)) {
      if (options.strictOwner === true) return yield* refuse(first, "foreign-owner", `${owner} replays this session`)
      return undefined
    }
    const latest = head?.seq ?? -1
    if (first.seq > latest + 1) return yield* refuse(first, "gap", `the latest event here is ${latest}`)
    const fresh: Array<SessionEvent> = []
    const rows: Array<NewEvent> = []
    const last = yield* selectNumbers
    let { position } = last
    const session = head?.session ?? last.session + 1
    const incarnation = incarnationOf(head, position + 1)
    for (const [event, decoded] of checked) {
      if (event.seq <= latest) {
        const [stored] = yield* selectEvents(sql, sql`WHERE s.session_id = ${sessionID} AND e.seq = ${event.seq}`)
        const divergence = compare(event, stored)
        if (divergence !== undefined) return yield* divergence
        continue
      }
      const taken = yield* selectByID(sql, event.id)
      if (taken !== undefined) {
        const where = taken.session_id ?? "a session that is being removed; try again"
        return yield* refuse(event, "event-id-taken", `${event.id} is in ${where}`)
      }
      position += 1
      const { created, id, seq, type } = event
      const data = JSON.stringify(event.data)
      const checksum = checksumOf({ id, session_id: sessionID, seq, type, created, data })
      // An event that returns to its own place needs no stored id.
      const stored = idAt(created, position) === id ? null : id
      rows.push({ position, session, seq, type, created, checksum, id: stored, data })
      fresh.push({ position, id, sessionID, seq, created, ...decoded } as SessionEvent)
    }
    const newest = fresh.at(-1)
    if (newest !== undefined && Arr.isNonEmptyArray(fresh)) {
      const moved = { session, seq: newest.seq, incarnation }
      yield* store({ sessionID, head: moved, isNew: head === undefined, rows, events: fresh })
    }
    if (options.ownerID !== undefined) {
      yield* sql`UPDATE event_sequence SET replay_owner = ${options.ownerID}
        WHERE session_id = ${sessionID} AND replay_owner IS NULL`
    }
    return Arr.isNonEmptyArray(fresh) ? ({ incarnation, events: fresh } satisfies Commit) : undefined
  })

/** Converts a transaction failure to the log's error types. */
export const toReplayError = (
  error: SqlError.SqlError | EventRefused | ReplayRefused | InvalidDurableEvent,
  sessionID: SessionID
): EventRefused | ReplayRefused | InvalidDurableEvent | LogUnavailable => {
  if (!(error instanceof SqlError.SqlError)) return error
  if (reasonOf(error) !== "constraint") return unavailable("replay")(error)
  return toAppendError(sessionID, error)
}
