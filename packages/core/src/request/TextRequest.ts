/** Requests a text from a model outside of turns, and counts its usage however it ends. Spec: CP-42, EX-B5. */
import type * as Prompt from "@effect/ai/Prompt"
import { Effect } from "effect"
import type { Tokens } from "@daybook/log/domain/Values"
import type { ResolvedModel } from "../model/ModelResolver.ts"
import * as ProviderStream from "../model/ProviderStream.ts"
import type { StreamPart } from "../model/ProviderStream.ts"
import { estimateOf, nothingReceived, toTokens, type Used, usedOf } from "../model/Usage.ts"
import { messageTokens } from "./TokenEstimate.ts"

/** The model's answer; `cut` when it reached its output limit. */
export interface TextAnswer {
  readonly text: string
  readonly cut: boolean
}

/** Accumulated usage, including failed attempts. */
export interface UsageSum {
  cost: number
  tokens: Tokens | undefined
  estimated: boolean
}

export const add = (a: Tokens | undefined, b: Tokens): Tokens =>
  a === undefined
    ? b
    : {
        input: a.input + b.input,
        output: a.output + b.output,
        reasoning: a.reasoning + b.reasoning,
        cache: { read: a.cache.read + b.cache.read, write: a.cache.write + b.cache.write }
      }

/** The usage in event form. */
export const spentFields = ({ cost, estimated, tokens }: UsageSum): Partial<Used> =>
  tokens === undefined ? {} : { cost, tokens, ...(estimated ? { estimated: true } : {}) }

const spend = (spent: UsageSum, { cost, estimated, tokens }: Used): void => {
  spent.tokens = add(spent.tokens, tokens)
  spent.cost += cost
  spent.estimated ||= estimated === true
}

export const nothingSpent = (): UsageSum => ({ cost: 0, tokens: undefined, estimated: false })

/** Sends the request once. `spent` grows by what it used; `onText` gets the text as it arrives. */
export const requestText = Effect.fnUntraced(function* (
  model: ResolvedModel,
  prompt: ReadonlyArray<Prompt.MessageEncoded>,
  spent: UsageSum,
  onText: (text: string) => Effect.Effect<void>
) {
  const { countTokens, info } = model
  const inputEstimate = Math.ceil(prompt.reduce((total, message) => total + messageTokens(message, countTokens), 0))
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
        yield* onText(part.delta)
      } else if (part.type === "error") {
        return yield* Effect.fail(ProviderStream.reported(part.error))
      } else if (part.type === "finish") {
        finish = part.reason
        spend(spent, usedOf(toTokens(part.usage, part.metadata), inputEstimate, received, info.price))
      }
    })
  yield* ProviderStream.forEachChunk(model, { prompt, tools: [] }, (parts) =>
    Effect.forEach(parts, read, { discard: true })
  ).pipe(
    ProviderStream.within(model.policy),
    Effect.tapError((fault) => Effect.sync(() => (charged = ProviderStream.isCharged(fault, received.all > 0)))),
    Effect.ensuring(unfinished)
  )
  if (finish === undefined)
    return yield* Effect.fail(ProviderStream.broken("the answer broke off before its end", true))
  if (finish === "error")
    return yield* Effect.fail(ProviderStream.broken("the provider ended the answer with an error", false))
  return { text, cut: finish === "length" }
})
