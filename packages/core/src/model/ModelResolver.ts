/**
 * The model port. A resolver turns a model reference into an `@effect/ai` LanguageModel with the facts that the runtime
 * needs about it. `@daybook/models` brings the catalogue of providers; a host with one model of its own uses
 * `layerLanguageModel`. Spec: specs/models.md.
 */
import { LanguageModel } from "@effect/ai"
import { Context, Effect, Layer, Schema, type Duration } from "effect"
import { ModelRef, sameModel, type Price } from "../session/Schemas.ts"

const optional = <S extends Schema.Schema.All>(schema: S) => Schema.optionalWith(schema, { exact: true })

/** No model was asked for and the resolver has no default. */
export class ModelNotSelected extends Schema.TaggedError<ModelNotSelected>("@daybook/core/ModelNotSelected")(
  "ModelNotSelected",
  {
    /** What to do about it, where the resolver knows more than the form of a name. */
    hint: Schema.optionalWith(Schema.String, { exact: true })
  }
) {
  override get message() {
    return `no model is selected: ${this.hint ?? "name one as provider/model"}`
  }
}
/** The provider is not known or not configured; `hint` says what to set. */
export class ProviderNotFound extends Schema.TaggedError<ProviderNotFound>("@daybook/core/ProviderNotFound")(
  "ProviderNotFound",
  { providerID: Schema.String, hint: Schema.String }
) {
  override get message() {
    return `provider "${this.providerID}" is not available: ${this.hint}`
  }
}
/** The provider is there but has no such model. */
export class ModelNotFound extends Schema.TaggedError<ModelNotFound>("@daybook/core/ModelNotFound")("ModelNotFound", {
  providerID: Schema.String,
  modelID: Schema.String,
  known: Schema.Array(Schema.String)
}) {
  override get message() {
    const known = this.known.length === 0 ? "" : `; known: ${this.known.join(", ")}`
    return `provider "${this.providerID}" has no model "${this.modelID}"${known}`
  }
}
/** The catalogue names a wire protocol that this build does not speak. */
export class UnsupportedApi extends Schema.TaggedError<UnsupportedApi>("@daybook/core/UnsupportedApi")(
  "UnsupportedApi",
  { providerID: Schema.String, api: Schema.String }
) {
  override get message() {
    return `provider "${this.providerID}" speaks "${this.api}", which this build does not`
  }
}
/** The model has no such variant. */
export class VariantUnavailable extends Schema.TaggedError<VariantUnavailable>("@daybook/core/VariantUnavailable")(
  "VariantUnavailable",
  { model: ModelRef, known: Schema.Array(Schema.String) }
) {
  override get message() {
    const known = this.known.length === 0 ? "it has none" : `known: ${this.known.join(", ")}`
    return `${this.model.providerID}/${this.model.id} has no variant "${this.model.variant ?? "default"}": ${known}`
  }
}

/** Why there is no model for a reference. */
export const ModelResolutionError = Schema.Union(
  ModelNotSelected,
  ProviderNotFound,
  ModelNotFound,
  UnsupportedApi,
  VariantUnavailable
)
export type ModelResolutionError = typeof ModelResolutionError.Type

/** What the runtime needs to know about a model. */
export interface ModelInfo {
  readonly ref: ModelRef
  /** A name for people. */
  readonly name: string
  /** Tokens that fit the model's window; 0 when unknown. */
  readonly contextTokens: number
  /** Tokens that one answer may have; 0 when unknown. */
  readonly outputTokens: number
  /** Where the provider takes system messages: before the first other one (the default), or anywhere. */
  readonly systemMessages?: "leading" | "anywhere"
  /** Absent when unknown: then a step costs 0, and a budget of cost is refused (EX-B6). */
  readonly price?: Price
}

/**
 * How a provider's faults are met (off where a field is absent): `timeout` bounds the whole request, `inactivity` the
 * silence between two stream parts, `retry` repeats a failed attempt, only before it left durable output (TU-12).
 */
export interface ModelPolicy {
  readonly timeout?: Duration.Duration
  readonly inactivity?: Duration.Duration
  readonly retry?: {
    /** Tries after the first. */
    readonly times: number
    /** The first wait; it doubles with jitter up to `maxDelay`. */
    readonly baseDelay: Duration.Duration
    readonly maxDelay: Duration.Duration
    /** A wait that the provider asks for is honoured up to here; a longer one ends the run. 15 minutes by default. */
    readonly maxRetryAfter?: Duration.Duration
  }
}

/**
 * What a request asks of a model beside its prompt. What a provider does not know is left out by its adapter. `body` is
 * laid over the request's JSON, `headers` over its headers: for settings that have no name here.
 */
export const RequestSettings = Schema.Struct({
  maxOutputTokens: optional(Schema.Int.pipe(Schema.positive())),
  temperature: optional(Schema.Finite),
  topP: optional(Schema.Finite),
  topK: optional(Schema.Int.pipe(Schema.positive())),
  stop: optional(Schema.Array(Schema.NonEmptyString)),
  /** How much effort to spend, in the provider's own words; a model's variant comes first. */
  effort: optional(Schema.NonEmptyString),
  headers: optional(Schema.Record({ key: Schema.NonEmptyString, value: Schema.String })),
  body: optional(Schema.Record({ key: Schema.NonEmptyString, value: Schema.Unknown }))
})
export type RequestSettings = typeof RequestSettings.Type

/** A model that is ready to be asked. */
export interface ResolvedModel {
  readonly info: ModelInfo
  readonly policy: ModelPolicy
  /** Counts tokens of a text with the model's own tokenizer, where there is one that fits. */
  readonly countTokens?: (text: string) => number
  /** Streams with `disableToolCallResolution`: the runtime settles tools itself. */
  readonly model: LanguageModel.Service
}

/** Where sessions get their models from: the one service that a host must provide. */
export class ModelResolver extends Context.Tag("@daybook/core/ModelResolver")<
  ModelResolver,
  {
    /**
     * The model for a session's reference, or the default one when the session names none; its requests are made with
     * the settings.
     */
    readonly resolve: (
      ref: ModelRef | undefined,
      settings?: RequestSettings
    ) => Effect.Effect<ResolvedModel, ModelResolutionError>
  }
>() {}

/** The same models, with prices that the host knows by `provider/model`. */
export const withPrices = (
  resolver: Context.Tag.Service<typeof ModelResolver>,
  prices: Readonly<Record<string, Price>>
): Context.Tag.Service<typeof ModelResolver> =>
  ModelResolver.of({
    resolve: (ref, settings) =>
      Effect.map(resolver.resolve(ref, settings), (resolved) => {
        const { id, providerID } = resolved.info.ref
        const name = `${providerID}/${id}`
        const price = Object.hasOwn(prices, name) ? prices[name] : undefined
        return price === undefined ? resolved : { ...resolved, info: { ...resolved.info, price } }
      })
  })

/**
 * A resolver with exactly one model: the `LanguageModel` in the context. Sessions that name no model get it; sessions
 * that name another are told so.
 *
 * @example
 * ```ts
 * ModelResolver.layerLanguageModel({ ref: { providerID: "acme", id: "m1" }, name: "Acme M1" })
 *   .pipe(Layer.provide(myLanguageModelLayer))
 * ```
 */
export const layerLanguageModel = (
  info: Pick<ModelInfo, "ref"> & Partial<ModelInfo> & { readonly policy?: ModelPolicy }
): Layer.Layer<ModelResolver, never, LanguageModel.LanguageModel> =>
  Layer.effect(
    ModelResolver,
    Effect.map(LanguageModel.LanguageModel, (model) => {
      const { policy, ...facts } = info
      const resolved: ResolvedModel = {
        info: { name: `${info.ref.providerID}/${info.ref.id}`, contextTokens: 0, outputTokens: 0, ...facts },
        policy: policy ?? {},
        model
      }
      return ModelResolver.of({
        resolve: (ref) =>
          ref === undefined || sameModel(ref, info.ref)
            ? Effect.succeed(resolved)
            : ref.providerID !== info.ref.providerID
              ? new ProviderNotFound({
                  providerID: ref.providerID,
                  hint: `this host offers ${info.ref.providerID} only`
                })
              : new ModelNotFound({ providerID: ref.providerID, modelID: ref.id, known: [info.ref.id] })
      })
    })
  )
