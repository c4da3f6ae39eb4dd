/** The shortest whole answer of each protocol: the text "Hello". */
import { chunks, events, type Reply } from "./Server.ts"

const anthropic = events(
  {
    type: "message_start",
    message: { id: "msg_1", type: "message", role: "assistant", content: [], usage: { input_tokens: 1 } }
  },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello" } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } },
  { type: "message_stop" }
)

const item = { id: "msg_1", type: "message", role: "assistant", status: "completed", content: [] }
const openai = events(
  { type: "response.output_item.added", output_index: 0, item },
  {
    type: "response.output_text.delta",
    item_id: "msg_1",
    output_index: 0,
    content_index: 0,
    delta: "Hello",
    logprobs: []
  },
  { type: "response.output_item.done", output_index: 0, item },
  {
    type: "response.completed",
    response: { id: "resp_1", status: "completed", usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } }
  }
)

const chunk = (delta: Record<string, unknown>, finish_reason: string | null = null) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1_790_000_000,
  model: "m",
  choices: [{ index: 0, delta, finish_reason }]
})

const gemini: Reply = {
  chunks: [
    `data: ${JSON.stringify({
      candidates: [{ content: { parts: [{ text: "Hello" }], role: "model" }, finishReason: "STOP", index: 0 }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 }
    })}\r\n\r\n`
  ]
}

export const hello: Readonly<Record<"anthropic" | "openai" | "openai-compatible" | "gemini", Reply>> = {
  anthropic,
  openai,
  "openai-compatible": chunks(chunk({ role: "assistant", content: "Hello" }), chunk({}, "stop")),
  gemini
}
