/**
 * Keeps what consumers need between runs: cursors, poison events, and which instance runs. This file is the contract;
 * `SqlConsumerStore.ts` implements it, `Consumer.ts` uses it. Spec: specs/log.md.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Context, type Effect, Schema, type Scope } from "effect"
import { SessionID } from "../domain/Identifiers.ts"
import type { LogUnavailable, SessionNotFound } from "../log/EventLog.ts"

/** A newer instance of the consumer started, or the consumer was removed. This instance has stored nothing since. */
export class ConsumerReplaced extends Schema.TaggedError<ConsumerReplaced>("@daybook/log/ConsumerReplaced")(
  "ConsumerReplaced",
  { consumer: Schema.String }
) {
  override get message() {
    return `another instance of consumer ${this.consumer} took over, or the consumer was removed: stop this instance`
  }
}

/** A consumer of this name follows something else. */
export class ConsumerMismatch extends Schema.TaggedError<ConsumerMismatch>("@daybook/log/ConsumerMismatch")(
  "ConsumerMismatch",
  { consumer: Schema.String, follows: Schema.String }
) {
  override get message() {
    return `consumer ${this.consumer} follows ${this.follows}: choose another name, or remove the consumer first`
  }
}

export const describeSource = (sessionID: SessionID | undefined): string => sessionID ?? "the feed"

export interface ConsumerCursor {
  /** The last applied event: its position in the feed, or its sequence number in the session. */
  readonly cursor: number
  /** The last delivered removal of the feed. */
  readonly removals: number
  /** The life of the session that the cursor belongs to; undefined before the first page, and for the feed. */
  readonly incarnation: number | undefined
}

/** The right of one instance to move the consumer's cursor, until a newer instance starts. */
export interface Claim {
  readonly name: string
  /** Grows with each instance. */
  readonly epoch: number
  readonly place: ConsumerCursor
}

/** An event that the consumer could not apply. */
export const PoisonEvent = Schema.Struct({
  /** Its place in the consumer's source. */
  cursor: Schema.Int,
  /** Absent if the session does not exist, as for an unreadable event that names none, and for a snapshot of the feed. */
  sessionID: Schema.optionalWith(Schema.String, { exact: true }),
  /** -1 for a removal or a snapshot. */
  seq: Schema.Int,
  /** Absent if the event's row is missing. */
  position: Schema.optionalWith(Schema.Int, { exact: true }),
  type: Schema.String,
  /** Why it could not be applied. Not stored without a session, whose removal would delete it: it may quote one. */
  details: Schema.String
})
export type PoisonEvent = typeof PoisonEvent.Type

/** A skipped event, with the time of the skip in milliseconds since the epoch. */
export const SkippedEvent = Schema.Struct({ ...PoisonEvent.fields, time: Schema.Int })
export type SkippedEvent = typeof SkippedEvent.Type

/** A consumer's cursor, lag, state and skipped events. */
export const ConsumerStatus = Schema.Struct({
  name: Schema.String,
  /** The session that it follows; absent for the feed. */
  sessionID: Schema.optionalWith(SessionID, { exact: true }),
  cursor: Schema.Int,
  /** How far the cursor is behind its source. In the feed this is an upper bound, because positions have gaps. */
  lag: Schema.Int,
  /** `running`: an instance runs; `stopped`: at `poison`, until it is run again; `idle`: neither. */
  state: Schema.Literal("running", "stopped", "idle"),
  /** The event at which the consumer stopped. */
  poison: Schema.optionalWith(PoisonEvent, { exact: true }),
  /** Number of events that it skipped. */
  skipped: Schema.Int,
  /** When the cursor last moved, in milliseconds since the epoch. */
  updated: Schema.Int
})
export type ConsumerStatus = typeof ConsumerStatus.Type

/** The need of a consumer for events of a session. */
export interface Hold {
  readonly consumer: string
  /** The consumer still needs the events after this sequence number. */
  readonly seq: number
}

/** Which consumer to claim. */
export interface ClaimOptions {
  readonly name: string
  readonly sessionID: SessionID | undefined
  /** Where a new consumer starts. */
  readonly start: "beginning" | "end"
}

/** The consumers of one database. */
export class ConsumerStore extends Context.Tag("@daybook/log/ConsumerStore")<
  ConsumerStore,
  {
    /**
     * Registers the consumer if it is new, and replaces its current instance. The claim ends with the scope.
     * `SessionNotFound`: a new consumer of a session that does not exist.
     */
    readonly claim: (
      options: ClaimOptions
    ) => Effect.Effect<Claim, ConsumerMismatch | SessionNotFound | LogUnavailable, Scope.Scope>
    /** Fails if another instance has replaced this one. */
    readonly check: (claim: Claim) => Effect.Effect<void, ConsumerReplaced | LogUnavailable>
    /** Moves the cursor and runs the work in one transaction: both are stored, or neither. */
    readonly commit: <A, E, R>(
      claim: Claim,
      to: ConsumerCursor,
      work: Effect.Effect<A, E, R>
    ) => Effect.Effect<A, E | ConsumerReplaced | LogUnavailable, Exclude<R, SqlClient.SqlClient>>
    /** Moves the cursor past an event and records it. */
    readonly skip: (
      claim: Claim,
      to: ConsumerCursor,
      event: PoisonEvent
    ) => Effect.Effect<void, ConsumerReplaced | LogUnavailable>
    /** Records the event at which the consumer stops. The next claim deletes the record. */
    readonly stop: (claim: Claim, event: PoisonEvent) => Effect.Effect<void, ConsumerReplaced | LogUnavailable>
    /** Removes the consumer and runs the work in one transaction: its session was removed. */
    readonly finish: <A, E, R>(
      claim: Claim,
      work: Effect.Effect<A, E, R>
    ) => Effect.Effect<A, E | ConsumerReplaced | LogUnavailable, Exclude<R, SqlClient.SqlClient>>
    readonly list: Effect.Effect<ReadonlyArray<ConsumerStatus>, LogUnavailable>
    readonly get: (name: string) => Effect.Effect<ConsumerStatus | undefined, LogUnavailable>
    readonly skipped: (name: string, after?: number) => Effect.Effect<ReadonlyArray<SkippedEvent>, LogUnavailable>
    /** Forgets the consumer, its cursor and its records. Returns whether it existed. */
    readonly remove: (name: string) => Effect.Effect<boolean, LogUnavailable>
    /** Which consumers still need events of the session, and from where. Pruning must not go beyond the smallest. */
    readonly holds: (sessionID: SessionID) => Effect.Effect<ReadonlyArray<Hold>, LogUnavailable>
  }
>() {}
