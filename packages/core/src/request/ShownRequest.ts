/** Defines a request to a model as it is shown to people: its frame and its messages. Spec: RQ-30, RQ-34. */
import { Schema } from "effect"
import { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { AnyNumber } from "@daybook/log/domain/Json"
import { JsonRecord, ModelRef } from "@daybook/log/domain/Values"
import { ShownMessage } from "./ShownMessage.ts"
import { Estimate } from "./TokenEstimate.ts"

/** A tool in request form. */
export const FramedTool = Schema.Struct({
  name: Schema.String,
  description: Schema.optionalWith(Schema.String, { exact: true }),
  parameters: JsonRecord
})
export type FramedTool = typeof FramedTool.Type

/** The part of a request that is not history (RQ-30). */
export const RequestFrame = Schema.Struct({
  /** The agent's prompt or the base instructions, then the baseline; empty texts are omitted. */
  system: Schema.Array(Schema.String),
  /** The baseline contains the System messages up to this sequence number. */
  baselineSeq: Schema.Int,
  tools: Schema.Array(FramedTool),
  /** Request options besides the prompt: tool choice, temperature, headers by name only, and the context window. */
  settings: JsonRecord
})
export type RequestFrame = typeof RequestFrame.Type

/** A provider request, recorded or previewed. */
export const ShownRequest = Schema.Struct({
  sessionID: SessionID,
  agent: Schema.String,
  model: ModelRef,
  frame: RequestFrame,
  /** The conversation, after the system texts. */
  messages: Schema.Array(ShownMessage),
  /** Estimated tokens by part. */
  estimate: Estimate,
  /** The id of the answer and the sequence number of its step; absent in a preview. */
  step: Schema.optionalWith(Schema.Struct({ seq: Schema.Int, messageID: MessageID }), { exact: true })
})
export type ShownRequest = typeof ShownRequest.Type

/** No turn had begun by then, or its request predates framed events. */
export class NothingShown extends Schema.TaggedError<NothingShown>("@daybook/core/NothingShown")("NothingShown", {
  sessionID: SessionID,
  /** As the caller gave it. */
  at: AnyNumber
}) {
  override get message() {
    return `${this.sessionID} has no recorded request at or before event ${this.at}; use a later event`
  }
}
