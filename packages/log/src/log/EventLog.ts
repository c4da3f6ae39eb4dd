/**
 * The event log: append-only, gap-free events per session, in one global order. This file is the contract;
 * `SqlEventLog.ts` implements it on SQLite. The log does not know turns or models. Spec: specs/log.md.
 */
import { type Chunk, Context, type Effect, Schema, type Scope, type Stream, type Types } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { EventID, MessageID, SessionID } from "../domain/Identifiers.ts"
import { AnyNumber, ErrorCause, JsonValue } from "../domain/Json.ts"
import { type Draft, type LiveEvent, SessionEvent } from "../events/SessionEvents.ts"

/** `append` expected another latest sequence number. Nothing was stored: read the new events, decide again, retry. */
export class SeqConflict extends Schema.TaggedError<SeqConflict>("@daybook/log/SeqConflict")("SeqConflict", {
  sessionID: Schema.String,
  /** The last sequence number the caller saw; -1 for an empty session. */
  expected: AnyNumber,
  actual: Schema.Int
}) {
  override get message() {
    return `${this.sessionID} is at seq ${this.actual}, not ${this.expected}: read what is new and try again`
  }
}

/** Another process took over the session, so this owner must stop. Nothing was stored. */
export class OwnerLost extends Schema.TaggedError<OwnerLost>("@daybook/log/OwnerLost")("OwnerLost", {
  sessionID: Schema.String,
  ownerID: Schema.String,
  epoch: Schema.Int
}) {
  override get message() {
    return `${this.ownerID} no longer owns ${this.sessionID} (epoch ${this.epoch} has passed): stop working on it`
  }
}

/** A draft or a replayed event does not fit its schema. Nothing was stored. */
export class InvalidDurableEvent extends Schema.TaggedError<InvalidDurableEvent>("@daybook/log/InvalidDurableEvent")(
  "InvalidDurableEvent",
  { type: Schema.String, details: Schema.String }
) {
  override get message() {
    return `invalid event ${this.type}: ${this.details}`
  }
}

/** The event contradicts the session's state, for example a message id that is already used. Nothing was stored. */
export class EventRefused extends Schema.TaggedError<EventRefused>("@daybook/log/EventRefused")("EventRefused", {
  sessionID: Schema.String,
  /** The table whose rule rejected the event; `details` describes the rule. */
  table: Schema.String,
  details: Schema.String
}) {
  override get message() {
    return `${this.sessionID}: ${this.details} (${this.table})`
  }
}

/** The reasons of an unavailable database, in words. */
const reasons = {
  busy: "it is busy",
  "read-only": "it is read-only",
  "disk-full": "the disk is full",
  corrupt: "it is damaged",
  io: "the disk could not be read or written",
  closed: "it is closed",
  away: "it does not answer",
  unknown: "the reason is unknown"
} as const

/**
 * The database is unavailable: busy for too long, read-only, full, corrupt, closed, or away: it does not answer. `reason`
 * says which. Or this kind of database does not support the operation.
 */
export class LogUnavailable extends Schema.TaggedError<LogUnavailable>("@daybook/log/LogUnavailable")(
  "LogUnavailable",
  {
    operation: Schema.String,
    reason: Schema.Literal("busy", "read-only", "disk-full", "corrupt", "io", "closed", "away", "unknown"),
    cause: ErrorCause
  }
) {
  override get message() {
    return `the database could not ${this.operation}: ${reasons[this.reason]}`
  }
}

/** A stored event was changed outside Daybook, is missing, or does not decode. The row stays unchanged. */
export class EventUnreadable extends Schema.TaggedError<EventUnreadable>("@daybook/log/EventUnreadable")(
  "EventUnreadable",
  {
    sessionID: Schema.String,
    seq: Schema.Int,
    /** Position in the global order; absent when the row is missing. */
    position: Schema.optionalWith(Schema.Int, { exact: true }),
    type: Schema.String,
    details: Schema.String
  }
) {
  override get message() {
    return (
      `event ${this.seq} of ${this.sessionID} (${this.type}) cannot be read: ${this.details}; ` +
      "`daybook doctor` says what else is damaged and what to do"
    )
  }
}

/** No such session. `sessionID` is the caller's text and may not be a valid id. */
export class SessionNotFound extends Schema.TaggedError<SessionNotFound>("@daybook/log/SessionNotFound")(
  "SessionNotFound",
  {
    sessionID: Schema.String,
    /** The session existed and was removed, even if a new session has its id. */
    removed: Schema.optionalWith(Schema.Literal(true), { exact: true })
  }
) {
  override get message() {
    return this.removed === true
      ? `session ${this.sessionID} was removed; read again from its beginning if there is a new one under its id`
      : `there is no session ${this.sessionID}`
  }
}

/** The cursor is beyond the latest event or is NaN. It belongs to another database or to a removed session. */
export class CursorAhead extends Schema.TaggedError<CursorAhead>("@daybook/log/CursorAhead")("CursorAhead", {
  cursor: AnyNumber,
  latest: Schema.Int
}) {
  override get message() {
    return `cursor ${this.cursor} is ahead of the latest event, ${this.latest}`
  }
}

/**
 * Events after the cursor were pruned. Restart from `floor` with a fresh copy of the projected state (RT-13). A session's
 * floor is its last removed event, the feed's is the greatest position of a removed event.
 */
export class CursorExpired extends Schema.TaggedError<CursorExpired>("@daybook/log/CursorExpired")("CursorExpired", {
  cursor: AnyNumber,
  /** The oldest valid cursor. */
  floor: Schema.Int
}) {
  override get message() {
    return `events after ${this.cursor} are no longer kept; the oldest cursor is ${this.floor}`
  }
}

/** A text or reasoning that has started and not ended. */
export const OpenText = Schema.Struct({
  type: Schema.Literal("text", "reasoning"),
  id: Schema.String,
  assistantMessageID: MessageID,
  /** The deltas so far, joined; undefined above the limit. */
  said: Schema.UndefinedOr(Schema.String)
})
export type OpenText = typeof OpenText.Type

/** This live subscriber overflowed its bounded buffer. Other subscribers are not affected. */
export class SubscriberOverflow extends Schema.TaggedError<SubscriberOverflow>("@daybook/log/SubscriberOverflow")(
  "SubscriberOverflow",
  { sessionID: Schema.String, capacity: Schema.Int }
) {
  override get message() {
    return `a live subscriber of ${this.sessionID} fell ${this.capacity} events behind and was disconnected`
  }
}

/** The live events of one session from now on, and the deltas before that of texts in progress. */
export interface LiveSubscription {
  readonly live: Stream.Stream<LiveEvent, SubscriberOverflow>
  readonly soFar: ReadonlyArray<OpenText>
}

/** Runs beside a subscriber and gives it the live events of other processes. */
export type LiveRelay = (sessionID: SessionID, tell: (event: LiveEvent) => void) => Effect.Effect<void>

/** The log rejects a replayed event. Nothing was stored. */
export class ReplayRefused extends Schema.TaggedError<ReplayRefused>("@daybook/log/ReplayRefused")("ReplayRefused", {
  reason: Schema.Literal(
    "divergence",
    "gap",
    "event-id-taken",
    "mixed-sessions",
    "session-mismatch",
    "unknown-type",
    "foreign-owner"
  ),
  sessionID: Schema.String,
  seq: Schema.Int,
  details: Schema.String
}) {
  override get message() {
    return `cannot replay event ${this.seq} of ${this.sessionID}: ${this.details}`
  }
}

/** Every error of reading a session's stored events. */
export const ReadError = Schema.Union(SessionNotFound, CursorAhead, CursorExpired, EventUnreadable, LogUnavailable)
export type ReadError = typeof ReadError.Type
/** Every error of an append, except the failure of its commit hook. */
export const AppendError = Schema.Union(SeqConflict, OwnerLost, InvalidDurableEvent, EventRefused, LogUnavailable)
export type AppendError = typeof AppendError.Type

/** Proof of ownership in the runner's appends. The append's transaction rejects a stale token. */
export const OwnerToken = Schema.Struct({ ownerID: Schema.String, epoch: Schema.Int })
export type OwnerToken = typeof OwnerToken.Type

export const CommitHookTypeId: unique symbol = Symbol.for("@daybook/log/CommitHook")

/**
 * Work inside an append's transaction, after the projections, which it sees; it may refuse the append with `E`. The
 * services beside a log make its hooks (`Inbox`, `SessionStore`, `QuestionStore`), and callers only pass them on: so a
 * caller knows no database, and a log runs only hooks of its own kind (EV-3).
 */
export interface CommitHook<out E = never> {
  readonly [CommitHookTypeId]: { readonly _E: Types.Covariant<E> }
}

export interface AppendOptions<E = never> {
  /** The latest sequence number the decision is based on; -1 for a session without events. */
  readonly expectedSeq?: number
  readonly owner?: OwnerToken
  /**
   * The times of the events, one for each draft: an import keeps the times of its source (LG-80). Default: now.
   */
  readonly times?: ReadonlyArray<number>
  /** Runs in the append's transaction. If it fails, nothing of this append is stored. */
  readonly commit?: CommitHook<E>
}

/** Marks where a tail's replay ends and following begins. It is not a durable event and moves no cursor. */
export const ReplayComplete = Schema.Struct({
  type: Schema.Literal("replay.complete"),
  /** The cursor at the seam. */
  cursor: Schema.Int
})
export type ReplayComplete = typeof ReplayComplete.Type

/** What a reader of one session is given: a stored event, the seam, or a delta of the running turn. */
export type Followed = SessionEvent | ReplayComplete | LiveEvent

/** An event of another log, to be replayed with its id and sequence number. */
export const ForeignEvent = Schema.Struct({
  id: EventID,
  sessionID: SessionID,
  seq: Schema.Int,
  /** The stored name, `<type>.<version>`. */
  type: Schema.String,
  /** Milliseconds since the epoch. */
  created: Schema.Int,
  data: JsonValue
})
export type ForeignEvent = typeof ForeignEvent.Type

/** The record of a removed session; all its rows are deleted. */
export const Removal = Schema.Struct({
  /** Number of the removal: starts at 1, grows, is never reused. */
  number: Schema.Int,
  sessionID: SessionID,
  /** The newest position at removal. Events of this id up to it are gone; later ones belong to a new session. */
  position: Schema.Int
})
export type Removal = typeof Removal.Type

/** Who replays, and whether tails wake. */
export interface ReplayOptions {
  /** Wakes tails for the replayed events. Off by default: replay rebuilds rows and announces nothing (RP-5). */
  readonly notify?: boolean
  /** The replaying owner. An exact or new replay claims a session without a replay owner (RP-6). */
  readonly ownerID?: string
  /** If another owner replays the session, fails with `foreign-owner`. By default the replay is ignored. */
  readonly strictOwner?: boolean
}

/** The current end of a session's log. */
export const Head = Schema.Struct({
  /** The latest sequence number. */
  seq: Schema.Int,
  /** Identifies this life of the session: a session recreated under the same id has another incarnation. */
  incarnation: Schema.Int
})
export type Head = typeof Head.Type

/** Selects events of one session. Without `after`, from the beginning. */
export const From = Schema.Struct({
  sessionID: SessionID,
  after: Schema.optional(AnyNumber),
  /** The incarnation of the cursor. Once it has ended, the cursor fails with `SessionNotFound` and `removed`. */
  incarnation: Schema.optional(AnyNumber)
})
export type From = typeof From.Type

/** Selects one page of a session's events. */
export const ReadOptions = Schema.Struct({ ...From.fields, limit: Schema.optional(AnyNumber) })
export type ReadOptions = typeof ReadOptions.Type

/** One page of a session's events. */
export const EventPage = Schema.Struct({
  events: Schema.Array(SessionEvent),
  cursor: Schema.Int,
  incarnation: Schema.Int,
  hasMore: Schema.Boolean
})
export type EventPage = typeof EventPage.Type

export const FeedPage = Schema.Struct({
  events: Schema.Array(SessionEvent),
  position: Schema.Int,
  hasMore: Schema.Boolean
})
export type FeedPage = typeof FeedPage.Type

/** What `EventLog` offers. */
export interface Service {
  /** Names the database: eight hexadecimal digits, chosen at its creation. A copy has the same. */
  readonly identity: string
  /**
   * Stores the drafts at the session's next sequence numbers, with their projections and the commit hook, in one
   * durable transaction, and returns the stored events (EV-1). When it returns, the events survive a power cut. It is
   * uninterruptible, so the outcome is always known, except after `LogUnavailable`.
   */
  readonly append: <E = never>(
    sessionID: SessionID,
    drafts: NonEmptyReadonlyArray<Draft>,
    options?: AppendOptions<E>
  ) => Effect.Effect<NonEmptyReadonlyArray<SessionEvent>, AppendError | E>
  /**
   * Returns the stored events with `seq > after`, ascending; reads at most `limit` rows (default and maximum 512).
   * Unknown types are skipped. `cursor` is the last row's sequence number, the start of the next page; `hasMore` says
   * whether rows follow. If you pass the page's `incarnation`, the next page is of the same session or fails.
   */
  readonly read: (options: ReadOptions) => Effect.Effect<EventPage, ReadError>
  /**
   * Replays the events after the cursor, then follows, without gap or repetition (TL-1). The tail stays with the
   * incarnation it started with. It ends only by failing: with `SessionNotFound` if the session is removed.
   */
  readonly tail: (options: From) => Stream.Stream<SessionEvent, ReadError>
  /**
   * `tail` without a stream, which takes 20 KB for as long as it follows: each run of the returned effect gives the next events, or
   * none. The tail is closed with the scope.
   */
  readonly pull: (
    options: From
  ) => Effect.Effect<Effect.Effect<Chunk.Chunk<SessionEvent>, ReadError>, never, Scope.Scope>
  /** `tail` with one `ReplayComplete` at the seam between replay and following (TL-9). */
  readonly tailMarked: (options: From) => Stream.Stream<SessionEvent | ReplayComplete, ReadError>
  /**
   * `tailMarked` with live deltas behind the seam. The deltas of a text are a beginning of it, stand between its start
   * and its end, and are joined for a reader that is behind; one far behind gets only the stored text (LG-90).
   */
  readonly follow: (options: From) => Stream.Stream<Followed, ReadError>
  /**
   * Replays the events of all sessions after a position, in global order, then follows. After an event at a position,
   * no event appears at or below it, whatever processes append meanwhile, so a position is a complete cursor (LG-42).
   * Positions may have gaps; only their order has a meaning (LG-41). If events after the position were pruned, it
   * fails with `CursorExpired` (LG-59).
   */
  readonly feed: (options?: {
    readonly after?: number | undefined
  }) => Stream.Stream<SessionEvent, CursorAhead | CursorExpired | EventUnreadable | LogUnavailable>
  /**
   * Returns one page of the feed and does not follow (LG-18): the events of all sessions after a position, at most
   * `limit` rows (default and maximum 512), the next position, and whether rows follow. A page ends before an
   * unreadable event; a page that would start with one fails with its position. If events after the position were
   * pruned, it fails with `CursorExpired`; with `gaps` it returns the remaining events instead; gaps show in
   * each session's sequence numbers (LG-62).
   */
  readonly readFeed: (options?: {
    readonly after?: number | undefined
    readonly limit?: number | undefined
    readonly gaps?: boolean | undefined
  }) => Effect.Effect<FeedPage, CursorAhead | CursorExpired | EventUnreadable | LogUnavailable>
  /**
   * Registers a signal for one session, or for all sessions, until the scope closes. The returned effect waits until
   * there may be new events or a removal since it last returned, by any process: read again. Signals merge, and may be
   * spurious (LG-58).
   */
  readonly changes: (sessionID?: SessionID) => Effect.Effect<Effect.Effect<void>, never, Scope.Scope>
  /** Removed sessions after a number, in order, at most 512. Their ids may be in use again (LG-19). */
  readonly removals: (options?: {
    readonly after?: number | undefined
  }) => Effect.Effect<ReadonlyArray<Removal>, LogUnavailable>
  /** Live events of one session from now on, through a buffer of `capacity` events (default 4,096, most 65,536). */
  readonly live: (options: {
    readonly sessionID: SessionID
    readonly capacity?: number | undefined
  }) => Stream.Stream<LiveEvent, SubscriberOverflow>
  /**
   * `live`, already registered when this returns and until the scope closes. `soFar` holds the earlier deltas of each
   * text that this process has in progress. Except after an overflow, no delta of any other text is missing, even if
   * the log already holds the text's start.
   */
  readonly subscribe: (options: {
    readonly sessionID: SessionID
    readonly capacity?: number | undefined
  }) => Effect.Effect<LiveSubscription, never, Scope.Scope>
  /**
   * `subscribe` without a buffer: calls what `begin` returns with each live event, in the step that publishes it, until
   * the scope closes. Use it for many readers that each bound their own queue. Neither function may throw.
   */
  readonly hear: (
    sessionID: SessionID,
    begin: (soFar: ReadonlyArray<OpenText>) => (event: LiveEvent) => void
  ) => Effect.Effect<void, never, Scope.Scope>
  /** Sends a live event to the current subscribers. Nothing is stored; having no subscriber is not an error. */
  readonly publishLive: (event: LiveEvent) => Effect.Effect<void>
  /** `publishLive`, at once and without an effect: an answer has thousands of deltas. */
  readonly sendLive: (event: LiveEvent) => void
  /** Each subscriber that begins before the scope closes hears this relay too, until it ends. */
  readonly relayLive: (relay: LiveRelay) => Effect.Effect<void, never, Scope.Scope>
  /** The sequence number of the event with this id; undefined if the session has none. A key lookup. */
  readonly placeOf: (sessionID: SessionID, eventID: string) => Effect.Effect<number | undefined, LogUnavailable>
  /**
   * The cursors in a session of this process's tails, also of those of the feed, that moved in the last ten minutes:
   * a prune keeps the events that these tails have not read (RT-50).
   */
  readonly tailing: (sessionID: SessionID) => Effect.Effect<ReadonlyArray<number>, LogUnavailable>
  /** The latest sequence number and its incarnation: together an unambiguous cursor. */
  readonly head: (sessionID: SessionID) => Effect.Effect<Head, SessionNotFound | LogUnavailable>
  /** The latest sequence number; -1 for a session without events. */
  readonly latest: (sessionID: SessionID) => Effect.Effect<number, LogUnavailable>
  /** Replays contiguous events of one session from another log, with their ids and sequence numbers (RP-1..RP-5). */
  readonly replay: (
    events: ReadonlyArray<ForeignEvent>,
    options?: ReplayOptions
  ) => Effect.Effect<void, ReplayRefused | InvalidDurableEvent | EventRefused | LogUnavailable>
  /** Sets the only owner whose replays the session accepts (RP-6). This is not execution ownership. */
  readonly claimReplay: (sessionID: SessionID, ownerID: string) => Effect.Effect<void, LogUnavailable>
  /** Deletes the session and all that belongs to it, in one transaction (EV-10). Returns whether it existed. */
  readonly remove: (sessionID: SessionID) => Effect.Effect<boolean, LogUnavailable>
  /**
   * Commits a write that changes nothing: fails when an append would, because the database is full, read-only, or
   * locked for longer than two seconds.
   */
  readonly probe: Effect.Effect<void, LogUnavailable>
  /**
   * Calls the listener with the events of each append of this process, before the append returns, until the scope
   * closes. Concurrent appends call listeners concurrently; positions give the order. A listener's defect is logged
   * and isolated (EV-7); its interruption interrupts the append. The events stay stored either way.
   */
  readonly listen: (
    listener: (events: ReadonlyArray<SessionEvent>) => Effect.Effect<void>
  ) => Effect.Effect<void, never, Scope.Scope>
}

/**
 * The event log of one database.
 *
 * @example
 * ```ts
 * import { EventLog, Store } from "@daybook/log"
 * import { Effect, Stream } from "effect"
 *
 * // Prints every event of every session, those of other processes too.
 * export const printed = Effect.flatMap(EventLog.EventLog, (log) =>
 *   Stream.runForEach(log.feed(), ({ sessionID, type }) => Effect.log(sessionID, type))
 * ).pipe(Effect.provide(Store.layer({ filename: "daybook.sqlite" })))
 * ```
 */
export class EventLog extends Context.Tag("@daybook/log/EventLog")<EventLog, Service>() {}
