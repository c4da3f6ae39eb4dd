/**
 * The catalogue of models: names, limits, prices and variants; and the parser of model names. A table and pure
 * functions, without requests. Providers change faster than releases: an unknown model of a known family is accepted
 * with the family's facts. Spec: MD-1..MD-6.
 */
import { Either, Schema } from "effect"
import type { ModelInfo } from "@daybook/core/model/ModelResolver"

/** A model reference, as `ModelRef` of `@daybook/core`. */
type Ref = ModelInfo["ref"]

/** The text is not a valid model name. */
export class InvalidModelName extends Schema.TaggedError<InvalidModelName>("@daybook/models/InvalidModelName")(
  "InvalidModelName",
  { input: Schema.String, reason: Schema.String }
) {
  override get message() {
    return `"${this.input}" does not name a model: ${this.reason}; write provider/model, for example anthropic/${defaults.anthropic}`
  }
}

/** The catalogue's facts about one model. */
export interface Entry {
  readonly name: string
  readonly contextTokens: number
  /** The output limit of one request, which the context must leave free; the model's own maximum may be higher. */
  readonly outputTokens: number
  readonly price?: NonNullable<ModelInfo["price"]>
  /** Effort levels of the model, in the provider's words. */
  readonly variants: ReadonlyArray<string>
}

/** The default model of each provider. */
export const defaults = { anthropic: "claude-sonnet-5-5", openai: "gpt-6.1-terra" } as const

const price = (input: number, output: number, cacheRead: number, cacheWrite: number) => ({
  input,
  output,
  cacheRead,
  cacheWrite
})

const efforts = ["low", "medium", "high", "max"]
const moreEfforts = ["low", "medium", "high", "xhigh", "max"]
const openaiEfforts = ["none", ...moreEfforts]

const claude = (name: string, variants: ReadonlyArray<string>, prices: Entry["price"], wide = true): Entry => ({
  name,
  contextTokens: wide ? 1_000_000 : 200_000,
  outputTokens: wide ? 64_000 : 32_000,
  ...(prices === undefined ? {} : { price: prices }),
  variants
})

const gpt = (name: string, variants: ReadonlyArray<string>, prices: Entry["price"], context = 1_050_000): Entry => ({
  name,
  contextTokens: context,
  outputTokens: 128_000,
  ...(prices === undefined ? {} : { price: prices }),
  variants
})

/** Known models by API. Prices are base rates in US dollars per million tokens, without long-context surcharges. */
export const entries: Readonly<Record<"anthropic" | "openai", Readonly<Record<string, Entry>>>> = {
  anthropic: {
    "claude-fable-5-1": claude("Claude Fable 5.1", moreEfforts, price(10, 50, 1, 12.5)),
    "claude-opus-5-5": claude("Claude Opus 5.5", moreEfforts, price(4, 20, 0.2, 5)),
    "claude-sonnet-5-5": claude("Claude Sonnet 5.5", moreEfforts, price(2, 10, 0.2, 2.5)),
    "claude-haiku-5-5": claude("Claude Haiku 5.5", efforts, price(0.1, 0.5, 0.01, 0.125)),
    "claude-opus-5": claude("Claude Opus 5", moreEfforts, price(5, 25, 0.5, 6.25)),
    "claude-sonnet-5": claude("Claude Sonnet 5", moreEfforts, price(2, 10, 0.2, 2.5)),
    "claude-opus-4-6": claude("Claude Opus 4.6", efforts, price(5, 25, 0.5, 6.25)),
    "claude-sonnet-4-6": claude("Claude Sonnet 4.6", efforts, price(3, 15, 0.3, 3.75)),
    "claude-opus-4-5": claude("Claude Opus 4.5", ["low", "medium", "high"], price(5, 25, 0.5, 6.25), false),
    "claude-sonnet-4-5": claude("Claude Sonnet 4.5", [], price(3, 15, 0.3, 3.75), false),
    "claude-haiku-4-5": claude("Claude Haiku 4.5", [], price(1, 5, 0.1, 1.25), false)
  },
  openai: {
    "gpt-6.1-sol": gpt("GPT-6.1 Sol", openaiEfforts, price(2, 10, 0.1, 2.5)),
    "gpt-6.1-terra": gpt("GPT-6.1 Terra", openaiEfforts, price(1, 5, 0.05, 1.25)),
    "gpt-6-sol": gpt("GPT-6 Sol", openaiEfforts, price(2, 10, 0.1, 2.5)),
    "gpt-6-luna": gpt("GPT-6 Luna", openaiEfforts, price(0.1, 0.5, 0.005, 0.125)),
    "gpt-5.6-sol": gpt("GPT-5.6 Sol", openaiEfforts, price(4, 20, 0.4, 5)),
    "gpt-5.6-terra": gpt("GPT-5.6 Terra", openaiEfforts, price(2, 12, 0.2, 2.5)),
    "gpt-5.6-luna": gpt("GPT-5.6 Luna", openaiEfforts, price(0.2, 1.2, 0.02, 0.25)),
    "gpt-5.1": gpt("GPT-5.1", ["none", "low", "medium", "high"], price(1.25, 10, 0.125, 1.25), 400_000),
    "gpt-5-mini": gpt("GPT-5 Mini", ["minimal", "low", "medium", "high"], price(0.25, 2, 0.025, 0.25), 400_000),
    "gpt-4.1": {
      name: "GPT-4.1",
      contextTokens: 1_047_576,
      outputTokens: 32_768,
      price: price(2, 8, 0.5, 2),
      variants: []
    }
  }
}

/**
 * Model families for names missing in the table (a dated snapshot, a later model, a fine-tuned one), with facts common
 * to the family. An unknown limit is 0.
 */
const families: Readonly<Record<"anthropic" | "openai", ReadonlyArray<readonly [RegExp, Omit<Entry, "name">]>>> = {
  anthropic: [
    [/^claude-3-/, { contextTokens: 200_000, outputTokens: 4096, variants: [] }],
    [/^claude-/, { contextTokens: 200_000, outputTokens: 32_000, variants: moreEfforts }]
  ],
  openai: [
    [/^gpt-([5-9]|\d\d)/, { contextTokens: 400_000, outputTokens: 128_000, variants: ["minimal", ...openaiEfforts] }],
    [/^(o\d|codex-)/, { contextTokens: 200_000, outputTokens: 100_000, variants: ["low", "medium", "high"] }],
    [/^(gpt-|chatgpt-|ft:)/, { contextTokens: 0, outputTokens: 0, variants: [] }]
  ]
}

/** The entry of a model: exact, under a dated snapshot's base name, or from its family. */
export const find = (api: "anthropic" | "openai", id: string): Entry | undefined => {
  const known = entries[api]
  const exact = known[id] ?? known[id.replace(/-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$/, "")]
  if (exact !== undefined) return exact
  const family = families[api].find(([pattern]) => pattern.test(id))
  return family === undefined ? undefined : { name: id, ...family[1] }
}

/** Providers whose model names may end in `:variant`; elsewhere a colon is part of the name (`ollama/qwen3:8b`). */
const withVariants: ReadonlySet<string> = new Set(["anthropic", "openai"])

/**
 * Parses `provider/model[:variant]`. The provider ends at the first slash, so a model's name may contain slashes.
 *
 * @example
 * ```ts
 * import { Catalog } from "@daybook/models"
 *
 * Catalog.parseModel("anthropic/claude-opus-5-5:high") // { providerID: "anthropic", id: "claude-opus-5-5", variant: "high" }
 * Catalog.parseModel("openai-compatible/qwen/qwen3:8b") // { providerID: "openai-compatible", id: "qwen/qwen3:8b" }
 * ```
 */
export const parseModel = (input: string): Either.Either<Ref, InvalidModelName> => {
  const fail = (reason: string) => Either.left(new InvalidModelName({ input: input.slice(0, 200), reason }))
  const text = input.trim()
  if (text === "") return fail("it is empty")
  if (text.length > 300) return fail("it is longer than 300 characters")
  if (/\s|\p{Cc}/u.test(text)) return fail("it contains a space or a control character")
  const slash = text.indexOf("/")
  if (slash < 0) return fail("the provider is missing")
  const providerID = text.slice(0, slash)
  const rest = text.slice(slash + 1)
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(providerID)) return fail("the provider's name is not valid")
  if (rest === "") return fail("the model's name is missing")
  const colon = withVariants.has(providerID) && !rest.startsWith("ft:") ? rest.lastIndexOf(":") : -1
  if (colon < 0) return Either.right({ providerID, id: rest })
  const [id, variant] = [rest.slice(0, colon), rest.slice(colon + 1)]
  if (id === "") return fail("the model's name is missing")
  if (variant === "") return fail("the variant after the colon is missing")
  return Either.right({ providerID, id, variant })
}

/** Formats a reference for `parseModel`. */
export const formatModel = (ref: Ref): string =>
  `${ref.providerID}/${ref.id}${ref.variant === undefined ? "" : `:${ref.variant}`}`
