/**
 * Asks a server for its models and their context windows. Each server says them in its own way: most in `/models`, some
 * at an address of their own, which is asked only if `/models` tells no window. Reads tolerantly; requests are bounded in
 * time, bytes and count. Spec: MD-730..MD-733.
 */
import { Cache, Data, Duration, Effect, Exit, Option, Predicate, Redacted } from "effect"
import { boundedBody } from "@daybook/core/http/BoundedBody"
import { HttpRefused, sameOrigin } from "@daybook/core/http/SameOrigin"
import type { ModelInfo } from "@daybook/core/model/ModelResolver"
import { present } from "@daybook/log/support/Optional"
import { unansweredWords } from "@daybook/log/support/SystemError"
import { fits, type Profile, profileOf } from "./Profiles.ts"
import { isServer, type Options, type Provider } from "./Providers.ts"
import { knownAs } from "./Servers.ts"
import { count, type Json, list as items, record, text } from "./wire/Json.ts"
import { baseOf, endpoint, signIn } from "./wire/Protocol.ts"

export interface Listed {
  readonly id: string
  /** Absent when the server does not say it. */
  readonly contextTokens?: number
}

/** A server: its rules, its address up to the protocol's path, and how to sign in. */
export interface Target {
  readonly profile: Pick<Profile, "api" | "hosts" | "keyHeader" | "listing">
  readonly baseUrl: string
  readonly key: Redacted.Redacted | undefined
  readonly headers: Readonly<Record<string, string>> | undefined
  /** The host's own; by default, that of the requests for answers. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** How to ask a provider for its models; undefined for one that is not a server. */
export const targetOf = (providerID: string, provider: Provider, model = ""): Target | undefined => {
  const baseUrl = isServer(provider) ? (provider.baseUrl ?? knownAs(providerID)?.baseUrl) : undefined
  if (!isServer(provider) || baseUrl === undefined) return undefined
  const { apiKey: key, fetch, headers, profile: fields } = provider
  const profile = profileOf({ ...provider, providerID, baseUrl, model, fields })
  return { profile, baseUrl, key, headers, fetch }
}

const listTime = "5 seconds"
const windowTime = "2 seconds"
const maxBytes = 4 * 1024 * 1024
const maxModels = 2_000
/** Ollama tells windows one model at a time. */
const maxShown = 50

const listOf = (value: unknown): ReadonlyArray<Json> => items(value).map(record)

const tokensOf = (value: unknown): number | undefined =>
  Number.isInteger(Number(value)) ? count(value) || undefined : undefined

const first = (...values: ReadonlyArray<unknown>): number | undefined =>
  values.map(tokensOf).find((tokens) => tokens !== undefined)

/** The headers of a request to the server: its key, and the person's own. */
export const headersOf = ({ headers, key, profile }: Target): Record<string, string> => ({
  ...signIn(profile, key && Redacted.value(key)),
  ...headers
})

export const modelsAddress = ({ baseUrl, profile }: Target): string =>
  endpoint(baseOf({ api: profile.api }, baseUrl), "models")

const rootOf = (address: string): string => address.replace(/(?:\/v1)?\/*$/, "")

const json = (target: Target, address: string, body?: unknown): Effect.Effect<unknown, string> =>
  Effect.gen(function* () {
    const { host, pathname } = new URL(address)
    const headers = { ...headersOf(target), ...(body === undefined ? {} : { "content-type": "application/json" }) }
    const init = body === undefined ? { headers } : { headers, method: "POST", body: JSON.stringify(body) }
    const fetch = target.fetch ?? (yield* Effect.promise(() => import("./wire/Fetch.ts"))).sharedFetch()
    const response = yield* Effect.tryPromise({
      try: (signal) => sameOrigin(fetch)(address, { ...init, signal }),
      catch: (cause) => `${host} cannot be reached: ${unansweredWords(cause)}`
    })
    if (!response.ok) {
      yield* Effect.promise(async () => response.body?.cancel())
      return yield* Effect.fail(`${host}${response.status === 404 ? pathname : ""} answered HTTP ${response.status}`)
    }
    const source = yield* Effect.tryPromise({
      try: () => boundedBody(response, { body: maxBytes, event: maxBytes }).text(),
      catch: (cause) =>
        cause instanceof HttpRefused
          ? `the model list of ${host} exceeds ${maxBytes / 1024 / 1024} MiB`
          : `the response of ${host} was cut off`
    })
    return yield* Effect.try({ try: (): unknown => JSON.parse(source), catch: () => unlike(host) })
  })

const unlike = (host: string): string => `${host} does not list its models as chat completions servers do`

/** An entry of `/models`, and what tells the server apart. */
interface Entry extends Listed {
  readonly owner: string
  /** The window that the model was trained with: the server's may be smaller. */
  readonly trained?: number
}

/** Names of a window, without their separators: `max_model_len`, `loaded_context_length`, `inputTokenLimit`. */
const windowName =
  /^(?:(?:max|loaded|available)?(?:context(?:window)?(?:length|size|tokens)?|modellen|seqlen)|max(?:input|prompt)tokens|inputtokenlimit|nctx)$/

/** The windows that an entry states, at any place but its prices. */
const windowsIn = (entry: unknown, depth = 4): ReadonlyArray<number> =>
  depth === 0 || !Predicate.isObject(entry)
    ? []
    : Object.entries(entry).flatMap(([name, value]) => {
        const tokens = windowName.test(name.toLowerCase().replaceAll(/[_-]/g, "")) ? tokensOf(value) : undefined
        if (tokens !== undefined) return [tokens]
        return /pric|cost/i.test(name) ? [] : windowsIn(value, depth - 1)
      })

/** The least window of an entry: what is loaded, or of the servers behind a gateway the one that takes least. */
const windowOf = (entry: Json): number | undefined => windowsIn(entry).toSorted((a, b) => a - b)[0]

const entryOf = (fields: Json): ReadonlyArray<Entry> => {
  const id = text(fields["id"]) ?? text(fields["name"]) ?? text(fields["model"])
  const trained = tokensOf(record(fields["meta"])["n_ctx_train"])
  const owner = String(fields["owned_by"] ?? "")
  return id === undefined
    ? []
    : [present({ id: id.replace(/^models\//, ""), owner, contextTokens: windowOf(fields), trained })]
}

const entries = (target: Target): Effect.Effect<ReadonlyArray<Entry>, string> =>
  Effect.flatMap(json(target, modelsAddress(target)), (answer) => {
    const { data, models } = record(answer)
    const written = [data, models, answer].find((each) => Array.isArray(each))
    return written === undefined
      ? Effect.fail(unlike(new URL(target.baseUrl).host))
      : Effect.succeed(listOf(written).slice(0, maxModels).flatMap(entryOf))
  })

type Windows = (model: string) => number | undefined

const none: Windows = () => undefined

const named = (entries: unknown, key: string, name: string): Json =>
  listOf(entries).find((entry) => entry[key] === name) ?? {}

/** A place where a server states windows, and how it is read. All are reads: other servers answer 404. */
type Place = readonly [path: string, read: (answer: Json, model: string) => number | undefined]

const lmStudio: Place = ["/api/v0/models", ({ data }, model) => windowOf(named(data, "id", model))]
const liteLlm: Place = [
  "/model/info",
  ({ data }, model) => {
    const { max_input_tokens, max_tokens } = record(named(data, "model_name", model)["model_info"])
    return first(max_input_tokens, max_tokens)
  }
]
/** The window of a slot is what a conversation has. */
const llamaCpp: Place = [
  "/props",
  ({ default_generation_settings: settings, n_ctx: window }) => first(record(settings)["n_ctx"], window)
]
/** A router of llama.cpp knows windows by model; asking must not load one. */
const llamaRouter = (models: ReadonlyArray<string>): ReadonlyArray<Place> =>
  models.length === 1 ? [[`/props?model=${encodeURIComponent(models.join())}&autoload=false`, llamaCpp[1]]] : []
const tgi: Place = ["/info", ({ max_total_tokens: window }) => tokensOf(window)]
const koboldCpp: Place = ["/api/extra/true_max_context_length", ({ value }) => tokensOf(value)]

const probe = (target: Target, ...places: ReadonlyArray<Place>): Effect.Effect<Windows> =>
  Effect.map(
    Effect.forEach(
      places,
      ([path, read]) =>
        Effect.map(
          Effect.option(json(target, `${rootOf(target.baseUrl)}${path}`)),
          (answer) => (model: string) => read(record(Option.getOrUndefined(answer)), model)
        ),
      { concurrency: "unbounded" }
    ),
    (windows) => (model) => first(...windows.map((window) => window(model)))
  )

/** Ollama's window: `num_ctx` of the model file, else that of the loaded model, else the model's maximum. */
const ollama = (target: Target, models: ReadonlyArray<string>): Effect.Effect<Windows> =>
  Effect.gen(function* () {
    const root = rootOf(target.baseUrl)
    const running = record(yield* Effect.orElseSucceed(json(target, `${root}/api/ps`), () => ({})))["models"]
    const loaded = (model: string) => named(running, "model", model)["context_length"]
    const shown = yield* Effect.forEach(
      models.slice(0, maxShown),
      (model) =>
        Effect.map(Effect.option(json(target, `${root}/api/show`, { model })), (answer) => {
          const { model_info: info, parameters } = record(Option.getOrUndefined(answer))
          const [, set] = /^num_ctx\s+(\d+)/m.exec(String(parameters ?? "")) ?? []
          const able = Object.entries(record(info)).find(([name]) => name.endsWith(".context_length"))?.[1]
          return [model, first(set, loaded(model), loaded(`${model}:latest`), able)] as const
        }),
      { concurrency: 4 }
    )
    const windows = new Map(shown)
    return (model) => windows.get(model)
  })

/** The servers' own ways, for models whose window `/models` does not state. */
const ownWay = (target: Target, found: ReadonlyArray<Entry>, models: ReadonlyArray<string>): Effect.Effect<Windows> => {
  const { listing } = target.profile
  const owners = new Set(found.map(({ owner }) => owner))
  if (listing === "ollama" || owners.has("library") || new URL(target.baseUrl).port === "11434") {
    return ollama(target, models)
  }
  return listing === "llama.cpp" || owners.has("llamacpp")
    ? probe(target, llamaCpp, ...llamaRouter(models))
    : probe(target, lmStudio, liteLlm, llamaCpp, tgi, koboldCpp)
}

/** Whether the address is the known server's own, and not one that follows its rules elsewhere. */
const isPublic = ({ baseUrl, profile }: Target): boolean =>
  profile.hosts.some((host) => fits(new URL(baseUrl).hostname, host))

/** Completes entries without a window. Public servers state it in `/models`, or nowhere. */
const completed = (target: Target, found: ReadonlyArray<Entry>): Effect.Effect<ReadonlyArray<Listed>> => {
  const missing = found.filter(({ contextTokens }) => contextTokens === undefined).map(({ id }) => id)
  const ways = missing.length === 0 || isPublic(target) ? Effect.succeed(none) : ownWay(target, found, missing)
  return Effect.map(ways, (windows) =>
    found.map(({ contextTokens, id, trained }) =>
      present({ id, contextTokens: contextTokens ?? windows(id) ?? trained })
    )
  )
}

/** The models that a server lists; the error is a sentence. A server without a list has none. */
export const list = (target: Target): Effect.Effect<ReadonlyArray<Listed>, string> =>
  target.profile.listing === "none"
    ? Effect.succeed([])
    : Effect.flatMap(entries(target), (found) => completed(target, found)).pipe(
        Effect.timeoutFail({
          duration: listTime,
          onTimeout: () => `${new URL(target.baseUrl).host} gave no answer in ${listTime}`
        })
      )

/** The context window that a server states for a model; undefined if it does not, or not in time. */
export const contextOf = (target: Target, model: string): Effect.Effect<number | undefined> => {
  if (target.profile.listing === "none") return Effect.succeed(undefined)
  return Effect.gen(function* () {
    const found = yield* entries(target)
    // A server of one model takes any name for it.
    const [only] = found.length === 1 ? found : []
    const asked = found.find(({ id }) => id === model || id === `${model}:latest`) ?? only
    if (asked === undefined) return undefined
    const [known] = yield* completed(target, [asked])
    return known?.contextTokens
  }).pipe(
    Effect.timeoutOption(windowTime),
    Effect.map(Option.getOrUndefined),
    Effect.orElseSucceed(() => undefined)
  )
}

// --- windows of models that are resolved

/** A server that did not state a window is asked again after this time. */
const unknownFor = Duration.minutes(5)

const windowAt = (options: Options, { id, providerID }: ModelInfo["ref"]): Effect.Effect<number | undefined> => {
  const provider = Object.hasOwn(options.providers, providerID) ? options.providers[providerID] : undefined
  // The protocols' own servers state no windows.
  const isOwn = provider !== undefined && isServer(provider) && provider.baseUrl !== undefined
  const target = isOwn ? targetOf(providerID, provider, id) : undefined
  return target === undefined ? Effect.succeed(undefined) : contextOf(target, id)
}

/**
 * Returns a function that adds the window of the model's server, if no other window is known, so that sessions on one's own server
 * are compacted in time. Spec: MD-734.
 */
export const makeWindows = Effect.fn("Listing.makeWindows")(function* (options: Options) {
  const windows = yield* Cache.makeWith({
    capacity: 64,
    timeToLive: (exit: Exit.Exit<number | undefined>) =>
      Exit.isSuccess(exit) && exit.value !== undefined ? Duration.infinity : unknownFor,
    lookup: (ref: ModelInfo["ref"]) => windowAt(options, ref)
  })
  return (info: ModelInfo): Effect.Effect<ModelInfo> => {
    if (info.contextTokens > 0) return Effect.succeed(info)
    const { id, providerID } = info.ref
    return Effect.map(windows.get(Data.struct({ id, providerID })), (contextTokens = 0) => ({ ...info, contextTokens }))
  }
})
