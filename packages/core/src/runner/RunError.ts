/** Defines the errors of a run. A failed run is also in the log: the step's error and the activity's outcome. */
import { Schema } from "effect"
import { SessionBusy } from "@daybook/log/coordination/SessionOwner"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { ModelRef } from "@daybook/log/domain/Values"
import {
  EventRefused,
  EventUnreadable,
  InvalidDurableEvent,
  LogUnavailable,
  OwnerLost,
  SeqConflict
} from "@daybook/log/log/EventLog"
import { MessageUnreadable, SessionNotFound } from "@daybook/log/store/StoreError"
import { ContextSnapshotUnreadable, InitializationBlocked } from "../context/ContextEpoch.ts"
import { RunInterrupted } from "../coordination/RunCoordinator.ts"
import { AgentNotFound } from "../domain/Agent.ts"
import { ToolStorageError } from "../domain/ToolError.ts"
import { ModelResolutionError } from "../model/ModelResolver.ts"
import { StructuredOutputFailed } from "../request/StructuredOutput.ts"

/** The activity used all its provider turns, and work remains (TU-4). */
export class TurnLimitExceeded extends Schema.TaggedError<TurnLimitExceeded>("@daybook/core/TurnLimitExceeded")(
  "TurnLimitExceeded",
  { sessionID: SessionID, limit: Schema.Int }
) {
  override get message() {
    return `${this.sessionID} used its ${this.limit} turns and is not done; resume it to give it as many again`
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
    /** Part of the answer is already on disk. */
    partial: Schema.Boolean
  }
) {
  override get message() {
    return `${this.providerID}: ${this.details}`
  }
}

/** The session and its children used up their budget; no request was sent to a provider (EX-B1). */
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

/** Every error of a run. */
export const RunError = Schema.Union(
  RunInterrupted,
  SessionNotFound,
  MessageUnreadable,
  TurnLimitExceeded,
  InitializationBlocked,
  ContextSnapshotUnreadable,
  ProviderFailed,
  BudgetExceeded,
  PriceUnknown,
  StructuredOutputFailed,
  SessionBusy,
  AgentNotFound,
  ModelResolutionError,
  ToolStorageError,
  SeqConflict,
  OwnerLost,
  InvalidDurableEvent,
  EventRefused,
  EventUnreadable,
  LogUnavailable
)
export type RunError = typeof RunError.Type
