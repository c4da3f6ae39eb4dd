/**
 * The catalogue of models: names, limits, prices, media and variants; and the parser of model names. Makes no requests.
 * The facts are generated data, `CatalogData.ts`. Providers change faster than releases: an unknown model of a known
 * family is accepted with the family's facts. Spec: MD-1..MD-6, MD-720..MD-723.
 */
import { Effect, Either, Schema } from "effect"
import type { ModelInfo, Pricing } from "@daybook/core/model/ModelResolver"

/** A model reference, as `ModelRef` of `@daybook/core`. */
type Ref = ModelInfo["ref"]

/** The text is not a valid model name. */
export class InvalidModelName extends Schema.TaggedError<InvalidModelName>("@daybook/models/InvalidModelName")(
  "InvalidModelName",
  { input: Schema.String, reason: Schema.String }
) {
  override get message() {
    return `"${this.input}" does not name a model: ${this.reason}; write provider/model, for example anthropic/claude-sonnet-5-5`
  }
}

/** The catalogue's facts about one model. `outputTokens` is what the context must leave free; the model's maximum may be higher. */
export interface Entry extends Pick<ModelInfo, "name" | "contextTokens" | "outputTokens" | "price" | "media"> {
  /** Effort levels of the model, in the provider's words. */
  readonly variants: ReadonlyArray<string>
  /** Whether the model thinks; absent when unknown. */
  readonly thinks?: boolean
}

const rate = Schema.Finite.pipe(Schema.nonNegative())
const rates = [rate, rate, rate, rate] as const
const Rates = Schema.Tuple(...rates)
const counting = Schema.Int.pipe(Schema.positive())

/**
 * A row of the data: id, name, window, output limit, media, thinking (whether, or the words of its levels), then the
 * price (input, output, cache read, cache write, in US dollars per million tokens), and the prices above a number of
 * input tokens. Without a price it is unknown.
 */
export const Row = Schema.Tuple(
  [
    Schema.NonEmptyTrimmedString,
    Schema.NonEmptyTrimmedString,
    counting,
    counting,
    Schema.Literal("", "image", "image pdf"),
    Schema.Union(Schema.Boolean, Schema.String.pipe(Schema.pattern(/^[a-z]+(?: [a-z]+)*$/))),
    Schema.optionalElement(Rates)
  ],
  Schema.Tuple(counting, ...rates)
)
type Row = typeof Row.Type

/** The whole data: rows by provider. */
export const Table = Schema.Record({ key: Schema.String, value: Schema.Array(Row) })

type Rates = Schema.Schema.Type<typeof Rates>

const price = ([input, output, cacheRead, cacheWrite]: Rates) => ({ input, output, cacheRead, cacheWrite })

const priceOf = (base: Rates, tiers: ReadonlyArray<readonly [above: number, ...Rates]>): Pricing => ({
  ...price(base),
  ...(tiers.length === 0 ? {} : { tiers: tiers.map(([above, ...more]) => ({ above, ...price(more) })) })
})

/**
 * The part of a model's maximum that a request asks for. Compaction keeps it free, and servers add it to the request: a
 * maximum of half of the window would leave no room. OpenAI counts it only when it is used.
 */
const outputOf = (provider: string, window: number, most: number): number => {
  if (provider === "openai") return most < window / 2 ? most : Math.floor(window / 4)
  return Math.min(most, window >= 1_000_000 ? 64_000 : 32_000, Math.floor(window / 4))
}

const entryOf = (provider: string, row: Row): Entry => {
  const [, name, contextTokens, most, media, thinking, base, ...tiers] = row
  return {
    name,
    contextTokens,
    outputTokens: outputOf(provider, contextTokens, most),
    ...(base === undefined ? {} : { price: priceOf(base, tiers) }),
    variants: typeof thinking === "string" ? thinking.split(" ") : [],
    thinks: thinking !== false,
    media: media === "" ? [] : media === "image" ? ["image"] : ["image", "pdf"]
  }
}

type Known = ReadonlyMap<string, ReadonlyMap<string, Entry>>

let loaded: Promise<Known> | undefined

/** The data, by provider and id. Loaded on first use. */
const known: Effect.Effect<Known> = Effect.promise(
  () =>
    (loaded ??= import("./CatalogData.ts").then(({ json }) => {
      // A test checks the generated text against the schema.
      const table = JSON.parse(json) as typeof Table.Type
      return new Map(
        Object.entries(table).map(([provider, rows]) => [
          provider,
          new Map(rows.map((row) => [row[0], entryOf(provider, row)]))
        ])
      )
    }))
)

/** The models of a provider by id; none for a provider that the catalogue lacks. */
export const entriesOf = (provider: string): Effect.Effect<Readonly<Record<string, Entry>>> =>
  Effect.map(known, (providers) => Object.fromEntries(providers.get(provider) ?? []))

const efforts = ["low", "medium", "high", "xhigh", "max"]

/**
 * Model families of OpenAI and Anthropic for names missing in the table (a dated snapshot, a later model, a fine-tuned one), with
 * facts common to the family. An unknown limit is 0.
 */
const families: ReadonlyArray<readonly [api: string, RegExp, Omit<Entry, "name">]> = [
  ["anthropic", /^claude-3-/, { contextTokens: 200_000, outputTokens: 4096, variants: [] }],
  ["anthropic", /^claude-/, { contextTokens: 200_000, outputTokens: 32_000, variants: efforts }],
  [
    "openai",
    /^gpt-([5-9]|\d\d)/,
    { contextTokens: 400_000, outputTokens: 128_000, variants: ["minimal", "none", ...efforts] }
  ],
  ["openai", /^(o\d|codex-)/, { contextTokens: 200_000, outputTokens: 100_000, variants: ["low", "medium", "high"] }],
  ["openai", /^(gpt-|chatgpt-|ft:)/, { contextTokens: 0, outputTokens: 0, variants: [] }]
]

/** The protocols whose own provider has families, and whose model names may end in `:variant`. */
export const hasFamilies = (name: string): boolean => name === "anthropic" || name === "openai"

const undated = (id: string): string => id.replace(/-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$/, "")

/**
 * The facts about a provider's model: exact, under a dated snapshot's base name, or from its family. A provider that the
 * catalogue lacks has the models of its protocol's own provider, if its protocol is `anthropic` or `openai`.
 */
export const find = (providerID: string, api: string, id: string): Effect.Effect<Entry | undefined> =>
  Effect.map(known, (found) => {
    const models = found.get(providerID) ?? (hasFamilies(api) ? found.get(api) : undefined)
    const exact = models?.get(id) ?? models?.get(undated(id))
    if (exact !== undefined || (providerID !== api && found.has(providerID))) return exact
    const family = families.find(([own, pattern]) => own === api && pattern.test(id))
    return family === undefined ? undefined : { name: id, ...family[2] }
  })

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
  if (slash < 0) return fail("it has no slash")
  const providerID = text.slice(0, slash)
  const rest = text.slice(slash + 1)
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(providerID)) return fail("the provider's name is not valid")
  if (rest === "") return fail("the model's name is missing")
  // Elsewhere a colon is part of the name: `ollama/qwen3:8b`.
  const colon = hasFamilies(providerID) && !rest.startsWith("ft:") ? rest.lastIndexOf(":") : -1
  if (colon < 0) return Either.right({ providerID, id: rest })
  const [id, variant] = [rest.slice(0, colon), rest.slice(colon + 1)]
  if (id === "") return fail("the model's name is missing")
  if (variant === "") return fail("the variant after the colon is missing")
  return Either.right({ providerID, id, variant })
}

/** Formats a reference for `parseModel`. */
export const formatModel = (ref: Ref): string =>
  `${ref.providerID}/${ref.id}${ref.variant === undefined ? "" : `:${ref.variant}`}`
