/**
 * Asks a server for its models and their context windows. Each server says them in its own way: most in `/models`, some
 * at an address of their own, which is asked only if `/models` tells no window. Reads tolerantly; requests are bounded in
 * time, bytes and count. Spec: MD-730..MD-733.
 */
import { Effect, Option, Redacted } from "effect"
import { sameOrigin } from "@daybook/core/http/SameOrigin"
import type { Profile } from "./Profile.ts"
import { profileOf } from "./Profiles.ts"
import type { Provider } from "./Providers.ts"
import { isServer, knownAs } from "./Servers.ts"
import { count, type Json, list as items, record } from "./wire/Json.ts"

/** A model of a server's list. */
export interface Listed {
  readonly id: string
  /** Absent when the server does not say it. */
  readonly contextTokens?: number
}

/** The rules that the listing depends on. */
export type Rules = Pick<Profile, "api" | "hosts" | "keyHeader" | "listing">

/** A server: its rules, its address up to the protocol's path, and how to sign in. */
export interface Target {
  readonly profile: Rules
  readonly baseUrl: string
  readonly key: Redacted.Redacted | undefined
  readonly headers: Readonly<Record<string, string>> | undefined
  /** The host's own; by default, that of the requests for answers. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** How to ask a provider for its models; undefined for one that is not a server. */
export const targetOf = (providerID: string, provider: Provider, model = ""): Target | undefined => {
  if (!isServer(provider)) return undefined
  const { api, apiKey: key, fetch, headers, like, profile: fields } = provider
  const baseUrl = provider.baseUrl ?? knownAs(providerID)?.baseUrl
  if (baseUrl === undefined) return undefined
  const profile = profileOf({ providerID, api, baseUrl, model, like, fields })
  return { profile, baseUrl, key, headers, fetch }
}

const listTime = "5 seconds"
const windowTime = "2 seconds"
const maxBytes = 4 * 1024 * 1024
const maxModels = 2_000
/** Ollama tells windows one model at a time. */
const maxShown = 50

const listOf = (value: unknown): ReadonlyArray<Json> => items(value).map(record)

/** A count of tokens: a positive whole number. */
const tokensOf = (value: unknown): number | undefined =>
  Number.isInteger(Number(value)) ? count(value) || undefined : undefined

const first = (...values: ReadonlyArray<unknown>): number | undefined =>
  values.map(tokensOf).find((tokens) => tokens !== undefined)

/** The headers of a request to the server: its key, and the person's own. */
export const headersOf = ({ headers, key, profile }: Target): Record<string, string> => {
  const secret = key === undefined ? "" : Redacted.value(key)
  const own: Readonly<Record<Profile["api"], string>> = {
    anthropic: "x-api-key",
    gemini: "x-goog-api-key",
    openai: "authorization",
    "openai-compatible": "authorization"
  }
  const name = profile.keyHeader === "bearer" ? "authorization" : own[profile.api]
  return {
    ...(profile.api === "anthropic" ? { "anthropic-version": "2023-06-01" } : {}),
    ...(secret === "" ? {} : { [name]: name === "authorization" ? `Bearer ${secret}` : secret }),
    ...headers
  }
}

const withoutSlash = (address: string): string => address.replace(/\/+$/, "")
/** The server's address without the version. */
const rootOf = (address: string): string => withoutSlash(withoutSlash(address).replace(/\/v1$/, ""))

/** The address of its list of models. */
export const modelsAddress = ({ baseUrl, profile }: Target): string =>
  profile.api === "anthropic" ? `${rootOf(baseUrl)}/v1/models` : `${withoutSlash(baseUrl)}/models`

/** The text of a body; undefined if it is too long. */
const bounded = async (response: Response): Promise<string | undefined> => {
  const parts: Array<Uint8Array> = []
  let size = 0
  for await (const part of response.body ?? []) {
    size += part.length
    if (size > maxBytes) return undefined
    parts.push(part)
  }
  return Buffer.concat(parts).toString("utf8")
}

const reasonOf = (cause: unknown): string =>
  cause instanceof Error && cause.cause instanceof Error ? cause.cause.message : String(cause)

/** The JSON at an address; the error is a sentence. */
const json = (target: Target, address: string, body?: unknown): Effect.Effect<unknown, string> =>
  Effect.gen(function* () {
    const { host } = new URL(address)
    const headers = { ...headersOf(target), ...(body === undefined ? {} : { "content-type": "application/json" }) }
    const init = body === undefined ? { headers } : { headers, method: "POST", body: JSON.stringify(body) }
    const fetch = target.fetch ?? (yield* Effect.promise(() => import("./wire/Fetch.ts"))).sharedFetch()
    const response = yield* Effect.tryPromise({
      try: (signal) => sameOrigin(fetch)(address, { ...init, signal }),
      catch: (cause) => `${host} cannot be reached: ${reasonOf(cause)}`
    })
    if (!response.ok) {
      yield* Effect.promise(async () => response.body?.cancel())
      return yield* Effect.fail(`${host} answered HTTP ${response.status}`)
    }
    const text = yield* Effect.tryPromise({
      try: () => bounded(response),
      catch: () => `the response of ${host} was cut off`
    })
    if (text === undefined) return yield* Effect.fail(`the model list of ${host} exceeds ${maxBytes / 1024 / 1024} MiB`)
    return yield* Effect.try({
      try: (): unknown => JSON.parse(text),
      catch: () => `${host} does not list its models as chat completions servers do`
    })
  })

/** An entry of `/models`, and what tells the server apart. */
interface Entry extends Listed {
  readonly owner: string
  /** The window that the model was trained with: the server's may be smaller. */
  readonly trained?: number
}

/** The window that an entry states, in the words of vLLM, SGLang, LM Studio, OpenRouter, Groq, Mistral, Gemini and others. */
const windowOf = (entry: Json): number | undefined => {
  const { meta, top_provider: served } = entry
  return first(
    entry["max_model_len"],
    entry["loaded_context_length"],
    record(served)["context_length"],
    entry["context_length"],
    entry["max_context_length"],
    entry["context_window"],
    entry["max_input_tokens"],
    entry["inputTokenLimit"],
    record(meta)["n_ctx"]
  )
}

const entryOf = (fields: Json): ReadonlyArray<Entry> => {
  const id = [fields["id"], fields["name"], fields["model"]].find((each) => typeof each === "string" && each !== "")
  if (typeof id !== "string") return []
  const contextTokens = windowOf(fields)
  const trained = tokensOf(record(fields["meta"])["n_ctx_train"])
  return [
    {
      id: id.replace(/^models\//, ""),
      owner: String(fields["owned_by"] ?? ""),
      ...(contextTokens === undefined ? {} : { contextTokens }),
      ...(trained === undefined ? {} : { trained })
    }
  ]
}

const entries = (target: Target): Effect.Effect<ReadonlyArray<Entry>, string> =>
  Effect.flatMap(json(target, modelsAddress(target)), (answer) => {
    const { data, models } = record(answer)
    const written = [data, models, answer].find((each) => Array.isArray(each))
    return written === undefined
      ? Effect.fail(`${new URL(target.baseUrl).host} does not list its models as chat completions servers do`)
      : Effect.succeed(listOf(written).slice(0, maxModels).flatMap(entryOf))
  })

/** Windows by model, or that of the only model. */
type Windows = (model: string) => number | undefined

const none: Windows = () => undefined

const probe = (target: Target, path: string, read: (answer: Json) => Windows): Effect.Effect<Windows> =>
  json(target, `${rootOf(target.baseUrl)}${path}`).pipe(
    Effect.map((answer) => read(record(answer))),
    Effect.orElseSucceed(() => none)
  )

/** llama.cpp tells the window of a slot, which is what a conversation has. */
const llamaCpp = (target: Target) =>
  probe(target, "/props", ({ default_generation_settings: settings, n_ctx: window }) => {
    const tokens = first(record(settings)["n_ctx"], window)
    return () => tokens
  })

const named = (list: ReadonlyArray<Json>, key: string, read: (entry: Json) => number | undefined): Windows => {
  const windows = new Map(list.map((entry) => [entry[key], read(entry)]))
  return (model) => windows.get(model)
}

const lmStudio = (target: Target) => probe(target, "/api/v0/models", ({ data }) => named(listOf(data), "id", windowOf))

const liteLlm = (target: Target) =>
  probe(target, "/model/info", ({ data }) =>
    named(listOf(data), "model_name", ({ model_info: info }) =>
      first(record(info)["max_input_tokens"], record(info)["max_tokens"])
    )
  )

/** Text Generation Inference serves one model. */
const tgi = (target: Target) =>
  probe(target, "/info", ({ max_total_tokens: window }) => {
    const tokens = tokensOf(window)
    return () => tokens
  })

/** Ollama's window: `num_ctx` of the model file, else that of the loaded model, else the model's maximum. */
const ollama = (target: Target, models: ReadonlyArray<string>): Effect.Effect<Windows> =>
  Effect.gen(function* () {
    const root = rootOf(target.baseUrl)
    const running = yield* Effect.orElseSucceed(json(target, `${root}/api/ps`), () => ({}))
    const loaded = named(listOf(record(running)["models"]), "model", ({ context_length: window }) => tokensOf(window))
    const shown = yield* Effect.forEach(
      models.slice(0, maxShown),
      (model) =>
        json(target, `${root}/api/show`, { model }).pipe(
          Effect.map((answer) => {
            const { model_info: info, parameters } = record(answer)
            const [, set] = /^num_ctx\s+(\d+)/m.exec(String(parameters ?? "")) ?? []
            const able = Object.entries(record(info)).find(([name]) => name.endsWith(".context_length"))?.[1]
            return [model, first(set, loaded(model), loaded(`${model}:latest`), able)] as const
          }),
          Effect.orElseSucceed(() => [model, undefined] as const)
        ),
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
  if (listing === "llama.cpp" || owners.has("llamacpp")) return llamaCpp(target)
  // All are reads: the other servers answer 404.
  return Effect.map(
    Effect.all([lmStudio(target), liteLlm(target), llamaCpp(target), tgi(target)], { concurrency: "unbounded" }),
    (ways) => (model) => first(...ways.map((way) => way(model)))
  )
}

/** Whether the address is the known server's own, and not one that follows its rules elsewhere. */
const isPublic = ({ baseUrl, profile }: Target): boolean => {
  const { hostname } = new URL(baseUrl)
  return profile.hosts.some((host) => hostname === host || hostname.endsWith(`.${host}`))
}

/** Completes entries without a window. Public servers state it in `/models`, or nowhere. */
const completed = (target: Target, found: ReadonlyArray<Entry>): Effect.Effect<ReadonlyArray<Listed>> => {
  const missing = found.filter(({ contextTokens }) => contextTokens === undefined).map(({ id }) => id)
  const ways = missing.length === 0 || isPublic(target) ? Effect.succeed(none) : ownWay(target, found, missing)
  return Effect.map(ways, (windows) =>
    found.map(({ contextTokens, id, trained }) => {
      const tokens = contextTokens ?? windows(id) ?? trained
      return { id, ...(tokens === undefined ? {} : { contextTokens: tokens }) }
    })
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
    const [only] = found
    const asked =
      found.find(({ id }) => id === model || id === `${model}:latest`) ?? (found.length === 1 ? only : undefined)
    if (asked === undefined) return undefined
    const [known] = yield* completed(target, [asked])
    return known?.contextTokens
  }).pipe(
    Effect.timeoutOption(windowTime),
    Effect.map(Option.getOrUndefined),
    Effect.orElseSucceed(() => undefined)
  )
}
