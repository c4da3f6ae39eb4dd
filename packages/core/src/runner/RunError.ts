/**
 * The union of all errors of a run. Each error is defined where it is raised. A failed run is also in the log: the
 * step's error and the activity's outcome.
 */
import { Schema } from "effect"
import { SessionBusy } from "@daybook/log/coordination/SessionOwner"
import { ImportUnfinished } from "@daybook/log/domain/Imported"
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
import { BudgetExceeded, PriceUnknown } from "./BudgetCheck.ts"
import { ProviderFailed } from "./Turn.ts"
import { TurnLimitExceeded } from "./TurnLoop.ts"

export { BudgetExceeded, PriceUnknown } from "./BudgetCheck.ts"
export { ProviderFailed } from "./Turn.ts"
export { TurnLimitExceeded } from "./TurnLoop.ts"

/** Every error of a run. */
export const RunError = Schema.Union(
  RunInterrupted,
  SessionNotFound,
  ImportUnfinished,
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
