/** Defines how a tool's call fails. Spec: TO-1..TO-6. */
import { Schema } from "effect"
import { ErrorCause } from "@daybook/log/domain/Json"
import { ErrorClass } from "@daybook/log/support/ErrorClass"

/** The call failed. The model reads `message` and the run continues (TO-1..TO-4). */
export class ToolFailure extends ErrorClass<ToolFailure>("core")("ToolFailure")({
  /** The kind, an open set: `tool.execution`, `tool.input`, `tool.output`, `permission.denied` and so on. */
  type: Schema.NonEmptyString,
  message: Schema.String
}) {}

/** A person declined the call: the whole drain stops (TO-5). */
export class ToolDeclined extends ErrorClass<ToolDeclined>("core")("ToolDeclined")(
  { tool: Schema.String },
  ({ tool }) => `a call of ${tool} was declined`
) {}

/** The store of complete tool outputs failed: the drain fails (TO-6). */
export class ToolStorageError extends ErrorClass<ToolStorageError>("core")("ToolStorageError")(
  { operation: Schema.String, cause: ErrorCause },
  ({ operation }) => `a tool's complete output could not be kept: ${operation} failed`
) {}
