/**
 * Defines Daybook's identifiers: which strings are valid, and how new ones are generated. A caller's `ses_` or `msg_`
 * id ends in 1-96 of `[A-Za-z0-9._-]`; generated ids end in a monotonic ULID. Spec: ST-1 in specs/storage.md,
 * TO-81..TO-86 in specs/tools.md.
 */
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { monotonicFactory } from "ulid"

const suffix = "[A-Za-z0-9._-]{1,96}"

const identifier = <const Prefix extends string>(prefix: Prefix, what: string) =>
  Schema.String.pipe(
    Schema.pattern(new RegExp(`^${prefix}_${suffix}$`), {
      identifier: what,
      message: () => `expected ${prefix}_ followed by 1-96 letters, digits, dots, underscores or hyphens`
    }),
    Schema.brand(what)
  )

/** `ses_*`: a session and its event stream. */
export const SessionID = identifier("ses", "SessionID")
export type SessionID = typeof SessionID.Type
export const isSessionID = Schema.is(SessionID)

/** `msg_*`: a prompt and the message it becomes, or an assistant, system or other projected message. */
export const MessageID = identifier("msg", "MessageID")
export type MessageID = typeof MessageID.Type
export const isMessageID = Schema.is(MessageID)

/** `evt_*`: a durable event, unique over all sessions. */
export const EventID = identifier("evt", "EventID")
export type EventID = typeof EventID.Type

/** `prt_*`: a text or reasoning part of an assistant message. */
export const PartID = identifier("prt", "PartID")
export type PartID = typeof PartID.Type

/** `act_*`: an activity, from the input that opens it until it settles. */
export const ActivityID = identifier("act", "ActivityID")
export type ActivityID = typeof ActivityID.Type

/** What `Identifiers` offers. */
export interface Service {
  readonly session: Effect.Effect<SessionID>
  readonly message: Effect.Effect<MessageID>
  readonly part: Effect.Effect<PartID>
  readonly activity: Effect.Effect<ActivityID>
}

/**
 * * Generates identifiers in ascending order within one process. The time comes from the `Clock`, the rest from the
 * system's cryptographic random source, so that processes that share a database do not collide.
 *
 * @example
 * ```ts
 * import { Identifiers } from "@daybook/log"
 * import { Effect } from "effect"
 *
 * export const fresh = Effect.flatMap(Identifiers.Identifiers, ({ session }) => session)
 * ```
 */
export class Identifiers extends Context.Tag("@daybook/log/Identifiers")<Identifiers, Service>() {}

/** Random fractions from the system's source, fetched in blocks: fetching each alone costs more than an insert. */
const fractions = (): (() => number) => {
  const pool = new Uint8Array(1024)
  let used = pool.length
  return () => {
    if (used === pool.length) {
      crypto.getRandomValues(pool)
      used = 0
    }
    return (pool[used++] ?? 0) / 256
  }
}

const make = Effect.sync(() => {
  const ulid = monotonicFactory(fractions())
  const next = <ID extends string>(prefix: string, as: (value: string) => ID) =>
    Effect.map(Clock.currentTimeMillis, (now) => as(`${prefix}_${ulid(now)}`))
  return Identifiers.of({
    session: next("ses", (value) => SessionID.make(value, { disableValidation: true })),
    message: next("msg", (value) => MessageID.make(value, { disableValidation: true })),
    part: next("prt", (value) => PartID.make(value, { disableValidation: true })),
    activity: next("act", (value) => ActivityID.make(value, { disableValidation: true }))
  })
})

/** Generates ids from the process's clock and the system's random source. */
export const layer = Layer.effect(Identifiers, make)

// Names a question that a model asks a person, and the error of one that is closed.

/** The `question` call that an answer is for. `messageID` is the assistant message that made the call. */
export const QuestionRef = Schema.Struct({ sessionID: SessionID, messageID: MessageID, callID: Schema.NonEmptyString })
export type QuestionRef = typeof QuestionRef.Type

/** The question is not open: it was answered or dismissed, its call has ended, or it was never asked. */
export class QuestionClosed extends Schema.TaggedError<QuestionClosed>("@daybook/log/QuestionClosed")(
  "QuestionClosed",
  { sessionID: SessionID, messageID: MessageID, callID: Schema.String }
) {
  override get message() {
    return `${this.sessionID} has no open question ${this.callID} in ${this.messageID}: it was answered, dismissed or has ended`
  }
}
