/**
 * Reads the providers and the default model from environment variables and from the person's configuration.
 * Spec: MD-36..MD-39, MD-64, MD-70, MD-724, MD-725.
 */
import { Config, ConfigError, Effect, Either, Option, Record, Redacted, Struct } from "effect"
import { present } from "@daybook/log/support/Optional"
import * as Catalog from "./Catalog.ts"
import * as OfflineModel from "./OfflineModel.ts"
import type { ConfiguredProvider, Options, Ref, WireProvider } from "./Providers.ts"
import { knownAs, serverOf, servers } from "./Servers.ts"

/** A trimmed variable. An empty one counts as absent: shells make it easy to set one by accident. */
const variable = <A>(name: string, read: (text: string) => Either.Either<A, string>): Config.Config<A | undefined> =>
  Config.option(Config.string(name)).pipe(
    Config.mapOrFail((value) => {
      const text = Option.getOrElse(value, () => "").trim()
      if (text === "") return Either.right(undefined)
      return Either.mapLeft(read(text), (why) => ConfigError.InvalidData([name], why))
    })
  )

const text = (name: string, form: (text: string) => boolean, why: string): Config.Config<string | undefined> =>
  variable(name, (value) => (form(value) ? Either.right(value) : Either.left(why)))

/** A key is sent in a header. Its error does not show it. */
const key = (name: string): Config.Config<Redacted.Redacted | undefined> =>
  text(
    name,
    (value) => /^[\x21-\x7e]+$/.test(value),
    "it is not a key: it has a space or a character beyond ASCII"
  ).pipe(Config.map((value) => (value === undefined ? undefined : Redacted.make(value))))

const url = (name: string): Config.Config<string | undefined> =>
  text(name, (value) => /^https?:\/\//.test(value) && URL.canParse(value), "it is not an http or https address")

const modelName = variable("DAYBOOK_MODEL", (value) =>
  Either.mapLeft(Catalog.parseModel(value), ({ message }) => message)
)

const maybe = <A>(config: Config.Config<A>): Config.Config<A | undefined> =>
  Config.map(Config.option(config), Option.getOrUndefined)

const settings = Config.all({
  keys: Config.all(
    servers.map((server) =>
      // The first key of a server that is set.
      Config.map(
        Config.all(server.keys.map(key)),
        (found) => [server, found.find((each) => each !== undefined)] as const
      )
    )
  ),
  anthropicUrl: url("ANTHROPIC_BASE_URL"),
  openaiUrl: url("OPENAI_BASE_URL"),
  daybookUrl: url("DAYBOOK_BASE_URL"),
  daybookKey: key("DAYBOOK_API_KEY"),
  model: modelName,
  retries: maybe(
    Config.integer("DAYBOOK_MODEL_RETRIES").pipe(
      Config.validate({ message: "it is not a number from 0 to 10", validation: (times) => times >= 0 && times <= 10 })
    )
  ),
  timeout: maybe(Config.duration("DAYBOOK_MODEL_TIMEOUT")),
  inactivity: maybe(Config.duration("DAYBOOK_MODEL_INACTIVITY"))
})

type Found = Config.Config.Success<typeof settings>
type Providers = { readonly [name: string]: WireProvider }
type ConfiguredProviders = { readonly [name: string]: ConfiguredProvider }

const fromVariables = ({ anthropicUrl, daybookKey, daybookUrl, keys, openaiUrl }: Found): Providers => {
  const addresses: { readonly [name: string]: string | undefined } = { anthropic: anthropicUrl, openai: openaiUrl }
  const providers: { [name: string]: WireProvider } = {}
  for (const [{ api, baseUrl, provider }, apiKey] of keys) {
    if (apiKey === undefined) continue
    providers[provider] = present({ api, apiKey, baseUrl: addresses[provider] ?? standardAddress(provider, baseUrl) })
  }
  const baseUrl = daybookUrl ?? openaiUrl
  if (baseUrl !== undefined) {
    // OpenAI's key is sent only to OpenAI's address.
    const apiKey = daybookKey ?? (daybookUrl === undefined ? providers["openai"]?.apiKey : undefined)
    providers["openai-compatible"] = present({ api: "openai-compatible" as const, baseUrl, apiKey })
  }
  return providers
}

/** The two that have families keep their protocol's default address. */
const standardAddress = (provider: string, baseUrl: string | undefined): string | undefined =>
  Catalog.hasFamilies(provider) ? undefined : baseUrl

/** A configured provider over what the variables say about it; undefined if it lacks an API. */
const merged = (
  name: string,
  { headers, ...written }: ConfiguredProvider,
  provider: WireProvider | undefined
): WireProvider | undefined => {
  const configured = Struct.omit(written, "missing")
  const known = knownAs(name) ?? knownAs(configured.like ?? "")
  const api = configured.api ?? provider?.api ?? known?.api
  if (api === undefined) return undefined
  return {
    ...present({ baseUrl: standardAddress(name, known?.baseUrl) }),
    ...provider,
    ...configured,
    ...present({ headers: headers && Record.map(headers, Redacted.value) }),
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
    const { inactivity, model, openaiUrl, retries, timeout } = found
    return present({
      providers,
      hints,
      defaultHint: "set DAYBOOK_MODEL to one that the server offers, for example openai-compatible/qwen3",
      policy: present({ timeout, inactivity, retry: retries === undefined ? undefined : { times: retries } }),
      default: model ?? defaultModel(providers, configured, openaiUrl !== undefined)
    })
  })

/** A known server needs a key, unless the person's configuration gives it another address or headers. */
const hasKey = (name: string, { apiKey, baseUrl, headers }: WireProvider): boolean =>
  apiKey !== undefined || headers !== undefined || (baseUrl !== undefined && baseUrl !== serverOf(name)?.baseUrl)

export const environment: Effect.Effect<Options, ConfigError.ConfigError> = environmentWith({})

/**
 * The default model: of the first server with a key, else the first model that the configuration lists; none for a
 * server whose models are unknown.
 */
const defaultModel = (providers: Providers, configured: ConfiguredProviders, ownServer: boolean): Ref | undefined => {
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
