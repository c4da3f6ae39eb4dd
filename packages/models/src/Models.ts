/**
 * Resolves model references: finds the provider, the model, and the client that serves it. Clients and their libraries
 * are loaded on a model's first use. `layer` reads the environment; `make` takes the providers from the host. Spec:
 * MD-7..MD-9, MD-36..MD-39.
 */
import type * as LanguageModel from "@effect/ai/LanguageModel"
import { Cache, type ConfigError, Data, Duration, Effect, Layer, Struct } from "effect"
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
import { environment } from "./Environment.ts"
import * as OfflineModel from "./OfflineModel.ts"
import * as Policy from "./Policy.ts"
import * as Listing from "./Listing.ts"
import { type Api, type Profile, profileOf } from "./Profiles.ts"
import { isServer, type Options, type Provider, type Ref, type WireProvider } from "./Providers.ts"
import { catalogueName } from "./Servers.ts"
import { record } from "./wire/Json.ts"
import { baseOf, type Protocol } from "./wire/Protocol.ts"
import { spanned } from "@daybook/log/support/Spans"
import { present } from "@daybook/log/support/Optional"

/** The options from the environment (MD-36), and with the providers of a person's configuration (MD-725). */
export { environment as fromEnvironment, environmentWith as fromConfiguration } from "./Environment.ts"
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
  const windowed = yield* Listing.makeWindows(options)
  const resolve = spanned(
    "Models.resolve",
    Effect.fnUntraced(function* (asked: Ref | undefined, settings: RequestSettings = {}) {
      const ref = asked ?? options.default
      if (ref === undefined) return yield* new ModelNotSelected(present({ hint: options.defaultHint }))
      const variant = ref.variant === "default" ? undefined : ref.variant
      const { configure, info, ...resolved } = yield* clients.get(Data.struct(present({ ...ref, variant })))
      const model = configure === undefined ? resolved.model : yield* configure(settings)
      return { ...resolved, info: yield* windowed({ ...info, ref }), model }
    })
  )
  return ModelResolver.of({ resolve })
})

export const layerOptions = (options: Options): Layer.Layer<ModelResolver> => Layer.effect(ModelResolver, make(options))

/** The resolver for the environment; without any key the offline model is the default. */
export const layer: Layer.Layer<ModelResolver, ConfigError.ConfigError> = Layer.effect(
  ModelResolver,
  Effect.flatMap(environment, make)
)

/** Makes the model with request settings; all share one client and its connections. */
type Configurable = (settings: RequestSettings) => Effect.Effect<LanguageModel.Service>

/** The cached part of a model: one client for all request settings; none to configure if it takes no settings. */
interface Client extends ResolvedModel {
  readonly configure?: Configurable
}

const build = Effect.fnUntraced(function* (options: Options, ref: Ref): Effect.fn.Return<Client, ModelResolutionError> {
  const { id, providerID } = ref
  const provider = Object.hasOwn(options.providers, providerID) ? options.providers[providerID] : undefined
  if (provider === undefined) return yield* OfflineModel.isOffline(ref) ? offline(ref) : missing(options, providerID)
  const settings = provider.models !== undefined && Object.hasOwn(provider.models, id) ? provider.models[id] : undefined
  const known = isServer(provider)
    ? yield* Catalog.find(catalogueName(providerID, provider.baseUrl), provider.api, id)
    : undefined
  if (known === undefined && settings === undefined && isClosed(provider)) {
    const names = [...Object.keys(provider.models ?? {}), ...Object.keys(yield* Catalog.entriesOf(provider.api))]
    return yield* new ModelNotFound({ providerID, modelID: id, known: names })
  }
  const { countTokens, policy, thinks = known?.thinks, variants = known?.variants ?? [], ...facts } = settings ?? {}
  if (ref.variant !== undefined && !variants.includes(ref.variant)) {
    return yield* new VariantUnavailable({ model: { ...ref }, known: [...variants] })
  }
  const entry =
    known === undefined ? { name: id, contextTokens: 0, outputTokens: 0 } : Struct.omit(known, "thinks", "variants")
  const profile = isServer(provider) ? rulesOf(provider, ref, { ...entry, ...facts }) : undefined
  // What the runtime knows of the rules.
  const ruled = profile && {
    media: profile.media,
    pictures: profile.pictures,
    systemMessages: profile.system === "anywhere" ? ("anywhere" as const) : ("leading" as const)
  }
  const info: ModelInfo = { ...entry, ...ruled, ...facts, ref }
  // Without known variants a compatible server gets an effort unchecked, unless the model is known not to think.
  const takes = (effort: string) =>
    variants.includes(effort) || (variants.length === 0 && thinks !== false && provider.api === "openai-compatible")
  const made = yield* client(provider, info, profile, thinks ?? variants.length > 0)
  /** The model with its effort: the variant, else the settings' effort if the model knows it (MD-47). */
  const configure: Configurable = ({ effort: asked, ...given }) => {
    const effort = ref.variant ?? (asked !== undefined && takes(asked) ? asked : undefined)
    return made(present({ ...given, effort }))
  }
  const model = yield* configure({})
  return {
    info,
    policy: Policy.apply(isServer(provider) ? Policy.standard : {}, options.policy, provider.policy, policy),
    model,
    ...present({ countTokens: countTokens ?? (provider.api === "openai" ? yield* openAiTokens(id) : undefined) }),
    configure: (asked) => (Object.keys(asked).length === 0 ? Effect.succeed(model) : configure(asked))
  }
})

/** A server's rules: what the catalogue or the host knows about the model over what some model of the server takes. */
const rulesOf = (provider: WireProvider, ref: Ref, { media, systemMessages }: Partial<ModelInfo>): Profile => {
  const fields = { ...present({ media }), ...provider.profile }
  const profile = profileOf({ ...provider, providerID: ref.providerID, model: ref.id, fields })
  if (systemMessages === "anywhere") return { ...profile, system: "anywhere" }
  return systemMessages === "leading" && profile.system === "anywhere" ? { ...profile, system: "leading" } : profile
}

/** Whether only the catalogue's models and their families exist: an address of one's own may serve anything. */
const isClosed = (provider: Provider): boolean =>
  isServer(provider) && Catalog.hasFamilies(provider.api) && provider.baseUrl === undefined

/** Without `gpt-tokenizer`, which an application may leave out, the runtime estimates. Spec: MD-63. */
const openAiTokens = (id: string) =>
  Effect.promise(() =>
    import("./Tokenizer.ts")
      .then(({ countTokensOf }) => countTokensOf(id))
      .catch((error: unknown) => {
        if (!/ERR_MODULE_NOT_FOUND[^]*'gpt-tokenizer'/.test(`${String(record(error)["code"])} ${String(error)}`))
          throw error
        return undefined
      })
  )

const offline = (ref: Ref): Effect.Effect<ResolvedModel, ModelResolutionError> => {
  if (ref.id !== OfflineModel.ref.id) {
    return new ModelNotFound({ providerID: ref.providerID, modelID: ref.id, known: [OfflineModel.ref.id] })
  }
  return ref.variant === undefined ? OfflineModel.resolved : new VariantUnavailable({ model: { ...ref }, known: [] })
}

const missing = (options: Options, providerID: string): ProviderNotFound => {
  const known = [...Object.keys(options.providers), OfflineModel.ref.providerID]
  const hints = options.hints ?? {}
  const withKeys = Object.keys(hints).filter((name) => !known.includes(name))
  const others = withKeys.length === 0 ? "" : `; with a key: ${withKeys.join(", ")}`
  const hint = Object.hasOwn(hints, providerID) ? hints[providerID] : undefined
  const none = `there is no such provider; known: ${known.join(", ")}${others}`
  return new ProviderNotFound({ providerID, hint: hint ?? none })
}

const protocols: Readonly<Record<Api, () => Promise<Protocol>>> = {
  anthropic: async () => (await import("./wire/Messages.ts")).messages,
  openai: async () => (await import("./wire/Responses.ts")).responses,
  "openai-compatible": async () => (await import("./wire/Chat.ts")).chat,
  gemini: async () => (await import("./wire/Gemini.ts")).gemini
}

const client = (
  provider: Provider,
  { outputTokens, ref: { id: model, providerID } }: ModelInfo,
  profile: Profile | undefined,
  thinks: boolean
): Effect.Effect<Configurable, ModelResolutionError> => {
  if (provider.api === "language-model") {
    return Effect.map(provider.model(model), (made) => () => Effect.succeed(made))
  }
  if (profile === undefined) return new UnsupportedApi({ providerID, api: String(provider.api) })
  const baseUrl = provider.baseUrl ?? profile.baseUrl
  if (baseUrl === undefined) {
    return new ProviderNotFound({ providerID, hint: "give the address of its server (baseUrl)" })
  }
  return Effect.promise(async (): Promise<Configurable> => {
    const [{ make }, { sender }, protocol] = await Promise.all([
      import("./wire/WireModel.ts"),
      import("./wire/Fetch.ts"),
      protocols[provider.api]()
    ])
    const server = {
      protocol,
      profile,
      provider: providerID,
      model,
      baseUrl: baseOf(profile, baseUrl),
      apiKey: provider.apiKey,
      headers: provider.headers ?? {},
      outputTokens,
      thinks,
      send: sameOrigin(sender(provider.fetch))
    }
    return (settings) => make({ ...server, settings })
  })
}
