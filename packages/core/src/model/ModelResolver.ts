/**
 * The model port: resolves a model reference to an `@effect/ai` LanguageModel and the facts that the runtime needs.
 * `@daybook/models` provides the catalogue of providers; a host with a single model uses `layerLanguageModel`. Spec:
 * specs/models.md.
 */
import * as LanguageModel from "@effect/ai/LanguageModel"
import { Context, type Duration, Effect, Layer } from "effect"
import { type ModelRef, type Price, sameModel } from "@daybook/log/domain/Values"
import { RequestSettings } from "../domain/Agent.ts"
import { ModelNotFound, ModelResolutionError, ProviderNotFound } from "../domain/RunFailure.ts"

export {
  ModelNotFound,
  ModelNotSelected,
  ModelResolutionError,
  ProviderNotFound,
  UnsupportedApi,
  VariantUnavailable
} from "../domain/RunFailure.ts"

/** A price. Requests of more input tokens than a tier's `above` cost that tier's price as a whole. */
export interface Pricing extends Price {
  /** In ascending order of `above`. */
  readonly tiers?: ReadonlyArray<Price & { readonly above: number }>
}

/** The facts about a model that the runtime needs. */
export interface ModelInfo {
  readonly ref: ModelRef
  /** A name for people. */
  readonly name: string
  /** The model's context window in tokens; 0 when unknown. */
  readonly contextTokens: number
  /** Maximum tokens of one answer; 0 when unknown. */
  readonly outputTokens: number
  /** Where the provider accepts system messages: before all others (default), or anywhere. */
  readonly systemMessages?: "leading" | "anywhere"
  /** The media that the model takes. Absent when unknown: then all are tried. */
  readonly media?: ReadonlyArray<"image" | "pdf">
  /** Maximum pictures and documents in one request. Default: 100. */
  readonly pictures?: number
  /** False: it is not a language model, and cannot name sessions. */
  readonly canName?: false
  /** Absent when unknown: then a step costs 0, and a cost budget is rejected (EX-B6). */
  readonly price?: Pricing
}

/**
 * How provider faults are handled; an absent field disables its handling. `timeout` limits the whole request,
 * `inactivity` the silence between two stream parts. `retry` repeats a failed attempt, only before durable output
 * (TU-12).
 */
export interface ModelPolicy {
  readonly timeout?: Duration.Duration
  readonly inactivity?: Duration.Duration
  readonly retry?: {
    /** Maximum attempts after the first. */
    readonly times: number
    /** The same for a server that was not reached, or whose answer broke off. Default: `times`. */
    readonly unansweredTimes?: number
    /** The first delay; it doubles with jitter up to `maxDelay`. */
    readonly baseDelay: Duration.Duration
    readonly maxDelay: Duration.Duration
    /** Longest provider delay that is honoured; a longer one ends the run. Default: 15 minutes. */
    readonly maxRetryAfter?: Duration.Duration
  }
}

/** A model that is ready for requests. */
export interface ResolvedModel {
  readonly info: ModelInfo
  readonly policy: ModelPolicy
  /** Counts tokens with the model's tokenizer, if a fitting one exists. */
  readonly countTokens?: (text: string) => number
  /** Streams with `disableToolCallResolution`: the runtime settles tools itself. */
  readonly model: LanguageModel.Service
}

/** What `ModelResolver` offers. */
export interface Service {
  /** Returns the model for a session's reference, or the default model without one. Its requests use the settings. */
  readonly resolve: (
    ref: ModelRef | undefined,
    settings?: RequestSettings
  ) => Effect.Effect<ResolvedModel, ModelResolutionError>
}

/** Resolves the models of sessions: the one service that a host must provide. */
export class ModelResolver extends Context.Tag("@daybook/core/ModelResolver")<ModelResolver, Service>() {}

/** The same models with the host's prices, by `provider/model`. */
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
 * A resolver with exactly one model: the `LanguageModel` in the context. Sessions without a model get it; a reference
 * to another model fails.
 *
 * @example
 * ```ts
 * import { ModelResolver } from "@daybook/core"
 * import type * as LanguageModel from "@effect/ai/LanguageModel"
 * import { Layer } from "effect"
 *
 * declare const acme: Layer.Layer<LanguageModel.LanguageModel>
 *
 * export const models = ModelResolver.layerLanguageModel({ ref: { providerID: "acme", id: "m1" }, name: "Acme M1" }).pipe(
 *   Layer.provide(acme)
 * )
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
