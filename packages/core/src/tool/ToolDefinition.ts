/**
 * What a tool is to Daybook: an `@effect/ai` tool (name, description, Schema parameters and result) with its handler
 * and the form its result takes for the model. Registration and settlement are in `ToolRegistry.ts`.
 */
import type { Tool } from "@effect/ai"
import { Effect, Schema } from "effect"
import type { Agent } from "../agent/Agents.ts"
import type { MessageID, SessionID } from "../Identifiers.ts"
import type { JsonRecord, Location, ToolContent } from "../session/Schemas.ts"

/** The tool could not do what was asked. The model reads `message` and goes on (TO-1..TO-4). */
export class ToolFailure extends Schema.TaggedError<ToolFailure>("@daybook/core/ToolFailure")("ToolFailure", {
  /** An open kind: `tool.execution`, `tool.input`, `tool.output`, `tool.unknown`, `permission.denied` and so on. */
  type: Schema.NonEmptyString,
  message: Schema.String
}) {}

/** A person declined the call: the whole drain stops (TO-5). */
export class ToolDeclined extends Schema.TaggedError<ToolDeclined>("@daybook/core/ToolDeclined")("ToolDeclined", {
  tool: Schema.String
}) {}

/** The store of whole tool outputs failed: the drain fails (TO-6). */
export class ToolStorageError extends Schema.TaggedError<ToolStorageError>("@daybook/core/ToolStorageError")(
  "ToolStorageError",
  { operation: Schema.String, cause: Schema.Defect }
) {
  override get message() {
    return `the whole of a tool's output could not be kept: ${this.operation} failed`
  }
}

/** The call that a handler serves. */
export interface ToolCall {
  readonly sessionID: SessionID
  /** The assistant message that made the call. */
  readonly messageID: MessageID
  readonly callID: string
  readonly agent: Agent
  readonly location: Location
  /** Reports progress; the runtime bounds how often and how much of it is stored. */
  readonly progress: (update: ToolOutput) => Effect.Effect<void>
}

/**
 * A result as it is stored and shown. `content` is what the model reads; `structured` holds facts for programs, and
 * never a second copy of the content. With no content, the model reads `structured` as JSON.
 */
export interface ToolOutput {
  readonly structured: JsonRecord
  readonly content: ReadonlyArray<ToolContent>
  /** Files that hold the whole of what was cut. */
  readonly outputPaths?: ReadonlyArray<string>
}

/** A registered tool, its parameter and result types behind it. */
export interface ToolDefinition {
  readonly tool: Tool.Any
  /** The permission that decides whether the tool is offered at all; the tool's own name by default. */
  readonly permission: string
  /** Decodes the input, runs the handler, encodes and renders the result. Every fault of those is a `ToolFailure`. */
  readonly execute: (input: unknown, call: ToolCall) => Effect.Effect<ToolOutput, ToolFailure | ToolDeclined>
}
