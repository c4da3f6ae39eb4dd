/** Reads the providers and the default model from environment variables. Spec: MD-36..MD-39, MD-64, MD-70. */
import { Config, ConfigError, type Duration, Effect, Either, Option, Redacted } from "effect"
import * as Catalog from "./Catalog.ts"
import * as OfflineModel from "./OfflineModel.ts"
import type { PolicySettings } from "./Policy.ts"
import type { Options, Provider } from "./Providers.ts"

/** An empty variable counts as absent: shells make it easy to set one by accident. */
const optional = <A>(config: Config.Config<A>, isEmpty: (value: A) => boolean): Config.Config<Option.Option<A>> =>
  Config.option(config).pipe(Config.map(Option.filter((value) => !isEmpty(value))))

const key = (name: string) => optional(Config.redacted(name), (value) => Redacted.value(value).trim() === "")
const text = (name: string) => optional(Config.string(name), (value) => value.trim() === "")

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

const settings = Config.all({
  anthropicKey: key("ANTHROPIC_API_KEY"),
  anthropicUrl: url("ANTHROPIC_BASE_URL"),
  openaiKey: key("OPENAI_API_KEY"),
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

export const environment: Effect.Effect<Options, ConfigError.ConfigError> = Effect.map(settings, (found) => {
  const providers: Record<string, Provider> = {}
  if (Option.isSome(found.anthropicKey)) {
    providers["anthropic"] = {
      api: "anthropic",
      apiKey: found.anthropicKey.value,
      ...given("baseUrl", found.anthropicUrl)
    }
  }
  if (Option.isSome(found.openaiKey)) {
    providers["openai"] = { api: "openai", apiKey: found.openaiKey.value, ...given("baseUrl", found.openaiUrl) }
  }
  const compatibleUrl = Option.orElse(found.daybookUrl, () => found.openaiUrl)
  if (Option.isSome(compatibleUrl)) {
    // OpenAI's key is sent only to OpenAI's address.
    const apiKey = Option.orElse(found.daybookKey, () =>
      Option.isSome(found.daybookUrl) ? Option.none() : found.openaiKey
    )
    providers["openai-compatible"] = {
      api: "openai-compatible",
      baseUrl: compatibleUrl.value,
      ...given("apiKey", apiKey)
    }
  }
  const model = Option.getOrUndefined(found.model) ?? defaultModel(providers, Option.isSome(found.openaiUrl))
  return {
    providers,
    hints,
    defaultHint: "set DAYBOOK_MODEL to one that the server offers, for example openai-compatible/qwen3",
    policy: policy(found.timeout, found.inactivity, found.retries),
    ...(model === undefined ? {} : { default: model })
  }
})

/** The default model; none for the user's own server, whose models are unknown. */
const defaultModel = (
  providers: Readonly<Record<string, Provider>>,
  ownServer: boolean
): Options["default"] | undefined => {
  if (providers["anthropic"] !== undefined) return { providerID: "anthropic", id: Catalog.defaults.anthropic }
  if (providers["openai"] !== undefined && !ownServer) return { providerID: "openai", id: Catalog.defaults.openai }
  return Object.keys(providers).length === 0 ? OfflineModel.ref : undefined
}

const hints: Readonly<Record<string, string>> = {
  anthropic: "set ANTHROPIC_API_KEY",
  openai: "set OPENAI_API_KEY",
  "openai-compatible": "set DAYBOOK_BASE_URL to the server's address, for example http://localhost:11434/v1"
}

const policy = (
  timeout: Option.Option<Duration.Duration>,
  inactivity: Option.Option<Duration.Duration>,
  retries: Option.Option<number>
): PolicySettings => ({
  ...given("timeout", timeout),
  ...given("inactivity", inactivity),
  ...given(
    "retry",
    Option.map(retries, (times) => ({ times }))
  )
})

const given = <K extends string, A>(name: K, value: Option.Option<A>): { readonly [P in K]?: A } =>
  // A computed name loses its literal type.
  (Option.isNone(value) ? {} : { [name]: value.value }) as { readonly [P in K]?: A }
