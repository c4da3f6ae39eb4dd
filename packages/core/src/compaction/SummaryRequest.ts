/**
 * Requests a summary from the session's model: streams it live, retries under the model's policy, and asks once for
 * missing sections. `Summary.ts` holds the prompt. Spec: CP-42..CP-47 (CM-6, CM-7).
 */
import type * as Prompt from "@effect/ai/Prompt"
import { Effect } from "effect"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import type { StoredError } from "@daybook/log/domain/Values"
import type { AppendError, EventLog, OwnerToken } from "@daybook/log/log/EventLog"
import type { ResolvedModel } from "../model/ModelResolver.ts"
import * as Provider from "../model/ProviderStream.ts"
import { requestText, type Spent, type TextAnswer } from "../request/TextRequest.ts"
import { tokensOf } from "../request/TokenEstimate.ts"
import type { Limits } from "./Limits.ts"
import { askAgain, cleanSummary, missingHeadings } from "./Summary.ts"

/** The request for a summary failed. */
export class SummaryFailed {
  readonly _tag = "SummaryFailed"
  readonly error: StoredError
  /** The server rejected content of the request. */
  readonly rejected: boolean
  constructor(error: StoredError, rejected = false) {
    this.error = error
    this.rejected = rejected
  }
}

/** The prompt, the model and the attempt of a summary request. */
export interface SummaryInput {
  readonly log: EventLog["Type"]
  readonly sessionID: SessionID
  readonly owner: OwnerToken
  /** Id of the compaction attempt. */
  readonly messageID: MessageID
  readonly model: ResolvedModel
  /** Resolves the same model with this output limit. */
  readonly summarizer: (maxOutputTokens: number) => Effect.Effect<ResolvedModel>
  readonly limits: Limits
  readonly prompt: string
  /** Grows with each answer. */
  readonly spent: Spent
}

/** Requests one answer and streams it live. */
const ask = Effect.fnUntraced(function* (
  { log, messageID, owner, sessionID, spent }: SummaryInput,
  model: ResolvedModel,
  prompt: ReadonlyArray<Prompt.MessageEncoded>
) {
  const attempt = requestText(model, prompt, spent, (text) =>
    log.publishLive({ type: "session.next.compaction.delta", sessionID, data: { messageID, text } })
  )
  const tried = (count: number): Effect.Effect<TextAnswer, SummaryFailed | AppendError> =>
    Effect.catchIf(attempt, Provider.isFault, (fault) =>
      Effect.gen(function* () {
        const pause = yield* Effect.mapError(
          Provider.pauseBefore(model.policy, fault, count),
          ({ failure }) =>
            new SummaryFailed({ type: "provider", message: failure.message }, failure.content !== undefined)
        )
        yield* log.append(sessionID, [Provider.retried(count, fault, pause, undefined)], { owner })
        // The provider's delay, or the backoff.
        yield* Effect.sleep(pause.wait)
        return yield* tried(count + 1)
      })
    )
  return yield* tried(1)
})

/** Returns the summary. If sections are missing, asks the model once more (CM-6). */
export const summarize = Effect.fnUntraced(function* (input: SummaryInput) {
  const { limits, prompt, summarizer } = input
  const question = { role: "user" as const, content: prompt }
  let model = yield* summarizer(limits.summary)
  let answer = yield* ask(input, model, [question])
  if (answer.cut && answer.text.trim() === "") {
    // A reasoning model used up its allowance before it wrote: give it the allowance of a normal answer.
    const { countTokens, info } = input.model
    const room = Math.min(
      limits.reserve,
      info.outputTokens || limits.reserve,
      limits.window - tokensOf(prompt, countTokens)
    )
    model = yield* summarizer(Math.max(limits.summary, room))
    answer = yield* ask(input, model, [question])
  }
  const first = answer.text
  const missing = missingHeadings(first)
  if (cleanSummary(first) === "")
    return yield* Effect.fail(new SummaryFailed({ type: "summary.empty", message: "the model gave no summary" }))
  if (missing.length === 0) return cleanSummary(first)
  const second = yield* ask(input, model, [
    question,
    { role: "assistant", content: first },
    { role: "user", content: askAgain(missing) }
  ]).pipe(
    Effect.map(({ text }) => text),
    Effect.catchIf(
      (error) => error instanceof SummaryFailed,
      () => Effect.succeed("")
    )
  )
  // An incomplete summary is better than none: keep the one with more of the sections.
  return missingHeadings(second).length < missing.length ? cleanSummary(second) : cleanSummary(first)
})
