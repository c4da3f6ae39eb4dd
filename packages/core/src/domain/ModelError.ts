/** Defines why a reference to a model does not resolve. */
import { Schema } from "effect"
import { ModelRef } from "@daybook/log/domain/Values"

/** No model is selected and the resolver has no default. */
export class ModelNotSelected extends Schema.TaggedError<ModelNotSelected>("@daybook/core/ModelNotSelected")(
  "ModelNotSelected",
  {
    /** How to select one, if the resolver knows more than the general form. */
    hint: Schema.optionalWith(Schema.String, { exact: true })
  }
) {
  override get message() {
    return `no model is selected: ${this.hint ?? "name one as provider/model"}`
  }
}

/** The provider is unknown or not configured; `hint` says what to set. */
export class ProviderNotFound extends Schema.TaggedError<ProviderNotFound>("@daybook/core/ProviderNotFound")(
  "ProviderNotFound",
  { providerID: Schema.String, hint: Schema.String }
) {
  override get message() {
    return `provider "${this.providerID}" is not available: ${this.hint}`
  }
}

/** The provider has no such model. */
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

/** The catalogue names a wire protocol that this build does not support. */
export class UnsupportedApi extends Schema.TaggedError<UnsupportedApi>("@daybook/core/UnsupportedApi")(
  "UnsupportedApi",
  { providerID: Schema.String, api: Schema.String }
) {
  override get message() {
    return `provider "${this.providerID}" uses the protocol "${this.api}", which this build does not support`
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

/** Why a reference does not resolve. */
export const ModelResolutionError = Schema.Union(
  ModelNotSelected,
  ProviderNotFound,
  ModelNotFound,
  UnsupportedApi,
  VariantUnavailable
)
export type ModelResolutionError = typeof ModelResolutionError.Type
