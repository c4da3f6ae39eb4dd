/**
 * Prompts a session and waits for the settled answer. The answer is read from the log, so that it is the same in every
 * process and at every repetition. Interrupting the caller only ends its waiting. Spec: IB-50..IB-56 in specs/sessions.md.
 *
 *   prompt ─> tail ─────────────────────────────> the end of its activity
 *          └> this process is idle ─> log's end ─┘ or: no run took the prompt
 */
import { Effect, Option, Stream } from "effect"
import type { SessionOwner } from "@daybook/log/coordination/SessionOwner"
import type { ActivityID, MessageID } from "@daybook/log/domain/Identifiers"
import type { AssistantMessage, Input } from "@daybook/log/domain/Message"
import type { ActivityOutcome, StoredError } from "@daybook/log/domain/Values"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import type { EventLog } from "@daybook/log/log/EventLog"
import type { SessionStore } from "@daybook/log/store/SessionStore"
import { outputTool, structuredOutput } from "../request/StructuredOutput.ts"
import type { RunError } from "../runner/RunError.ts"
import { present } from "@daybook/log/support/Optional"
import { isBlank } from "@daybook/log/support/Text"
import { type Answer, PromptUnanswered } from "./Answer.ts"
import type { SessionExecution } from "./SessionExecution.ts"
import type { AskOptions, PromptOptions } from "./SessionOptions.ts"

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

/** Waits until no process works on the session, settles a dead process's work, and fails if the activity is open. */
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
    ...present({ output, message, error })
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
