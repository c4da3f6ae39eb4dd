/** The errors of runs that are the runtime's own, as schemas that servers and clients read. Spec: EX-560. */
import { Cause, Option, Schema } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { ModelRef } from "@daybook/log/domain/Values"

// Says in a line what a defect was: often it is of the host's own model, tool or context.

/** Characters that are kept of a message. */
const longest = 500

/** The name and the message of a cause's first defect; `instead` if it has none. */
export const described = (cause: Cause.Cause<unknown>, instead: string): string =>
  Option.match(Cause.dieOption(cause), {
    onNone: () => instead,
    onSome: (defect) =>
      (defect instanceof Error ? `${defect.name}: ${defect.message}` : String(defect)).slice(0, longest)
  })

// Defines why a branch that was left has no summary.

/** The model gave no summary of the branch. History continues where it did. */
export class BranchNotSummarized extends Schema.TaggedError<BranchNotSummarized>("@daybook/core/BranchNotSummarized")(
  "BranchNotSummarized",
  { sessionID: SessionID, details: Schema.String }
) {
  override get message() {
    return `the branch of ${this.sessionID} was not summarized, and nothing was moved: ${this.details}; try again, or without a summary`
  }
}

// Defines why a reference to a model does not resolve.

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

/**
 * The execution that a `run` waited for was interrupted, or the coordinator was closed. It is an error instead of an
 * interruption, so that the waiter can distinguish "the work was stopped" from "I was stopped".
 */
export class RunInterrupted extends Schema.TaggedError<RunInterrupted>("@daybook/core/RunInterrupted")(
  "RunInterrupted",
  { key: Schema.String }
) {
  override get message() {
    return `the run of ${this.key} was interrupted before it ended: what it recorded is kept, run it again to continue`
  }
}

/** The first context could not be observed; the prompt is kept and can be retried (TU-6). */
export class InitializationBlocked extends Schema.TaggedError<InitializationBlocked>(
  "@daybook/core/InitializationBlocked"
)("InitializationBlocked", { keys: Schema.Array(Schema.String) }) {
  override get message() {
    return `the system context is not available yet: ${this.keys.join(", ")}; the prompt is kept, try again`
  }
}

/** The session's stored context does not decode (EP-9). */
export class ContextSnapshotUnreadable extends Schema.TaggedError<ContextSnapshotUnreadable>(
  "@daybook/core/ContextSnapshotUnreadable"
)("ContextSnapshotUnreadable", { sessionID: SessionID, details: Schema.String }) {
  override get message() {
    return `the stored context of ${this.sessionID} cannot be read: ${this.details}`
  }
}

/** The provider failed the turn. The log has the provider's message as the step's error. */
export class ProviderFailed extends Schema.TaggedError<ProviderFailed>("@daybook/core/ProviderFailed")(
  "ProviderFailed",
  {
    sessionID: SessionID,
    providerID: Schema.String,
    details: Schema.String,
    retryable: Schema.Boolean,
    overflow: Schema.Boolean,
    /** Which content of the request the provider rejected, if that is why it failed. */
    rejected: Schema.optionalWith(
      Schema.Struct({
        kind: Schema.Literal("image", "pdf", "media", "text", "thinking", "unknown"),
        extent: Schema.Literal("all", "some", "many")
      }),
      { exact: true }
    ),
    /** Part of the answer is already on disk. */
    partial: Schema.Boolean
  }
) {
  override get message() {
    return `${this.providerID}: ${this.details}`
  }
}

/** The activity used all its provider turns, and work remains (TU-4). */
export class TurnLimitExceeded extends Schema.TaggedError<TurnLimitExceeded>("@daybook/core/TurnLimitExceeded")(
  "TurnLimitExceeded",
  { sessionID: SessionID, limit: Schema.Int }
) {
  override get message() {
    return `${this.sessionID} used its ${this.limit} turns and is not done; resume it to give it as many again`
  }
}

/** The session and its children used up their budget; no request was sent to a provider (EX-B8). */
export class BudgetExceeded extends Schema.TaggedError<BudgetExceeded>("@daybook/core/BudgetExceeded")(
  "BudgetExceeded",
  {
    /** The session that has the budget: this one or an ancestor. */
    sessionID: SessionID,
    limit: Schema.Literal("cost", "tokens"),
    spent: Schema.Finite,
    allowed: Schema.Finite
  }
) {
  override get message() {
    const amount = (value: number) => (this.limit === "cost" ? `$${value.toFixed(4)}` : `${value} tokens`)
    return (
      `${this.sessionID} and its children spent ${amount(this.spent)} of their budget of ${amount(this.allowed)}; ` +
      "raise the budget to continue"
    )
  }
}

/** A cost budget applies and the model's price is unknown; no request was sent to a provider (EX-B6). */
export class PriceUnknown extends Schema.TaggedError<PriceUnknown>("@daybook/core/PriceUnknown")("PriceUnknown", {
  /** The session that has the budget: this one or an ancestor. */
  sessionID: SessionID,
  model: ModelRef
}) {
  override get message() {
    const model = `${this.model.providerID}/${this.model.id}`
    return (
      `${this.sessionID} has a budget in dollars, and the price of ${model} is not known: give it a budget in tokens ` +
      `instead, or name the price under "prices" in the configuration (0 for a model that costs nothing)`
    )
  }
}

/** The model did not return a valid structured answer, even after the errors were returned to it. */
export class StructuredOutputFailed extends Schema.TaggedError<StructuredOutputFailed>(
  "@daybook/core/StructuredOutputFailed"
)("StructuredOutputFailed", { sessionID: SessionID, details: Schema.String }) {
  override get message() {
    return `the model did not give a valid structured answer: ${this.details}`
  }
}
