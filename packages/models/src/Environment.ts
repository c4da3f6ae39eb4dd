/**
 * Reads the providers and the default model from environment variables and from the person's configuration.
 * Spec: MD-36..MD-39, MD-64, MD-70, MD-724, MD-725.
 */
import { Config, ConfigError, type Duration, Effect, Either, Option, Record, Redacted, Struct } from "effect"
import * as Catalog from "./Catalog.ts"
import * as OfflineModel from "./OfflineModel.ts"
import type { PolicySettings } from "./Policy.ts"
import type { ConfiguredProvider, Options, WireProvider } from "./Providers.ts"
import { knownAs, type Server, serverOf, servers } from "./Servers.ts"

/** An empty variable counts as absent: shells make it easy to set one by accident. */
const optional = <A>(config: Config.Config<A>, isEmpty: (value: A) => boolean): Config.Config<Option.Option<A>> =>
  Config.option(config).pipe(Config.map(Option.filter((value) => !isEmpty(value))))

const text = (name: string) => optional(Config.string(name), (value) => value.trim() === "")

/** A key is sent in a header. Its error does not show it. */
const key = (name: string): Config.Config<Option.Option<Redacted.Redacted>> =>
  text(name).pipe(
    Config.mapOrFail(
      Option.match({
        onNone: () => Either.right(Option.none()),
        onSome: (value) =>
          /^[\x21-\x7e]+$/.test(value.trim())
            ? Either.right(Option.some(Redacted.make(value.trim())))
            : Either.left(
                ConfigError.InvalidData([name], "it is not a key: it has a space or a character beyond ASCII")
              )
      })
    )
  )

const url = (name: string) =>
  text(name).pipe(
    Config.mapOrFail(
      Option.match({
        onNone: () => Either.right(Option.none<string>()),
        onSome: (value) =>
          /^https?:\/\//.test(value.trim()) && URL.canParse(value.trim())
            ? Either.right(Option.some(value.trim()))
            : Either.left(ConfigError.InvalidData([name], "it is not an http or https address"))
      })
    )
  )

const modelName = text("DAYBOOK_MODEL").pipe(
  Config.mapOrFail(
    Option.match({
      onNone: () => Either.right(Option.none<NonNullable<Options["default"]>>()),
      onSome: (value) =>
        Either.mapBoth(Catalog.parseModel(value), {
          onLeft: (error) => ConfigError.InvalidData(["DAYBOOK_MODEL"], error.message),
          onRight: Option.some
        })
    })
  )
)

/** The first key of a server that is set. */
const keyOf = (server: Server): Config.Config<Option.Option<Redacted.Redacted>> =>
  Config.all(server.keys.map(key)).pipe(Config.map(Option.firstSomeOf))

const settings = Config.all({
  keys: Config.all(servers.map((server) => Config.map(keyOf(server), (found) => [server, found] as const))),
  anthropicUrl: url("ANTHROPIC_BASE_URL"),
  openaiUrl: url("OPENAI_BASE_URL"),
  daybookUrl: url("DAYBOOK_BASE_URL"),
  daybookKey: key("DAYBOOK_API_KEY"),
  model: modelName,
  retries: Config.option(
    Config.integer("DAYBOOK_MODEL_RETRIES").pipe(
      Config.validate({ message: "it is not a number from 0 to 10", validation: (times) => times >= 0 && times <= 10 })
    )
  ),
  timeout: Config.option(Config.duration("DAYBOOK_MODEL_TIMEOUT")),
  inactivity: Config.option(Config.duration("DAYBOOK_MODEL_INACTIVITY"))
})

type Found = Config.Config.Success<typeof settings>
type Providers = { readonly [name: string]: WireProvider }
type ConfiguredProviders = { readonly [name: string]: ConfiguredProvider }

/** The providers that the variables configure. */
const fromVariables = ({ anthropicUrl, daybookKey, daybookUrl, keys, openaiUrl }: Found): Providers => {
  const addresses: { readonly [name: string]: Option.Option<string> } = { anthropic: anthropicUrl, openai: openaiUrl }
  const providers: { [name: string]: WireProvider } = {}
  for (const [server, apiKey] of keys) {
    if (Option.isNone(apiKey)) continue
    const address =
      Option.getOrUndefined(addresses[server.provider] ?? Option.none()) ??
      standardAddress(server.provider, server.baseUrl)
    providers[server.provider] = { api: server.api, apiKey: apiKey.value, ...given("baseUrl", address) }
  }
  const compatibleUrl = Option.getOrUndefined(daybookUrl) ?? Option.getOrUndefined(openaiUrl)
  if (compatibleUrl !== undefined) {
    // OpenAI's key is sent only to OpenAI's address.
    const apiKey =
      Option.getOrUndefined(daybookKey) ?? (Option.isSome(daybookUrl) ? undefined : providers["openai"]?.apiKey)
    providers["openai-compatible"] = { api: "openai-compatible", baseUrl: compatibleUrl, ...given("apiKey", apiKey) }
  }
  return providers
}

/** The two that have families keep their protocol's default address. */
const standardAddress = (provider: string, baseUrl: string | undefined): string | undefined =>
  provider === "anthropic" || provider === "openai" ? undefined : baseUrl

/** A configured provider over what the variables say about it; undefined if it lacks an API or an address. */
const merged = (
  name: string,
  { headers, ...written }: ConfiguredProvider,
  provider: WireProvider | undefined
): WireProvider | undefined => {
  const configured = Struct.omit(written, "missing")
  const known = knownAs(name) ?? (configured.like === undefined ? undefined : knownAs(configured.like))
  const api = configured.api ?? provider?.api ?? known?.api
  if (api === undefined) return undefined
  return {
    ...given("baseUrl", standardAddress(name, known?.baseUrl)),
    ...provider,
    ...configured,
    ...given("headers", headers && Record.map(headers, Redacted.value)),
    api
  }
}

/** The options from the environment, with the person's configured providers over those of variables. */
export const environmentWith = (configured: ConfiguredProviders): Effect.Effect<Options, ConfigError.ConfigError> =>
  Effect.map(settings, (found) => {
    const providers: { [name: string]: WireProvider } = { ...fromVariables(found) }
    const hints: { [name: string]: string } = { ...standardHints }
    for (const [name, one] of Object.entries(configured)) {
      const { missing = [] } = one
      const provider = merged(name, one, providers[name])
      if (missing.length > 0) {
        delete providers[name]
        hints[name] = `set ${missing.join(" and ")}, which the configuration names`
      } else if (provider !== undefined && (hasKey(name, provider) || serverOf(name) === undefined)) {
        providers[name] = provider
      }
    }
    const model =
      Option.getOrUndefined(found.model) ?? defaultModel(providers, configured, Option.isSome(found.openaiUrl))
    return {
      providers,
      hints,
      defaultHint: "set DAYBOOK_MODEL to one that the server offers, for example openai-compatible/qwen3",
      policy: policy(found.timeout, found.inactivity, found.retries),
      ...given("default", model)
    }
  })

/** A known server needs a key, unless the person's configuration gives it another address or headers. */
const hasKey = (name: string, { apiKey, baseUrl, headers }: WireProvider): boolean =>
  apiKey !== undefined || headers !== undefined || (baseUrl !== undefined && baseUrl !== serverOf(name)?.baseUrl)

/** The options from the environment. */
export const environment: Effect.Effect<Options, ConfigError.ConfigError> = environmentWith({})

/**
 * The default model: of the first server with a key, else the first model that the configuration lists; none for a
 * server whose models are unknown.
 */
const defaultModel = (
  providers: Providers,
  configured: ConfiguredProviders,
  ownServer: boolean
): Options["default"] | undefined => {
  const usable = servers.find(
    ({ provider }) => providers[provider] !== undefined && !(ownServer && provider === "openai")
  )
  if (usable !== undefined) return { providerID: usable.provider, id: usable.model }
  for (const [providerID, { models = {} }] of Object.entries(configured)) {
    const [id] = Object.keys(models)
    if (id !== undefined && providers[providerID] !== undefined) return { providerID, id }
  }
  return Object.keys(providers).length === 0 ? OfflineModel.ref : undefined
}

const standardHints: { readonly [name: string]: string } = {
  ...Object.fromEntries(servers.map(({ keys, provider }) => [provider, `set ${keys.join(" or ")}`])),
  "openai-compatible": "set DAYBOOK_BASE_URL to the server's address, for example http://localhost:11434/v1"
}

const policy = (
  timeout: Option.Option<Duration.Duration>,
  inactivity: Option.Option<Duration.Duration>,
  retries: Option.Option<number>
): PolicySettings => ({
  ...given("timeout", Option.getOrUndefined(timeout)),
  ...given("inactivity", Option.getOrUndefined(inactivity)),
  ...given("retry", Option.isNone(retries) ? undefined : { times: retries.value })
})

const given = <K extends string, A>(name: K, value: A | undefined): { readonly [P in K]?: A } =>
  // A computed name loses its literal type.
  (value === undefined ? {} : { [name]: value }) as { readonly [P in K]?: A }
