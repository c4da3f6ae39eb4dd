/** Defines the events of a request to the provider: its parts, its calls, its end, and their live pieces. Spec: specs/log.md. */
import { Schema } from "effect"
import { JsonValue } from "../domain/Json.ts"
import { JsonRecord, ModelRef, Price, ProviderMetadata, StoredError, Tokens, ToolContent } from "../domain/Values.ts"
import { assistantMessageID, callID, durable, estimated, live, spent } from "./Definition.ts"
import { optional } from "../support/Optional.ts"

const providerCall = Schema.Struct({ executed: Schema.Boolean, metadata: optional(ProviderMetadata) })
const textID = Schema.NonEmptyString

/** A request to the provider starts; its parts belong to this assistant message. */
export const StepStarted = durable("steps", "session.next.step.started", 1, {
  assistantMessageID,
  agent: Schema.NonEmptyString,
  model: ModelRef,
  snapshot: optional(Schema.String),
  /** The request's estimated tokens and the model's price: an unfinished step is charged with them (EX-B5). */
  inputEstimate: optional(Schema.NonNegativeInt),
  price: optional(Price)
})
/** `cost` is in US dollars. */
export const StepEnded = durable("steps", "session.next.step.ended", 2, {
  assistantMessageID,
  finish: Schema.NonEmptyString,
  cost: Schema.Finite,
  tokens: Tokens,
  estimated,
  snapshot: optional(Schema.String),
  files: optional(Schema.Array(Schema.String))
})
/** A request failed. `cost` and `tokens` are what it used. */
export const StepFailed = durable("steps", "session.next.step.failed", 2, {
  assistantMessageID,
  error: StoredError,
  ...spent
})

export const TextStarted = durable("texts", "session.next.text.started", 1, { assistantMessageID, textID })
export const TextEnded = durable("texts", "session.next.text.ended", 1, {
  assistantMessageID,
  textID,
  text: Schema.String,
  providerMetadata: optional(ProviderMetadata)
})

export const ReasoningStarted = durable("texts", "session.next.reasoning.started", 1, {
  assistantMessageID,
  reasoningID: textID,
  providerMetadata: optional(ProviderMetadata)
})
export const ReasoningEnded = durable("texts", "session.next.reasoning.ended", 1, {
  assistantMessageID,
  reasoningID: textID,
  text: Schema.String,
  providerMetadata: optional(ProviderMetadata)
})

export const ToolInputStarted = durable("calls", "session.next.tool.input.started", 1, {
  assistantMessageID,
  callID,
  name: Schema.NonEmptyString
})
/** `text` is the raw input, as the model wrote it. */
export const ToolInputEnded = durable("calls", "session.next.tool.input.ended", 1, {
  assistantMessageID,
  callID,
  text: Schema.String
})
/** A complete tool call with its decoded input; stored before the tool runs. */
export const ToolCalled = durable("calls", "session.next.tool.called", 1, {
  assistantMessageID,
  callID,
  tool: Schema.NonEmptyString,
  input: JsonRecord,
  provider: providerCall
})
/** At most one per second and call, of a few KiB (TO-P1); finer progress is live only. */
export const ToolProgress = durable("calls", "session.next.tool.progress", 1, {
  assistantMessageID,
  callID,
  structured: JsonRecord,
  content: Schema.Array(ToolContent)
})
/** `result` is the provider's result value, stored only for provider-executed tools. */
export const ToolSuccess = durable("calls", "session.next.tool.success", 1, {
  assistantMessageID,
  callID,
  structured: JsonRecord,
  content: Schema.Array(ToolContent),
  outputPaths: optional(Schema.Array(Schema.String)),
  result: optional(JsonValue),
  provider: providerCall
})
export const ToolFailed = durable("calls", "session.next.tool.failed", 1, {
  assistantMessageID,
  callID,
  error: StoredError,
  result: optional(JsonValue),
  provider: providerCall
})

/** A failed provider attempt. The next starts after `waitMs`. `attempt` counts from 1 to `attempts`. */
export const Retried = durable("steps", "session.next.retried", 1, {
  attempt: Schema.Int,
  attempts: optional(Schema.Int),
  waitMs: optional(Schema.NonNegativeInt),
  ...spent,
  error: Schema.Struct({
    message: Schema.String,
    statusCode: optional(Schema.Int),
    isRetryable: Schema.Boolean,
    responseHeaders: optional(Schema.Record({ key: Schema.String, value: Schema.String })),
    responseBody: optional(Schema.String),
    metadata: optional(Schema.Record({ key: Schema.String, value: Schema.String }))
  })
})

export const TextDelta = live("session.next.text.delta", { assistantMessageID, textID, delta: Schema.String })
export const ReasoningDelta = live("session.next.reasoning.delta", {
  assistantMessageID,
  reasoningID: textID,
  delta: Schema.String
})
/** A piece of a call's raw input. */
export const ToolInputDelta = live("session.next.tool.input.delta", {
  assistantMessageID,
  callID,
  delta: Schema.String
})
