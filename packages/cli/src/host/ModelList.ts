/**
 * The models of the environment and of the person's configuration, and their list: those of the configured providers from the catalogue, the configuration and the servers themselves, and on
 * request all others of the catalogue. Spec: CL-130, CL-131, CL-720..CL-724 in specs/cli.md.
 */
import { Effect, Either, Layer, Option } from "effect"
import type { OfferedModel } from "@daybook/api/group/ServerApi"
import { ModelResolver } from "@daybook/core/model/ModelResolver"
import { Catalog, Listing, Models, OfflineModel, Servers } from "@daybook/models"
import { present } from "@daybook/log/support/Optional"
import * as Configuration from "../config/Configuration.ts"
import * as Keychain from "../config/Keychain.ts"
import * as KeyFile from "../config/KeyFile.ts"
import { columns, cut, oneLine, width } from "../render/Plain.ts"

/** The default model that the person chose: `DAYBOOK_MODEL`, else the configuration's `model`, else what setup keeps. */
export const chosenDefault = Effect.gen(function* () {
  const { model } = yield* Configuration.load
  const named = (text = "") => Option.getOrUndefined(Either.getRight(Catalog.parseModel(text.trim())))
  return named(process.env["DAYBOOK_MODEL"]) ?? model ?? named(KeyFile.model())
})

/** The providers and the default model. */
export const modelOptions = Effect.gen(function* () {
  const { providers = {} } = yield* Configuration.load
  yield* Keychain.complete
  const options = yield* Models.fromConfiguration(providers)
  const chosen = yield* chosenDefault
  return chosen === undefined ? options : { ...options, default: chosen }
})

export const modelsLayer = Layer.effect(ModelResolver, Effect.flatMap(modelOptions, Models.make))

/** A model by its name as a person types it. `needs` is the missing setting. */
type ListedModel = Omit<OfferedModel, "model"> & { readonly model: string }

/** One server, and the variables that hold its key. */
type ListedServer = { readonly provider: string; readonly name: string; readonly keys: ReadonlyArray<string> }

/** `200k`, `1M`, `1.05M`. */
const tokens = (count = 0): string => {
  if (count === 0) return "-"
  const thousands = Math.round(count / 1_000)
  return thousands < 1_000 ? `${thousands}k` : `${Math.round(thousands / 10) / 100}M`
}

const prices = (price: ListedModel["price"]): string => (price === undefined ? "-" : `$${price.input}/$${price.output}`)

const thinking = ({ thinks, variants = [] }: ListedModel): string =>
  variants.length > 0 ? variants.join(",") : thinks === undefined ? "-" : thinks ? "yes" : "no"

const state = (model: ListedModel): string =>
  model.needs === undefined ? (model.default ? "default" : "ready") : `set ${model.needs}`

/** The columns between name and state, and the order in which a narrow terminal loses them. */
const middle = [
  { loses: 5, cell: (model: ListedModel) => tokens(model.contextTokens) },
  { loses: 2, cell: (model: ListedModel) => tokens(model.outputTokens) },
  { loses: 4, cell: (model: ListedModel) => prices(model.price) },
  { loses: 3, cell: ({ media }: ListedModel) => (media === undefined ? "-" : ["text", ...media].join(",")) },
  { loses: 1, cell: thinking }
]

const widest = (lines: string): number => lines.split("\n").reduce((most, line) => Math.max(most, width(line)), 0)

/**
 * Columns: name, window, output limit, price of a million input and output tokens, inputs, thinking, and whether the model
 * can be used. A terminal that is too narrow gets fewer columns, at last a truncated name.
 */
export const modelTable = (models: ReadonlyArray<ListedModel>, cells = Infinity): string => {
  const table = (lost: number, name: number) =>
    columns(
      models.map((model) => [
        cut(oneLine(model.model, 120), name),
        ...middle.filter(({ loses }) => loses > lost).map(({ cell }) => cell(model)),
        state(model)
      ])
    )
  for (let lost = 0; lost <= middle.length; lost++) {
    const shown = table(lost, 120)
    if (widest(shown) <= cells) return shown
  }
  const states = models.reduce((most, model) => Math.max(most, width(state(model))), 0)
  return table(middle.length, Math.max(12, cells - states - 2))
}

/** Columns: provider, name for people, variables. */
export const serverTable = (servers: ReadonlyArray<ListedServer>): string =>
  columns(servers.map(({ keys, name, provider }) => [provider, name, `set ${keys.join(" or ")}`]))

/** A server that did not list its models. */
type Silent = { readonly provider: string; readonly why: string }

type Facts = Omit<ListedModel, "default" | "model" | "needs">
type Options = Effect.Effect.Success<typeof modelOptions>

/** The facts that are known; a window of 0 is not. */
const factsOf = (id: string, facts: Models.ModelSettings, source: Facts["source"]): Facts => {
  const { contextTokens = 0, media, name = id, outputTokens = 0, price, thinks, variants = [] } = facts
  return {
    name,
    ...(contextTokens > 0 ? { contextTokens } : {}),
    ...(outputTokens > 0 ? { outputTokens } : {}),
    ...present({ price, media, thinks }),
    ...(variants.length === 0 ? {} : { variants }),
    source
  }
}

/** What to do about a server that refuses the key, or whose address may lack its path. */
const advised = (provider: string, why: string): string => {
  if (/^[^/]+\/models answered HTTP 404$/.test(why)) return `${why}; the address of a server usually ends in /v1`
  if (!/ answered HTTP 40[13]$/.test(why)) return why
  const [variable] = Servers.knownAs(provider)?.keys ?? []
  return variable === undefined
    ? `${why}; give it a key that it accepts in the configuration`
    : `${why}; set ${variable} to a key that it accepts`
}

/** The models that a provider's server lists, if the catalogue does not know the provider. */
const served = Effect.fnUntraced(function* (
  name: string,
  provider: Models.Provider,
  isKnown: boolean,
  silent: Array<Silent>
) {
  const target = isKnown ? undefined : Listing.targetOf(name, provider)
  if (target === undefined) return new Map<string, Facts>()
  const listed = yield* Effect.catchAll(Listing.list(target), (why) => {
    silent.push({ provider: name, why: advised(name, why) })
    return Effect.succeed([])
  })
  return new Map(listed.map(({ id, ...facts }) => [id, factsOf(id, facts, "server")]))
})

/** The models of one provider: the configuration's facts over the server's over the catalogue's. */
const modelsOf = Effect.fnUntraced(function* (name: string, provider: Models.Provider, silent: Array<Silent>) {
  const address = "baseUrl" in provider ? provider.baseUrl : undefined
  const entries = yield* Catalog.entriesOf(Servers.catalogueName(name, address))
  const isKnown = Object.keys(entries).length > 0
  const facts = new Map(Object.entries(entries).map(([id, entry]) => [id, factsOf(id, entry, "catalogue")]))
  for (const [id, each] of yield* served(name, provider, isKnown, silent)) facts.set(id, each)
  for (const [id, settings] of Object.entries(provider.models ?? {})) {
    facts.set(id, {
      ...facts.get(id),
      ...factsOf(id, { name: facts.get(id)?.name ?? id, ...settings }, "configuration")
    })
  }
  return [...facts].map(([id, each]) => ({ model: `${name}/${id}`, ...each }))
})

/** The catalogue's models of providers that are not configured, with the variables to set. */
const others = ({ hints = {}, providers }: Options) =>
  Effect.map(
    Effect.forEach(
      Servers.servers.filter(({ provider }) => providers[provider] === undefined),
      ({ keys, provider }) =>
        Effect.map(Catalog.entriesOf(provider), (entries) =>
          Object.entries(entries).map(([id, entry]) => ({
            model: `${provider}/${id}`,
            ...factsOf(id, entry, "catalogue"),
            needs: hints[provider]?.replace(/^set /, "") ?? keys.join(" or ")
          }))
        )
    ),
    (lists) => lists.flat()
  )

const offline = { model: Catalog.formatModel(OfflineModel.ref), name: "no language model", source: "built in" } as const

/** The models that can be chosen, with `all` those of all providers, and the servers that did not answer. */
export const list = Effect.fn("ModelList.list")(function* (all: boolean) {
  const options = yield* modelOptions
  const chosen = options.default === undefined ? undefined : Catalog.formatModel(options.default)
  const silent: Array<Silent> = []
  // Servers of one's own come first: their models are fewest, and known nowhere else.
  const names = Object.keys(options.providers)
  const ordered = [
    ...names.filter((name) => Servers.serverOf(name) === undefined),
    ...Servers.servers.map(({ provider }) => provider).filter((provider) => names.includes(provider))
  ]
  const configured = yield* Effect.forEach(
    ordered,
    (name) => {
      const provider = options.providers[name]
      return provider === undefined ? Effect.succeed([]) : modelsOf(name, provider, silent)
    },
    { concurrency: 8 }
  )
  const listed = [...configured.flat(), ...(all ? yield* others(options) : []), offline]
  const models = listed.map((model): ListedModel => ({ ...model, default: model.model === chosen }))
  return { models, silent, hasProvider: names.length > 0 }
})

/** The servers for which a key is enough. */
export const servers: ReadonlyArray<ListedServer> = Servers.servers

/** Whether a model has all words in its name, case apart. */
export const matches =
  (words: ReadonlyArray<string>) =>
  ({ model, name }: Pick<ListedModel, "model" | "name">): boolean => {
    const text = `${model} ${name}`.toLowerCase()
    return words.every((word) => text.includes(word.toLowerCase()))
  }

/** The model that a name without its provider means, or the first one of the provider, as the end of a sentence. */
export const meant = (typed: string) =>
  Effect.map(list(false), ({ models }) => {
    const found = models.find(({ model }) => model.endsWith(`/${typed}`) || model.startsWith(`${typed}/`))
    return found === undefined ? undefined : `; did you mean ${found.model}?`
  })

/** Names the first few models of a server when no model was chosen; empty if none are listed. */
export const suggestion = Effect.map(list(false), ({ models, silent }) => {
  const found = models.filter(({ source }) => source === "server").map(({ model }) => model)
  const why = silent[0]?.why
  if (found.length === 0) return why === undefined ? "" : `; ${why}`
  const more = found.length > 8 ? `, and ${found.length - 8} more (daybook models)` : ""
  return `; it offers ${found.slice(0, 8).join(", ")}${more}`
})
