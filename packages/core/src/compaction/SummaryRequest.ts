/**
 * The request for a summary: asked of the session's model, streamed to those who watch, tried again where its policy
 * allows, and corrected once when it lacks sections. What is asked is in `Summary.ts`. Spec: CP-42..CP-47 (CM-6, CM-7).
 */
import type { Prompt } from "@effect/ai"
import { Effect, Stream } from "effect"
import type { MessageID, SessionID } from "../Identifiers.ts"
import type { AppendError, EventLog, OwnerToken } from "../log/EventLog.ts"
import type { ResolvedModel } from "../model/ModelResolver.ts"
import * as Provider from "../runner/ProviderStream.ts"
import { estimateOf, nothingReceived, toTokens, usedOf, type Used } from "../runner/Usage.ts"
import type { StoredError, Tokens } from "../session/Schemas.ts"
import type { Limits } from "./Limits.ts"
import { askAgain, cleanSummary, missingHeadings } from "./Summary.ts"
import { messageTokens, tokensOf } from "./TokenEstimate.ts"

/** The request for the summary came to nothing. */
export class SummaryFailed {
  readonly _tag = "SummaryFailed"
  readonly error: StoredError
  constructor(error: StoredError) {
    this.error = error
  }
}

/** What the model said; `cut` where it came to the end of its allowance. */
interface Answer {
  readonly text: string
  readonly cut: boolean
}

/** What was used so far, whatever comes of it. */
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

/** As events carry it. */
export const spentFields = ({ cost, estimated, tokens }: Spent): Partial<Used> =>
  tokens === undefined ? {} : { cost, tokens, ...(estimated ? { estimated: true } : {}) }

const spend = (spent: Spent, { cost, estimated, tokens }: Used): void => {
  spent.tokens = add(spent.tokens, tokens)
  spent.cost += cost
  spent.estimated ||= estimated === true
}

/** What is asked, of whom, and for which attempt. */
export interface SummaryInput {
  readonly log: EventLog["Type"]
  readonly sessionID: SessionID
  readonly owner: OwnerToken
  /** The attempt's. */
  readonly messageID: MessageID
  readonly model: ResolvedModel
  /** The same model, for an answer of so many tokens at most. */
  readonly summarizer: (maxOutputTokens: number) => Effect.Effect<ResolvedModel>
  readonly limits: Limits
  readonly prompt: string
  /** Grows with each answer. */
  readonly spent: Spent
}

/** One answer, streamed to those who watch. */
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
    yield* Stream.runForEach(Provider.partsOf(model, prompt, []), (part) =>
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

/** The summary; when sections are missing, what the model makes of being told so (CM-6). */
export const summarize = Effect.fnUntraced(function* (input: SummaryInput) {
  const { limits, prompt, summarizer } = input
  const question = { role: "user" as const, content: prompt }
  let model = yield* summarizer(limits.summary)
  let answer = yield* ask(input, model, [question])
  if (answer.cut && answer.text.trim() === "") {
    // A model that thinks first has thought it all away: it gets what any answer would.
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
  // What there is of a summary is worth more than none: of two the one with more of the sections.
  return missingHeadings(second).length < missing.length ? cleanSummary(second) : cleanSummary(first)
})
