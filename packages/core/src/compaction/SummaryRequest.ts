/**
 * Requests a summary from the session's model: streams it live, retries under the model's policy, and asks once for
 * missing sections. `Summary.ts` holds the prompt. Spec: CP-42..CP-47 (CM-6, CM-7).
 */
import type * as Prompt from "@effect/ai/Prompt"
import { Effect } from "effect"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import type { StoredError, Tokens } from "@daybook/log/domain/Values"
import type { AppendError, EventLog, OwnerToken } from "@daybook/log/log/EventLog"
import type { ResolvedModel } from "../model/ModelResolver.ts"
import * as Provider from "../model/ProviderStream.ts"
import type { StreamPart } from "../model/StreamPart.ts"
import { estimateOf, nothingReceived, toTokens, type Used, usedOf } from "../model/Usage.ts"
import { messageTokens, tokensOf } from "../request/TokenEstimate.ts"
import type { Limits } from "./Limits.ts"
import { askAgain, cleanSummary, missingHeadings } from "./Summary.ts"

/** The request for a summary failed. */
export class SummaryFailed {
  readonly _tag = "SummaryFailed"
  readonly error: StoredError
  constructor(error: StoredError) {
    this.error = error
  }
}

/** The model's answer; `cut` when it reached its output limit. */
interface Answer {
  readonly text: string
  readonly cut: boolean
}

/** Accumulated usage, including failed attempts. */
export interface Spent {
  cost: number
  tokens: Tokens | undefined
  estimated: boolean
}

const add = (a: Tokens | undefined, b: Tokens): Tokens =>
  a === undefined
    ? b
    : {
        input: a.input + b.input,
        output: a.output + b.output,
        reasoning: a.reasoning + b.reasoning,
        cache: { read: a.cache.read + b.cache.read, write: a.cache.write + b.cache.write }
      }

/** The usage in event form. */
export const spentFields = ({ cost, estimated, tokens }: Spent): Partial<Used> =>
  tokens === undefined ? {} : { cost, tokens, ...(estimated ? { estimated: true } : {}) }

const spend = (spent: Spent, { cost, estimated, tokens }: Used): void => {
  spent.tokens = add(spent.tokens, tokens)
  spent.cost += cost
  spent.estimated ||= estimated === true
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
  const { countTokens, info } = model
  const inputEstimate = Math.ceil(prompt.reduce((total, message) => total + messageTokens(message, countTokens), 0))
  const attempt = Effect.gen(function* () {
    let text = ""
    let received = nothingReceived
    let finish: string | undefined
    let charged = true
    const unfinished = Effect.sync(() => {
      if (finish === undefined && charged) spend(spent, estimateOf(inputEstimate, received, info.price))
    })
    const read = (part: StreamPart) =>
      Effect.gen(function* () {
        if (part.type === "reasoning-delta") {
          received = { all: received.all + part.delta.length, reasoning: received.reasoning + part.delta.length }
        } else if (part.type === "text-delta") {
          text += part.delta
          received = { ...received, all: received.all + part.delta.length }
          yield* log.publishLive({
            type: "session.next.compaction.delta",
            sessionID,
            data: { messageID, text: part.delta }
          })
        } else if (part.type === "error") {
          return yield* Effect.fail(Provider.reported(part.error))
        } else if (part.type === "finish") {
          finish = part.reason
          spend(spent, usedOf(toTokens(part.usage, part.metadata), inputEstimate, received, info.price))
        }
      })
    yield* Provider.forEachChunk(model, { prompt, tools: [] }, (parts) =>
      Effect.forEach(parts, read, { discard: true })
    ).pipe(
      Provider.within(model.policy),
      Effect.tapError((fault) => Effect.sync(() => (charged = Provider.isCharged(fault, received.all > 0)))),
      Effect.ensuring(unfinished)
    )
    if (finish === undefined) return yield* Effect.fail(Provider.broken("the summary broke off before its end", true))
    if (finish === "error")
      return yield* Effect.fail(Provider.broken("the provider ended the summary with an error", false))
    return { text, cut: finish === "length" }
  })
  const tried = (count: number): Effect.Effect<Answer, SummaryFailed | AppendError> =>
    Effect.catchIf(attempt, Provider.isFault, (fault) =>
      Effect.gen(function* () {
        const wait = yield* Effect.mapError(
          Provider.waitBefore(model.policy, fault, count),
          ({ failure }) => new SummaryFailed({ type: "provider", message: failure.message })
        )
        yield* log.append(sessionID, [Provider.retried(count, fault, wait, undefined)], { owner })
        yield* Effect.sleep(wait)
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
