/** Answers that make a call and then stall, in the form of each protocol. */
import type { Api } from "./Client.ts"
import { chunks, events, type Reply } from "./Server.ts"

export const chunk = (delta: Record<string, unknown>, finish_reason: string | null = null) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1_790_000_000,
  model: "m",
  choices: [{ index: 0, delta, finish_reason }]
})
export const begin = (index: number, id: string, name: string, input = "") =>
  chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: input } }] })
export const input = (index: number, text: string) => chunk({ tool_calls: [{ index, function: { arguments: text } }] })

/** The reply without its end: the connection stays open. */
export const held = ({ chunks }: Reply): Reply => ({
  chunks: chunks.filter((one) => !one.includes("[DONE]")),
  ending: "silence"
})

/** One complete call of a tool. */
export const calling: Readonly<Record<Api, (name: string) => Reply>> = {
  anthropic: (name) =>
    events(
      { type: "message_start", message: { id: "msg_1", model: "m", usage: { input_tokens: 3, output_tokens: 1 } } },
      { type: "content_block_start", index: 0, content_block: { type: "tool_use", id: "call_1", name, input: {} } },
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '{"path":"a"}' } },
      { type: "content_block_stop", index: 0 }
    ),
  openai: (name) => {
    const item = { type: "function_call", id: "fc_1", call_id: "call_1", name }
    return events(
      { type: "response.output_item.added", output_index: 0, item: { ...item, arguments: "" } },
      { type: "response.output_item.done", output_index: 0, item: { ...item, arguments: '{"path":"a"}' } }
    )
  },
  "openai-compatible": (name) =>
    chunks(begin(0, "call_1", name, '{"path"'), input(0, ':"a"}'), begin(1, "call_2", "read"))
}
