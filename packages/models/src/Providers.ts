/** Defines what a host says about its providers. Spec: specs/models.md. */
import type * as LanguageModel from "@effect/ai/LanguageModel"
import type { Effect, Redacted } from "effect"
import type { ModelInfo } from "@daybook/core/model/ModelResolver"
import type * as Policy from "./Policy.ts"
import { type Api, isApi, type Profile } from "./Profiles.ts"

/** A reference to a model. */
export type Ref = ModelInfo["ref"]

export interface ModelSettings extends Partial<Omit<ModelInfo, "ref">> {
  /** The words allowed after a colon, sent as the effort. */
  readonly variants?: ReadonlyArray<string>
  /** False: the model does not think, so that no effort is sent. */
  readonly thinks?: boolean
  readonly policy?: Policy.PolicySettings
  /** The model's tokenizer. Without it the runtime estimates, except for OpenAI's models. */
  readonly countTokens?: (text: string) => number
}

/** What every kind of provider has. */
export interface ProviderBase {
  readonly models?: Readonly<Record<string, ModelSettings>>
  readonly policy?: Policy.PolicySettings
  /** Replaces the HTTP client, for a proxy or a recorder. */
  readonly fetch?: typeof globalThis.fetch
}

/** A model server. */
export interface WireProvider extends ProviderBase {
  /** Anthropic's Messages, OpenAI's Responses, chat completions, or Gemini's own protocol. */
  readonly api: Api
  /** The address up to the protocol's path; the known server's by default. */
  readonly baseUrl?: string
  readonly apiKey?: Redacted.Redacted
  readonly headers?: Readonly<Record<string, string>>
  /** The name of a known server whose rules this one follows. By default they are found by name and address. */
  readonly like?: string
  /** Rules of this server that differ. */
  readonly profile?: Partial<Profile>
}

/** A provider whose models the host creates, as language models of `@effect/ai`. */
export interface HostProvider extends ProviderBase {
  readonly api: "language-model"
  readonly model: (id: string) => Effect.Effect<LanguageModel.Service>
}

export type Provider = WireProvider | HostProvider

/** Whether a provider is a server. Options may come from a file, unchecked by the compiler. */
export const isServer = (provider: Provider): provider is WireProvider => isApi(provider.api)

/** What a person's configuration says about a provider; for a known one, only what differs. */
export interface ConfiguredProvider extends Partial<Omit<WireProvider, "fetch" | "headers" | "policy">> {
  readonly headers?: Readonly<Record<string, Redacted.Redacted>>
  /** Variables that the configuration names and that are not set: the provider cannot be used. */
  readonly missing?: ReadonlyArray<string>
}

/** The providers and defaults of a resolver. */
export interface Options {
  /** By provider name, the part before the slash of a model reference. */
  readonly providers: Readonly<Record<string, Provider>>
  /** The model of sessions without one; if absent, resolving fails with a hint. */
  readonly default?: Ref
  /** Applies to every provider over HTTP. */
  readonly policy?: Policy.PolicySettings
  /** Hints for missing providers, by provider name. */
  readonly hints?: Readonly<Record<string, string>>
  /** The hint when neither the session nor `default` names a model. */
  readonly defaultHint?: string
}
