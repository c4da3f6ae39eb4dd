/** Defines a request to a model as it is shown to people: its frame and its messages. Spec: RQ-30, RQ-34. */
import { Schema } from "effect"
import { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { AnyNumber, JsonValue } from "@daybook/log/domain/Json"
import { JsonRecord, ModelRef } from "@daybook/log/domain/Values"
import { Estimate } from "./TokenEstimate.ts"

// Defines the messages of a shown request as plain JSON: bytes are `{ bytes }` in base64, URLs are `{ url }`.

const bytes = Schema.transform(Schema.Struct({ bytes: Schema.Uint8ArrayFromBase64 }), Schema.Uint8ArrayFromSelf, {
  strict: true,
  decode: (encoded) => encoded.bytes,
  encode: (value) => ({ bytes: value })
})

const url = Schema.transform(Schema.Struct({ url: Schema.URL }), Schema.URLFromSelf, {
  strict: true,
  decode: (encoded) => encoded.url,
  encode: (value) => ({ url: value })
})

/** Options by provider. JSON drops an undefined value, which has no meaning. */
const options = Schema.optional(
  Schema.Record({
    key: Schema.String,
    value: Schema.UndefinedOr(JsonRecord).annotations({
      arbitrary: () => (fc) => fc.dictionary(fc.string({ minLength: 1, maxLength: 5 }), fc.integer())
    })
  })
)

const text = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String, options })
const reasoning = Schema.Struct({ type: Schema.Literal("reasoning"), text: Schema.String, options })
const file = Schema.Struct({
  type: Schema.Literal("file"),
  mediaType: Schema.String,
  fileName: Schema.optional(Schema.String),
  data: Schema.Union(Schema.String, bytes, url),
  options
})
const call = Schema.Struct({
  type: Schema.Literal("tool-call"),
  id: Schema.String,
  name: Schema.String,
  params: JsonValue,
  providerExecuted: Schema.optional(Schema.Boolean),
  options
})
const result = Schema.Struct({
  type: Schema.Literal("tool-result"),
  id: Schema.String,
  name: Schema.String,
  isFailure: Schema.Boolean,
  result: JsonValue,
  providerExecuted: Schema.Boolean,
  options
})

const message = <const Role extends string, Content extends Schema.Schema.All>(role: Role, content: Content) =>
  Schema.Struct({ role: Schema.Literal(role), content, options })

const ShownMessage = Schema.Union(
  message("system", Schema.String),
  message("user", Schema.Union(Schema.String, Schema.Array(Schema.Union(text, file)))),
  message("assistant", Schema.Union(Schema.String, Schema.Array(Schema.Union(text, file, reasoning, call, result)))),
  message("tool", Schema.Array(result))
)
type ShownMessage = typeof ShownMessage.Type

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

export const ShownRequest = Schema.Struct({
  sessionID: SessionID,
  agent: Schema.String,
  model: ModelRef,
  frame: RequestFrame,
  /** The conversation, after the system texts. */
  messages: Schema.Array(ShownMessage),
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
