/**
 * Prompts a session and waits for the settled answer. The answer is read from the log, so that it is the same in every
 * process and at every repetition. Interrupting the caller only ends its waiting. Spec: specs/inbox.md IB-50..IB-56.
 * prompt ─> tail ─────────────────────────────> the end of its activity └> this process is idle ─> log's end ─┘ or: no
 * run took the prompt, specs/inbox.md IB-50..IB-56.
 */
import { Effect, Option, Schema, Stream } from "effect"
import type { SessionOwner } from "@daybook/log/coordination/SessionOwner"
import { ActivityID, MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { AssistantMessage, type Input } from "@daybook/log/domain/Message"
import { type ActivityOutcome, JsonRecord, StoredError } from "@daybook/log/domain/Values"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import type { EventLog } from "@daybook/log/log/EventLog"
import type { SessionStore } from "@daybook/log/store/SessionStore"
import { isBlank } from "@daybook/log/support/Text"
import { outputTool, structuredOutput } from "../request/StructuredOutput.ts"
import type { RunError } from "../runner/RunError.ts"
import type { SessionExecution } from "./SessionExecution.ts"
import type { AskOptions, PromptOptions } from "./SessionOptions.ts"

// Defines the answer to a prompt, and why there is none.

const optional = <S extends Schema.Schema.All>(schema: S) => Schema.optionalWith(schema, { exact: true })

/** The settled answer to a prompt: the same whenever it is asked for again. */
export const Answer = Schema.Struct({
  /** The prompt. */
  messageID: MessageID,
  /** The activity that answered it. */
  activityID: ActivityID,
  /** The text of the answer: the last one of the activity; empty if the model wrote none. */
  text: Schema.String,
  /** The structured answer, if one was requested. */
  output: optional(JsonRecord),
  /** The message with the text, or with the structured answer. */
  message: optional(AssistantMessage),
  /** What the answer lacks, if it is not whole: it was cut, filtered, refused or empty (IB-620). */
  error: optional(StoredError)
})
export type Answer = typeof Answer.Type

/**
 * The prompt has no answer. Its activity failed or was interrupted (`error` says why), it was withdrawn, or it still
 * waits in the inbox and nothing runs it.
 */
export class PromptUnanswered extends Schema.TaggedError<PromptUnanswered>("@daybook/core/PromptUnanswered")(
  "PromptUnanswered",
  {
    sessionID: SessionID,
    messageID: MessageID,
    reason: Schema.Literal("failed", "interrupted", "withdrawn", "waiting"),
    activityID: optional(ActivityID),
    /** The error of the activity; its `type` is the tag of the run's error. */
    error: optional(StoredError)
  }
) {
  override get message() {
    switch (this.reason) {
      case "failed":
        return `the activity that answered ${this.messageID} failed: ${this.error?.message ?? "no reason is recorded"}`
      case "interrupted":
        return `${this.messageID} was interrupted before it was answered: ${this.error?.message ?? "by a caller"}`
      case "withdrawn":
        return `${this.messageID} was withdrawn, so that no model answers it`
      case "waiting":
        return `${this.messageID} waits in the inbox of ${this.sessionID} and nothing runs it; ask again to run it`
    }
  }
}

/** What the log says about a prompt so far. */
interface Progress {
  readonly promoted: boolean
  readonly withdrawn: boolean
  /** The last message with a text, and the last one that gave a structured answer. */
  readonly said?: MessageID
  readonly given?: MessageID
  /** The end of the activity that answered it. */
  readonly end?: { readonly activityID: ActivityID; readonly outcome: ActivityOutcome; readonly error?: StoredError }
}

const admitted: Progress = { promoted: false, withdrawn: false }

const isEnded = ({ end, withdrawn }: Progress): boolean => withdrawn || end !== undefined

/** Follows one prompt. The activity that runs when it is promoted answers it; a session runs one at a time. */
const step =
  (id: MessageID) =>
  (progress: Progress, event: SessionEvent): Progress => {
    if (isEnded(progress)) return progress
    if (event.type === "session.next.prompt.withdrawn" && event.data.messageID === id) {
      return { ...progress, withdrawn: true }
    }
    if (event.type === "session.next.prompt.promoted" || event.type === "session.next.prompted") {
      return event.data.messageID === id ? { ...progress, promoted: true } : progress
    }
    if (!progress.promoted) return progress
    if (event.type === "session.next.text.ended" && !isBlank(event.data.text)) {
      return { ...progress, said: event.data.assistantMessageID }
    }
    if (event.type === "session.next.tool.called" && event.data.tool === outputTool) {
      return { ...progress, given: event.data.assistantMessageID }
    }
    // After a move, the work continues in another activity at the new Location.
    if (event.type !== "session.next.activity.settled" || event.data.error?.type === "session.moved") return progress
    return { ...progress, end: event.data }
  }

const textOf = ({ content }: AssistantMessage): string =>
  content.flatMap((part) => (part.type === "text" && !isBlank(part.text ?? "") ? [part.text] : [])).join("\n\n")

interface Services {
  readonly log: typeof EventLog.Service
  readonly store: typeof SessionStore.Service
  readonly owners: typeof SessionOwner.Service
  readonly execution: typeof SessionExecution.Service
}

/** Follows the log until the prompt's activity has ended. */
const followed = ({ log }: Services, { id, sessionID }: Input, after: number) =>
  log.tail({ sessionID, after }).pipe(
    Stream.scan(admitted, step(id)),
    Stream.filter(isEnded),
    Stream.runHead,
    // A tail ends only by failing.
    Effect.flatMap(Option.match({ onNone: () => Effect.never, onSome: Effect.succeed }))
  )

/** What the log says about the prompt now. */
const looked = Effect.fnUntraced(function* ({ log }: Services, { id, sessionID }: Input, after: number) {
  let [progress, cursor, hasMore] = [admitted, after, true]
  while (hasMore && !isEnded(progress)) {
    const page = yield* log.read({ sessionID, after: cursor })
    progress = page.events.reduce(step(id), progress)
    cursor = page.cursor
    hasMore = page.hasMore
  }
  return progress
})

/**
 * Waits until no process works on the session, and settles what a dead process left. Fails if the prompt's activity has
 * not ended then: nothing would end it.
 */
const idle = Effect.fnUntraced(function* (
  services: Services,
  input: Input,
  after: number,
  failure: () => RunError | undefined
) {
  const { execution, owners } = services
  const { id: messageID, sessionID } = input
  for (;;) {
    yield* execution.settled(sessionID)
    const progress = yield* looked(services, input, after)
    if (isEnded(progress)) return progress
    if (!progress.promoted) {
      return yield* failure() ?? new PromptUnanswered({ sessionID, messageID, reason: "waiting" })
    }
    // It was promoted by another process: wait until that one has released the session or is gone.
    yield* Effect.scoped(owners.acquire(sessionID))
    if ((yield* execution.settle(sessionID)) || (yield* owners.isOwned(sessionID))) continue
    const last = yield* looked(services, input, after)
    if (isEnded(last)) return last
    return yield* failure() ?? new PromptUnanswered({ sessionID, messageID, reason: "interrupted" })
  }
})

const answerOf = Effect.fnUntraced(function* ({ store }: Services, input: Input, progress: Progress) {
  const { id: messageID, prompt, sessionID } = input
  const { end, given, said } = progress
  if (end === undefined) return yield* new PromptUnanswered({ sessionID, messageID, reason: "withdrawn" })
  const { activityID, error, outcome } = end
  if (outcome !== "completed") {
    const why = error === undefined ? {} : { error }
    return yield* new PromptUnanswered({ sessionID, messageID, reason: outcome, activityID, ...why })
  }
  const read = (id: MessageID | undefined) =>
    id === undefined ? Effect.succeed(undefined) : store.message(sessionID, id)
  const found = yield* read(prompt.output === undefined ? (said ?? given) : given)
  const message = found?.type === "assistant" ? found : undefined
  const output = message === undefined ? undefined : structuredOutput(message)
  return {
    messageID,
    activityID,
    text: message === undefined ? "" : textOf(message),
    ...(output === undefined ? {} : { output }),
    ...(message === undefined ? {} : { message }),
    ...(error === undefined ? {} : { error })
  } satisfies Answer
})

/** Builds the verb from the facade's `prompt`. */
export const make =
  <E>(services: Services, prompt: (options: PromptOptions) => Effect.Effect<Input, E>) =>
  (options: AskOptions) =>
    Effect.gen(function* () {
      // Before the prompt, so that a run that fails at once is seen.
      const failure = yield* services.execution.lastFailure(options.sessionID)
      const input = yield* prompt({ ...options, resume: true })
      const after = (input.promotedSeq ?? input.admittedSeq) - 1
      const progress = yield* Effect.raceFirst(followed(services, input, after), idle(services, input, after, failure))
      return yield* answerOf(services, input, progress)
    }).pipe(Effect.scoped, Effect.withSpan("Sessions.ask"))
