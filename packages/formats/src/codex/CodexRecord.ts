/**
 * Defines a record of Codex's rollouts, in all forms so far. Since September 2025 a record is an envelope
 * `{ timestamp, type, payload }`; before, response items stand alone after a header. Spec: FM-150 in specs/formats.md.
 */
import { Predicate, Schema } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Json"
import { count, list, text, tolerant, unchecked, word } from "../reading/Tolerant.ts"

/** Cumulative or of one request. Cached tokens are part of `input_tokens`, reasoning is part of `output_tokens`. */
export const TokenUsage = Schema.Struct({
  input_tokens: count,
  cached_input_tokens: count,
  cache_write_input_tokens: count,
  output_tokens: count,
  reasoning_output_tokens: count
})
export type TokenUsage = typeof TokenUsage.Type

/** What any payload may have. Fields that this reader does not use stay in the item's `record`. */
export const Payload = Schema.Struct({
  type: word,
  id: word,
  timestamp: text,
  cwd: word,
  model: word,
  model_provider: word,
  forked_from_id: word,
  parent_thread_id: word,
  source: unchecked,
  role: word,
  author: word,
  content: unchecked,
  summary: unchecked,
  call_id: word,
  name: word,
  arguments: unchecked,
  input: unchecked,
  output: unchecked,
  tools: unchecked,
  action: unchecked,
  status: word,
  result: text,
  revised_prompt: text,
  message: text,
  images: list,
  item: unchecked,
  replacement_history: list,
  thread_name: word,
  num_turns: tolerant(Schema.NonNegativeInt),
  info: tolerant(Schema.Struct({ total_token_usage: tolerant(TokenUsage), last_token_usage: tolerant(TokenUsage) })),
  usage: tolerant(TokenUsage),
  thread_token_usage: tolerant(TokenUsage)
})
export type Payload = typeof Payload.Type

const decodePayload = Schema.decodeUnknownSync(Payload)

const Envelope = Schema.Struct({ timestamp: text, type: word, payload: unchecked, record_type: word, id: word })
const decodeEnvelope = Schema.decodeUnknownSync(Envelope)

/** A record of either form. */
export interface CodexRecord {
  /** `session_meta`, `response_item`, `event_msg`, `turn_context`, `compacted` and others; `state` marks nothing. */
  readonly type: string
  readonly timestamp: string | undefined
  readonly payload: Payload
}

/** Reads any JSON object as a record: every field may be absent. */
export const decode = (value: JsonRecord): CodexRecord => {
  const { id, payload, record_type, timestamp, type } = decodeEnvelope(value)
  if (type !== undefined && Predicate.isReadonlyRecord(payload)) {
    return { type, timestamp, payload: decodePayload(payload) }
  }
  const bare = decodePayload(value)
  if (type !== undefined) return { type: "response_item", timestamp, payload: bare }
  const isHeader = record_type === undefined && id !== undefined && timestamp !== undefined
  return { type: isHeader ? "session_meta" : (record_type ?? "unknown"), timestamp, payload: bare }
}
