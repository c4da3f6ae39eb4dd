/** Defines how a tool's call fails. Spec: TO-1..TO-6. */
import { Schema } from "effect"
import { ErrorCause } from "@daybook/log/domain/Json"

/** The call failed. The model reads `message` and the run continues (TO-1..TO-4). */
export class ToolFailure extends Schema.TaggedError<ToolFailure>("@daybook/core/ToolFailure")("ToolFailure", {
  /** The kind, an open set: `tool.execution`, `tool.input`, `tool.output`, `permission.denied` and so on. */
  type: Schema.NonEmptyString,
  message: Schema.String
}) {}

/** A person declined the call: the whole drain stops (TO-5). */
export class ToolDeclined extends Schema.TaggedError<ToolDeclined>("@daybook/core/ToolDeclined")("ToolDeclined", {
  tool: Schema.String
}) {
  override get message() {
    return `a call of ${this.tool} was declined`
  }
}

/** The store of complete tool outputs failed: the drain fails (TO-6). */
export class ToolStorageError extends Schema.TaggedError<ToolStorageError>("@daybook/core/ToolStorageError")(
  "ToolStorageError",
  { operation: Schema.String, cause: ErrorCause }
) {
  override get message() {
    return `a tool's complete output could not be kept: ${this.operation} failed`
  }
}
