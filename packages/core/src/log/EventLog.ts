/**
 * The event log: append-only, gap-free events per session, in one global order. This file is the contract; the SQLite
 * implementation is `SqlEventLog.ts`. The log knows nothing of turns or models. Spec: specs/log.md.
 */
import { Context, Schema, type Effect, type Scope, type Stream } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { Draft, LiveEvent, SessionEvent } from "../events/SessionEvents.ts"
import type { EventID, SessionID } from "../Identifiers.ts"

/** `append` expected the session at another sequence number. Nothing was stored: read, decide again, retry. */
export class SeqConflict extends Schema.TaggedError<SeqConflict>("@daybook/core/SeqConflict")("SeqConflict", {
  sessionID: Schema.String,
  /** The last sequence number that the caller had seen; -1 for an empty session. */
  expected: Schema.Number,
  actual: Schema.Int
}) {
  override get message() {
    return `${this.sessionID} is at seq ${this.actual}, not ${this.expected}: read what is new and try again`
  }
}

/** The appending owner no longer owns the session: another process took it over. Nothing was stored. */
export class OwnerLost extends Schema.TaggedError<OwnerLost>("@daybook/core/OwnerLost")("OwnerLost", {
  sessionID: Schema.String,
  ownerID: Schema.String,
  epoch: Schema.Int
}) {
  override get message() {
    return `${this.ownerID} no longer owns ${this.sessionID} (epoch ${this.epoch} has passed): stop working on it`
  }
}

/** A draft or a replayed event does not fit its schema. Nothing was stored. */
export class InvalidDurableEvent extends Schema.TaggedError<InvalidDurableEvent>("@daybook/core/InvalidDurableEvent")(
  "InvalidDurableEvent",
  { type: Schema.String, details: Schema.String }
) {
  override get message() {
    return `invalid event ${this.type}: ${this.details}`
  }
}

/** The event contradicts what the session already holds, a used message id for one. Nothing was stored. */
export class EventRefused extends Schema.TaggedError<EventRefused>("@daybook/core/EventRefused")("EventRefused", {
  sessionID: Schema.String,
  /** The table whose rule refused it, and the rule in words. */
  table: Schema.String,
  details: Schema.String
}) {
  override get message() {
    return `${this.sessionID}: ${this.details} (${this.table})`
  }
}

/** The database could not do it: busy beyond patience, read-only, full, or broken. `reason` says which. */
export class LogUnavailable extends Schema.TaggedError<LogUnavailable>("@daybook/core/LogUnavailable")(
  "LogUnavailable",
  {
    operation: Schema.String,
    reason: Schema.Literal("busy", "read-only", "disk-full", "corrupt", "io", "closed", "unknown"),
    cause: Schema.Defect
  }
) {
  override get message() {
    return `the database could not ${this.operation}: ${this.reason}`
  }
}

/** A stored event was changed by other hands, is missing, or does not decode. The row is left as it is. */
export class EventUnreadable extends Schema.TaggedError<EventUnreadable>("@daybook/core/EventUnreadable")(
  "EventUnreadable",
  {
    sessionID: Schema.String,
    seq: Schema.Int,
    /** Where it stands among the events of all sessions; not known of a row that is missing. */
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

/** No such session. The id is as it was given: it may be none that Daybook accepts. */
export class SessionNotFound extends Schema.TaggedError<SessionNotFound>("@daybook/core/SessionNotFound")(
  "SessionNotFound",
  {
    sessionID: Schema.String,
    /** It was there: what was followed or asked for is gone, even where a new session has its id. */
    removed: Schema.optionalWith(Schema.Literal(true), { exact: true })
  }
) {
  override get message() {
    return this.removed === true
      ? `session ${this.sessionID} was removed; read again from its beginning if there is a new one under its id`
      : `there is no session ${this.sessionID}`
  }
}

/** The cursor is beyond the latest event, or no number at all: it belongs to another database or to a session that was removed. */
export class CursorAhead extends Schema.TaggedError<CursorAhead>("@daybook/core/CursorAhead")("CursorAhead", {
  cursor: Schema.Number,
  latest: Schema.Int
}) {
  override get message() {
    return `cursor ${this.cursor} is ahead of the latest event, ${this.latest}`
  }
}

/** Events after the cursor were pruned. Start again after `floor`, from a fresh copy of the projected state. */
export class CursorExpired extends Schema.TaggedError<CursorExpired>("@daybook/core/CursorExpired")("CursorExpired", {
  cursor: Schema.Number,
  /** The oldest cursor from which nothing is missing. */
  floor: Schema.Int
}) {
  override get message() {
    return `events after ${this.cursor} are no longer kept; the oldest cursor is ${this.floor}`
  }
}

/** This subscriber of live events did not keep up with its bounded buffer. Others are not affected. */
export class SubscriberOverflow extends Schema.TaggedError<SubscriberOverflow>("@daybook/core/SubscriberOverflow")(
  "SubscriberOverflow",
  { sessionID: Schema.String, capacity: Schema.Int }
) {
  override get message() {
    return `a live subscriber of ${this.sessionID} fell ${this.capacity} events behind and was ended`
  }
}

/** A replayed event that the log cannot take. Nothing was stored. */
export class ReplayRefused extends Schema.TaggedError<ReplayRefused>("@daybook/core/ReplayRefused")("ReplayRefused", {
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

/** Everything that reading a session's stored events can fail with. */
export type ReadError = SessionNotFound | CursorAhead | CursorExpired | EventUnreadable | LogUnavailable
/** Everything that an append can fail with, beside its own commit hook. */
export type AppendError = SeqConflict | OwnerLost | InvalidDurableEvent | EventRefused | LogUnavailable

/** Proof of ownership that the runner's appends carry. A stale token is refused inside the append's transaction. */
export interface OwnerToken {
  readonly ownerID: string
  readonly epoch: number
}

/** What an append may depend on, and what it may do in its transaction. */
export interface AppendOptions<E = never> {
  /** The latest sequence number that the decision was made on; -1 for a session without events. */
  readonly expectedSeq?: number
  readonly owner?: OwnerToken
  /**
   * Runs in the append's transaction after the projections, and sees them (EV-3). Only SQL belongs here: it may run
   * again when a neighbour in the same group commit is refused. Its failure stores nothing of this append.
   */
  readonly commit?: (events: NonEmptyReadonlyArray<SessionEvent>) => Effect.Effect<void, E>
}

/** Where a tail's replay of history ends and following begins. Not a durable event; it moves no cursor. */
export interface ReplayComplete {
  readonly type: "replay.complete"
  /** The cursor at the seam. */
  readonly cursor: number
}

/** An event as another log stored it, to be taken over with its identity and place. */
export interface ForeignEvent {
  readonly id: EventID
  readonly sessionID: SessionID
  readonly seq: number
  /** The stored name, `<type>.<version>`. */
  readonly type: string
  /** Milliseconds since the epoch. */
  readonly created: number
  readonly data: unknown
}

/** A session that was removed with everything that belonged to it. */
export interface Removal {
  /** Its place among removals, from 1, growing, never used twice. */
  readonly number: number
  readonly sessionID: SessionID
  /** The newest position at the time: its events up to here are gone, one after it is of a session made again. */
  readonly position: number
}

/** Who takes events over, and who hears of it. */
export interface ReplayOptions {
  /** Wake tails for the taken events. Off by default: replay rebuilds, it announces nothing (RP-5). */
  readonly notify?: boolean
  /** Who replays. An exact or new replay claims a session that nobody owns (RP-6). */
  readonly ownerID?: string
  /** Fail with `foreign-owner` for a session that another owner replays, in place of ignoring the event. */
  readonly strictOwner?: boolean
}

/** A place in the life of one session. */
export interface Head {
  /** The latest sequence number. */
  readonly seq: number
  /** The life itself: a session that is removed and made again under its id has another one. */
  readonly incarnation: number
}

/** Which events of a session are asked for. */
export interface From {
  readonly sessionID: SessionID
  readonly after?: number | undefined
  /** Where the cursor comes from: it is `SessionNotFound`, with `removed`, once this incarnation has ended. */
  readonly incarnation?: number | undefined
}

/** The event log of one database. */
export class EventLog extends Context.Tag("@daybook/core/EventLog")<
  EventLog,
  {
    /**
     * Stores the drafts at the session's next sequence numbers, with their projections and the commit hook, in one
     * durable transaction, and returns them as stored (EV-1). When it returns, the events survive a power cut. It
     * cannot be interrupted: the outcome is always known, except for `LogUnavailable`.
     */
    readonly append: <E = never>(
      sessionID: SessionID,
      drafts: NonEmptyReadonlyArray<Draft>,
      options?: AppendOptions<E>
    ) => Effect.Effect<NonEmptyReadonlyArray<SessionEvent>, AppendError | E>
    /**
     * The stored events with `seq > after`, ascending, at most `limit` rows looked at (default and maximum 512).
     * Unknown types are left out; `cursor` is the last row's sequence number, to go on from, and `hasMore` says
     * whether rows follow it. With the page's `incarnation`, the next page is of the same session or fails.
     */
    readonly read: (options: From & { readonly limit?: number | undefined }) => Effect.Effect<
      {
        readonly events: ReadonlyArray<SessionEvent>
        readonly cursor: number
        readonly incarnation: number
        readonly hasMore: boolean
      },
      ReadError
    >
    /**
     * Replays the events after the cursor, then follows, without gap or repetition (TL-1). It stays with the
     * incarnation that it began with, and ends only by failing: with `SessionNotFound` when the session is removed.
     */
    readonly tail: (options: From) => Stream.Stream<SessionEvent, ReadError>
    /** `tail` with one `ReplayComplete` at the seam between replay and following (TL-9). */
    readonly tailMarked: (options: From) => Stream.Stream<SessionEvent | ReplayComplete, ReadError>
    /** Events of all sessions after a position, in global order, then follows. */
    readonly feed: (options?: {
      readonly after?: number | undefined
    }) => Stream.Stream<SessionEvent, CursorAhead | EventUnreadable | LogUnavailable>
    /**
     * One page of the feed: the events of all sessions after a position, at most `limit` rows looked at (default and
     * maximum 512), the position to go on from, and whether rows follow. A page ends before an event that cannot be read;
     * one that would begin with it fails, and says where it stands. It does not follow (LG-18).
     */
    readonly readFeed: (options?: {
      readonly after?: number | undefined
      readonly limit?: number | undefined
    }) => Effect.Effect<
      { readonly events: ReadonlyArray<SessionEvent>; readonly position: number; readonly hasMore: boolean },
      CursorAhead | EventUnreadable | LogUnavailable
    >
    /** Sessions that were removed, in order, after a number; at most 512. One may exist again by now (LG-19). */
    readonly removals: (options?: {
      readonly after?: number | undefined
    }) => Effect.Effect<ReadonlyArray<Removal>, LogUnavailable>
    /** Live events of one session from now on, in a buffer of `capacity` (4,096, at most 65,536) of this subscriber's own. */
    readonly live: (options: {
      readonly sessionID: SessionID
      readonly capacity?: number | undefined
    }) => Stream.Stream<LiveEvent, SubscriberOverflow>
    /**
     * `live`, registered when this returns and until the scope closes: of a text that starts in the log after that, no
     * delta is missing, but for an overflow.
     */
    readonly subscribe: (options: {
      readonly sessionID: SessionID
      readonly capacity?: number | undefined
    }) => Effect.Effect<Stream.Stream<LiveEvent, SubscriberOverflow>, never, Scope.Scope>
    /** Hands a live event to those connected; nothing is stored, nobody connected is no error. */
    readonly publishLive: (event: LiveEvent) => Effect.Effect<void>
    /** Where in the session the event with this id is; undefined when the session has none. By key, however long it is. */
    readonly placeOf: (sessionID: SessionID, eventID: string) => Effect.Effect<number | undefined, LogUnavailable>
    /** The latest sequence number and the incarnation it belongs to: a cursor that cannot be mistaken. */
    readonly head: (sessionID: SessionID) => Effect.Effect<Head, SessionNotFound | LogUnavailable>
    /** The latest sequence number; -1 for a session without events. */
    readonly latest: (sessionID: SessionID) => Effect.Effect<number, LogUnavailable>
    /** Takes over events of one session from another log, contiguous, with identity and place (RP-1..RP-5). */
    readonly replay: (
      events: ReadonlyArray<ForeignEvent>,
      options?: ReplayOptions
    ) => Effect.Effect<void, ReplayRefused | InvalidDurableEvent | EventRefused | LogUnavailable>
    /** Makes `ownerID` the one whose replays a session takes (RP-6). Not an execution owner. */
    readonly claimReplay: (sessionID: SessionID, ownerID: string) => Effect.Effect<void, LogUnavailable>
    /** Deletes the session with everything that belongs to it, in one transaction (EV-10). True if it was there. */
    readonly remove: (sessionID: SessionID) => Effect.Effect<boolean, LogUnavailable>
    /**
     * Calls back after each append of this process with its events, before the append returns, until the scope closes.
     * Appends that run at once call at once: positions tell their order. A listener's defect is logged and isolated
     * (EV-7); its interruption is the append's. The events stay either way.
     */
    readonly listen: (
      listener: (events: ReadonlyArray<SessionEvent>) => Effect.Effect<void>
    ) => Effect.Effect<void, never, Scope.Scope>
  }
>() {}
