/**
 * The union of all errors of a run. A failed run is also in the log: the
 * step's error and the activity's outcome.
 */
import { Schema } from "effect"
import { ImportUnfinished } from "@daybook/log/domain/Imported"
import { SessionBusy } from "@daybook/log/domain/SessionBusy"
import {
  EventRefused,
  EventUnreadable,
  InvalidDurableEvent,
  LogUnavailable,
  OwnerLost,
  SeqConflict
} from "@daybook/log/log/EventLog"
import { MessageUnreadable, SessionNotFound } from "@daybook/log/store/StoreError"
import { AgentNotFound } from "../domain/Agent.ts"
import {
  BudgetExceeded,
  ContextSnapshotUnreadable,
  InitializationBlocked,
  ModelResolutionError,
  PriceUnknown,
  ProviderFailed,
  RunInterrupted,
  StructuredOutputFailed,
  TurnLimitExceeded
} from "../domain/RunFailure.ts"
import { ToolStorageError } from "../domain/ToolError.ts"

export { BudgetExceeded, PriceUnknown, ProviderFailed, TurnLimitExceeded } from "../domain/RunFailure.ts"

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
