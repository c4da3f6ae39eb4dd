/** Generates malformed and hostile answers of models, in the form of each protocol. */
import { hostileIds } from "../../support/HostileLogs.ts"
import type { Protocol } from "../../support/ProviderHistory.ts"
import type { Random } from "../../request/support/Random.ts"
import { chunks, events, type Reply } from "./Server.ts"

type Event = { readonly type: string } & Record<string, unknown>
type Block =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "reasoning"; readonly text: string; readonly signed: boolean }
  | { readonly kind: "call"; readonly id: string; readonly name: string; readonly input: string }

export interface Said {
  readonly blocks: ReadonlyArray<Block>
  /** `cut` and `silence` occur in the middle of the last block. */
  readonly end: "stop" | "length" | "cut" | "early" | "error" | "silence"
}

const texts = ["\n\n", " ", "", "\u00a0", "Fine.", "I look \ud83d", "日本 😀", "Done.\n"]
const inputs = ['{"size":3}', '{"size":0}', '{"size":-1}', "{}", "", '{"size"', "[]", '{"size":"\\ud800"}']
const names = ["look", "look", "look", "bash", "no such tool!", "web_search"]

const pick = <A>(random: Random, from: ReadonlyArray<A>): A => {
  const one = from[random.below(from.length)]
  if (one === undefined) throw new Error("nothing to pick from")
  return one
}

const block = (random: Random): Block => {
  if (random.chance(0.4)) return { kind: "text", text: pick(random, texts) }
  if (random.chance(0.4)) return { kind: "reasoning", text: pick(random, texts), signed: random.chance(0.7) }
  return { kind: "call", id: pick(random, hostileIds), name: pick(random, names), input: pick(random, inputs) }
}

export const hostileAnswer = (random: Random, nth: number): Said => {
  const blocks = Array.from({ length: random.below(5) }, () => block(random))
  const end = pick(random, ["stop", "stop", "stop", "stop", "length", "cut", "early", "error", "silence"] as const)
  return end === "silence" || end === "cut"
    ? { end, blocks: [...blocks, { kind: "text", text: `In the middle of ${nth}` }] }
    : { end, blocks }
}

const reply = (made: Reply, { end }: Said): Reply =>
  end === "cut" || end === "silence"
    ? { chunks: made.chunks.filter((one) => !one.includes("[DONE]")), ending: end }
    : made

const isWhole = ({ blocks, end }: Said, nth: number): boolean =>
  nth < blocks.length - 1 || (end !== "cut" && end !== "silence")

const anthropicBlock = (one: Block, index: number, whole: boolean): ReadonlyArray<Event> => {
  const start = (content_block: object) => ({ type: "content_block_start", index, content_block })
  const delta = (change: object) => ({ type: "content_block_delta", index, delta: change })
  const stop = whole ? [{ type: "content_block_stop", index }] : []
  switch (one.kind) {
    case "text":
      return [start({ type: "text", text: "" }), delta({ type: "text_delta", text: one.text }), ...stop]
    case "reasoning":
      return [
        start({ type: "thinking", thinking: "", signature: "" }),
        delta({ type: "thinking_delta", thinking: one.text }),
        ...(one.signed ? [delta({ type: "signature_delta", signature: "SIG==" })] : []),
        ...stop
      ]
    case "call":
      return [
        start({ type: "tool_use", id: one.id, name: one.name, input: {} }),
        delta({ type: "input_json_delta", partial_json: one.input }),
        ...stop
      ]
  }
}

const anthropic = (said: Said): Reply => {
  const reason =
    said.end === "length" ? "max_tokens" : said.blocks.some(({ kind }) => kind === "call") ? "tool_use" : "end_turn"
  const ends = {
    stop: [
      { type: "message_delta", delta: { stop_reason: reason }, usage: { output_tokens: 1 } },
      { type: "message_stop" }
    ],
    error: [{ type: "error", error: { type: "api_error", message: "oops" } }]
  }
  return events(
    { type: "message_start", message: { id: "msg_1", model: "m", usage: { input_tokens: 3, output_tokens: 1 } } },
    ...said.blocks.flatMap((one, nth) => anthropicBlock(one, nth, isWhole(said, nth))),
    ...(said.end === "stop" || said.end === "length" ? ends.stop : said.end === "error" ? ends.error : [])
  )
}

const openaiItem = (one: Block, output_index: number, whole: boolean): ReadonlyArray<Event> => {
  const done = (item: object) => (whole ? [{ type: "response.output_item.done", output_index, item }] : [])
  const added = (item: object) => ({ type: "response.output_item.added", output_index, item })
  switch (one.kind) {
    case "text": {
      const id = `msg_${output_index}`
      const item = { id, type: "message", role: "assistant", status: "completed", content: [] }
      const delta = { type: "response.output_text.delta", output_index, content_index: 0, item_id: id, delta: one.text }
      return [added(item), { ...delta, logprobs: [] }, ...done(item)]
    }
    case "reasoning": {
      const item = { id: `rs_${output_index}`, type: "reasoning", summary: [] }
      const delta = { type: "response.reasoning_summary_text.delta", item_id: item.id, output_index, summary_index: 0 }
      return [
        added(item),
        { ...delta, delta: one.text },
        ...done({ ...item, ...(one.signed ? { encrypted_content: "ENC" } : {}) })
      ]
    }
    case "call": {
      const item = { type: "function_call", id: `fc_${output_index}`, call_id: one.id, name: one.name }
      return [added({ ...item, arguments: "" }), ...done({ ...item, arguments: one.input })]
    }
  }
}

const openai = (said: Said): Reply => {
  const response = {
    id: "resp_1",
    created_at: 1,
    model: "m",
    usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 }
  }
  const ends = {
    stop: [{ type: "response.completed", response }],
    length: [
      { type: "response.incomplete", response: { ...response, incomplete_details: { reason: "max_output_tokens" } } }
    ],
    error: [{ type: "response.failed", response: { ...response, error: { code: "server_error", message: "oops" } } }],
    cut: [],
    early: [],
    silence: []
  }
  return events(
    { type: "response.created", response },
    ...said.blocks.flatMap((one, nth) => openaiItem(one, nth, isWhole(said, nth))),
    ...ends[said.end]
  )
}

const chat = (said: Said): Reply => {
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1_790_000_000,
    model: "m",
    choices: [{ index: 0, delta, finish_reason }]
  })
  let calls = 0
  const deltas = said.blocks.map((one) => {
    switch (one.kind) {
      case "text":
        return chunk({ content: one.text })
      case "reasoning":
        return chunk({ reasoning_content: one.text })
      case "call":
        return chunk({
          tool_calls: [{ index: calls++, id: one.id, function: { name: one.name, arguments: one.input } }]
        })
    }
  })
  const reason = said.end === "length" ? "length" : calls > 0 ? "tool_calls" : "stop"
  const end =
    said.end === "stop" || said.end === "length"
      ? [chunk({}, reason)]
      : said.end === "error"
        ? [{ error: { message: "oops" } }]
        : []
  return chunks(...deltas, ...end)
}

/** Gemini's answers have no end mark and no pieces of a call: a call that is not whole is missing. */
const gemini = (said: Said): Reply => {
  const part = (one: Block): ReadonlyArray<object> => {
    switch (one.kind) {
      case "text":
        return [{ text: one.text }]
      case "reasoning":
        return [{ text: one.text, thought: true, ...(one.signed ? { thoughtSignature: "SIG==" } : {}) }]
      case "call":
        return [{ functionCall: { id: one.id, name: one.name, args: inputOf(one.input) } }]
    }
  }
  const reasons = { stop: "STOP", length: "MAX_TOKENS", error: undefined, cut: undefined, early: undefined }
  const reason = said.end === "silence" ? undefined : reasons[said.end]
  const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 2 }
  const list = [
    ...said.blocks.flatMap(part).map((one) => ({ candidates: [{ content: { parts: [one], role: "model" } }] })),
    ...(reason === undefined ? [] : [{ candidates: [{ finishReason: reason }], usageMetadata }]),
    ...(said.end === "error" ? [{ error: { code: 500, message: "oops" } }] : [])
  ]
  return { chunks: list.map((chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`) }
}

const inputOf = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const protocols: Readonly<Record<Protocol, (said: Said) => Reply>> = {
  anthropic,
  openai,
  "openai-compatible": chat,
  gemini
}

export const rendered = (protocol: Protocol, said: Said): Reply => reply(protocols[protocol](said), said)
