/**
 * Resolves model references: finds the provider, the model, and the client that serves it. Clients and their libraries
 * are loaded on a model's first use. `layer` reads the environment; `make` takes the providers from the host. Spec:
 * MD-7..MD-9, MD-36..MD-39.
 */
import type * as LanguageModel from "@effect/ai/LanguageModel"
import { Cache, type ConfigError, Data, Duration, Effect, Layer } from "effect"
import type { RequestSettings } from "@daybook/core/domain/Agent"
import { sameOrigin } from "@daybook/core/http/SameOrigin"
import {
  type ModelInfo,
  ModelNotFound,
  ModelNotSelected,
  type ModelResolutionError,
  ModelResolver,
  ProviderNotFound,
  type ResolvedModel,
  UnsupportedApi,
  VariantUnavailable
} from "@daybook/core/model/ModelResolver"
import * as Catalog from "./Catalog.ts"
import { environment, environmentWith } from "./Environment.ts"
import { importWith } from "./OptionalPackage.ts"
import * as OfflineModel from "./OfflineModel.ts"
import * as Policy from "./Policy.ts"
import type { Api, Profile } from "./Profile.ts"
import * as Profiles from "./Profiles.ts"
import type { ConfiguredProvider, Options, Provider, ProviderBase, Ref, WireProvider } from "./Providers.ts"
import * as Servers from "./Servers.ts"
import * as Windows from "./Windows.ts"
import { baseOf } from "./wire/Address.ts"
import type { Protocol } from "./wire/Protocol.ts"

export type { ConfiguredProvider, ModelSettings, Options, Provider, WireProvider } from "./Providers.ts"

/**
 * A resolver over the host's providers. The offline model is always available, as `offline/scribe`.
 *
 * @example
 * ```ts
 * import { Models } from "@daybook/models"
 *
 * export const resolver = Models.make({
 *   providers: { ollama: { api: "openai-compatible", baseUrl: "http://localhost:11434/v1" } },
 *   default: { providerID: "ollama", id: "qwen3:8b" }
 * })
 * ```
 */
export const make = Effect.fn("Models.make")(function* (options: Options) {
  // Data.struct compares references by value, so one client serves all sessions of a model.
  const clients = yield* Cache.make({
    capacity: 64,
    timeToLive: Duration.infinity,
    lookup: (ref: Ref) => build(options, ref)
  })
  const windowed = yield* Windows.make(options)
  const resolve = Effect.fn("Models.resolve")(function* (
    asked: Ref | undefined,
    settings: RequestSettings = {}
  ): Effect.fn.Return<ResolvedModel, ModelResolutionError> {
    const ref = asked ?? options.default
    if (ref === undefined) {
      return yield* new ModelNotSelected(options.defaultHint === undefined ? {} : { hint: options.defaultHint })
    }
    const variant = ref.variant === undefined || ref.variant === "default" ? {} : { variant: ref.variant }
    const client = yield* clients.get(Data.struct({ providerID: ref.providerID, id: ref.id, ...variant }))
    const { info, ...resolved } = client.resolved
    const model = client.configure === undefined ? resolved.model : yield* client.configure(settings)
    return { ...resolved, info: yield* windowed({ ...info, ref }), model }
  })
  return ModelResolver.of({ resolve })
})

/** The resolver of `make` as a layer. */
export const layerOptions = (options: Options): Layer.Layer<ModelResolver> => Layer.effect(ModelResolver, make(options))

/** The options from the environment; `specs/models.md` lists the variables (MD-36). */
export const fromEnvironment: Effect.Effect<Options, ConfigError.ConfigError> = environment

/** The options from the environment and the providers of a person's configuration (MD-725). */
export const fromConfiguration: (
  providers: Readonly<Record<string, ConfiguredProvider>>
) => Effect.Effect<Options, ConfigError.ConfigError> = environmentWith

/** The resolver for the environment; without any key the offline model is the default. */
export const layer: Layer.Layer<ModelResolver, ConfigError.ConfigError> = Layer.effect(
  ModelResolver,
  Effect.flatMap(environment, make)
)

/** Makes the model with request settings; all share one client and its connections. */
type Configurable = (settings: RequestSettings) => Effect.Effect<LanguageModel.Service>

/** The cached part of a model: one client for all request settings. */
interface Client {
  readonly resolved: ResolvedModel
  /** Returns the same model with request settings; absent if it takes none. */
  readonly configure?: Configurable
}

const build = Effect.fnUntraced(function* (options: Options, ref: Ref): Effect.fn.Return<Client, ModelResolutionError> {
  const { id, providerID } = ref
  const provider = Object.hasOwn(options.providers, providerID) ? options.providers[providerID] : undefined
  if (provider === undefined) {
    return OfflineModel.isOffline(ref) ? { resolved: yield* offline(ref) } : yield* missing(options, providerID)
  }
  const settings = provider.models !== undefined && Object.hasOwn(provider.models, id) ? provider.models[id] : undefined
  const known = yield* catalogued(providerID, provider, id)
  if (known === undefined && settings === undefined && isClosed(provider)) {
    const names = [...Object.keys(provider.models ?? {}), ...Object.keys(yield* Catalog.entriesOf(provider.api))]
    return yield* new ModelNotFound({ providerID, modelID: id, known: names })
  }
  const { countTokens, policy, thinks = known?.thinks, variants = known?.variants ?? [], ...facts } = settings ?? {}
  if (ref.variant !== undefined && !variants.includes(ref.variant)) {
    return yield* new VariantUnavailable({ model: { ...ref }, known: [...variants] })
  }
  const { thinks: _, variants: __, ...entry } = known ?? { ...unknown, name: id }
  const info: ModelInfo = {
    ...entry,
    ...(Servers.isServer(provider) ? rulesOf(profileOf(provider, { ...entry, ref })) : {}),
    ...facts,
    ref
  }
  const base = provider.api === "language-model" ? {} : Policy.standard
  const configure = yield* configurable(provider, info, variants, thinks)
  const count = countTokens ?? (provider.api === "openai" ? yield* openAiTokens(id) : undefined)
  const resolved = {
    info,
    policy: Policy.apply(base, options.policy, provider.policy, policy),
    model: yield* configure({}),
    ...(count === undefined ? {} : { countTokens: count })
  }
  return {
    resolved,
    configure: (asked) => (Object.keys(asked).length === 0 ? Effect.succeed(resolved.model) : configure(asked))
  }
})

/** What the runtime knows of a server's rules. */
const rulesOf = ({ media, pictures, system }: Profile): Pick<ModelInfo, "media" | "pictures" | "systemMessages"> => ({
  media,
  pictures,
  systemMessages: system === "anywhere" ? "anywhere" : "leading"
})

/** The catalogue's facts; a server at another address is known by that address. */
const catalogued = (providerID: string, provider: Provider, id: string): Effect.Effect<Catalog.Entry | undefined> =>
  Servers.isServer(provider)
    ? Catalog.find(Servers.catalogueName(providerID, provider.baseUrl), provider.api, id)
    : Effect.succeed(undefined)

const unknown = { contextTokens: 0, outputTokens: 0, variants: [], thinks: undefined }

/** Whether only the catalogue's models and their families exist: an address of one's own may serve anything. */
const isClosed = (provider: Provider): boolean =>
  (provider.api === "anthropic" || provider.api === "openai") && provider.baseUrl === undefined

/** Without the vocabulary the runtime estimates. */
const openAiTokens = (id: string) =>
  importWith("gpt-tokenizer", async () => {
    const { countTokensOf } = await import("./Tokenizer.ts")
    return countTokensOf(id)
  }).pipe(Effect.catchTag("NotInstalled", () => Effect.succeed(undefined)))

const offline = (ref: Ref): Effect.Effect<ResolvedModel, ModelResolutionError> => {
  if (ref.id !== OfflineModel.ref.id) {
    return new ModelNotFound({ providerID: ref.providerID, modelID: ref.id, known: [OfflineModel.ref.id] })
  }
  return ref.variant === undefined ? OfflineModel.resolved : new VariantUnavailable({ model: { ...ref }, known: [] })
}

const missing = (options: Options, providerID: string): ProviderNotFound => {
  const known = [...Object.keys(options.providers), OfflineModel.ref.providerID]
  const hint = Object.hasOwn(options.hints ?? {}, providerID) ? options.hints?.[providerID] : undefined
  return new ProviderNotFound({ providerID, hint: hint ?? `there is no such provider; known: ${known.join(", ")}` })
}

/** The provider's model with its effort: the variant, else the settings' effort if the model knows it (MD-47). */
const configurable = (
  provider: Provider,
  info: ModelInfo,
  variants: ReadonlyArray<string>,
  thinks: boolean | undefined
): Effect.Effect<Configurable, ModelResolutionError> => {
  // Without known variants a compatible server gets an effort unchecked, unless the model is known not to think.
  const takes = (effort: string) =>
    variants.includes(effort) || (variants.length === 0 && thinks !== false && provider.api === "openai-compatible")
  return Effect.map(
    client(provider, info, thinks ?? variants.length > 0),
    (configure) =>
      ({ effort: asked, ...settings }) => {
        const effort = info.ref.variant ?? (asked !== undefined && takes(asked) ? asked : undefined)
        return configure({ ...settings, ...(effort === undefined ? {} : { effort }) })
      }
  )
}

const protocols: Readonly<Record<Api, () => Promise<Protocol>>> = {
  anthropic: async () => (await import("./wire/Messages.ts")).messages,
  openai: async () => (await import("./wire/Responses.ts")).responses,
  "openai-compatible": async () => (await import("./wire/Chat.ts")).chat,
  gemini: async () => (await import("./wire/Gemini.ts")).gemini
}

const client = (
  provider: Provider,
  info: ModelInfo,
  thinks: boolean
): Effect.Effect<Configurable, ModelResolutionError> => {
  const { id: model, providerID } = info.ref
  if (provider.api === "language-model") {
    return Effect.map(provider.model(model), (made) => () => Effect.succeed(made))
  }
  // Options may come from a file, unchecked by the compiler.
  if (!Servers.isServer(provider)) return unsupported(provider, providerID)
  const profile = profileOf(provider, info)
  const baseUrl = provider.baseUrl ?? profile.baseUrl
  if (baseUrl === undefined) {
    return new ProviderNotFound({ providerID, hint: "give the address of its server (baseUrl)" })
  }
  return Effect.gen(function* () {
    const { make } = yield* Effect.promise(() => import("./wire/WireModel.ts"))
    const protocol = yield* Effect.promise(protocols[provider.api])
    const fetch = yield* fetchOf(provider)
    return (settings) =>
      make({
        protocol,
        profile,
        provider: providerID,
        model,
        baseUrl: baseOf(profile, baseUrl),
        apiKey: provider.apiKey,
        headers: provider.headers ?? {},
        outputTokens: info.outputTokens,
        thinks,
        fetch,
        settings
      })
  })
}

const unsupported = ({ api }: { readonly api?: unknown }, providerID: string) =>
  new UnsupportedApi({ providerID, api: String(api) })

/** The server's rules, with the host's word on system messages. */
const profileOf = (
  provider: WireProvider,
  { media, ref, systemMessages }: Pick<ModelInfo, "media" | "ref" | "systemMessages">
): Profile => {
  const known = Profiles.profileOf({
    ...provider,
    providerID: ref.providerID,
    model: ref.id,
    fields: provider.profile
  })
  // The catalogue knows what the model takes, the profile only what some model of the server does.
  const profile = media === undefined || provider.profile?.media !== undefined ? known : { ...known, media }
  if (systemMessages === "anywhere") return { ...profile, system: "anywhere" }
  return systemMessages === "leading" && profile.system === "anywhere" ? { ...profile, system: "leading" } : profile
}

const fetchOf = (provider: ProviderBase): Effect.Effect<typeof globalThis.fetch> =>
  Effect.promise(async () => {
    const { patientFetch } = await import("./wire/Fetch.ts")
    return sameOrigin(provider.fetch ?? patientFetch())
  })
