/**
 * The model of the fault harness: real HTTP on loopback, one path for each node, so that it sees who asks. Its answer to a
 * prompt is one or two calls of a tool, each of which appends a line with its own id, then a text. It notes each request.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Effect, Predicate, Schema } from "effect"

/** Numbers from 0 to 1, the same for the same seed. */
export type Dice = () => number

export const dice = (seed: number): Dice => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A request of a node: of which prompt, after how many results of tools, and when its answer ended, if it did. */
export interface Asked {
  readonly node: number
  readonly prompt: string
  readonly step: number
  readonly call: string | undefined
  readonly began: number
  ended: number | undefined
}

export interface FaultModel {
  readonly url: (node: number) => string
  readonly asked: ReadonlyArray<Asked>
}

const Body = Schema.parseJson(
  Schema.Struct({ messages: Schema.Array(Schema.Struct({ role: Schema.String, content: Schema.Unknown })) })
)

/** The last prompt of a message: after a turn that failed, the next prompt is in one message with the one before. */
const promptIn = (content: unknown) =>
  JSON.stringify(content)
    .match(/\bmsg_\w+/g)
    ?.at(-1) ?? "none"

/** How often a prompt calls the tool. */
export const callsOf = (prompt: string): number => ((prompt.length + Number(prompt.at(-1) ?? 0)) % 2 === 0 ? 1 : 2)

const chunkOf = (delta: unknown, finish: string | null = null) =>
  `data: ${JSON.stringify({
    id: "chatcmpl-test",
    object: "chat.completion.chunk",
    created: 1,
    model: "held",
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...(finish === null ? {} : { usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } })
  })}\n\n`

const textChunks = (prompt: string) => [
  chunkOf({ role: "assistant", content: "The answer " }),
  chunkOf({ content: `to ${prompt} ` }),
  chunkOf({ content: "is here." }),
  chunkOf({}, "stop")
]

const callChunks = (id: string, command: string) => [
  chunkOf({
    tool_calls: [{ index: 0, id, type: "function", function: { name: "bash", arguments: JSON.stringify({ command }) } }]
  }),
  chunkOf({}, "tool_calls")
]

const bodyOf = async (request: IncomingMessage) => {
  const parts: Array<Buffer> = []
  for await (const part of request) if (Buffer.isBuffer(part)) parts.push(part)
  return Schema.decodeUnknownSync(Body)(Buffer.concat(parts).toString())
}

/** Listens until the scope closes. `effects` is the file that the tools append to. */
export const make = Effect.fnUntraced(function* (roll: Dice, effects: string) {
  const asked: Array<Asked> = []
  const pace = (response: ServerResponse, chunks: ReadonlyArray<string>, done: () => void) => {
    const [next, ...rest] = chunks
    if (response.destroyed) return
    if (next === undefined) {
      done()
      return void response.end("data: [DONE]\n\n")
    }
    response.write(next)
    setTimeout(() => pace(response, rest, done), roll() * 80)
  }
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method === "GET") return void response.writeHead(404).end()
    const { messages } = await bodyOf(request)
    const last = messages.findLastIndex(({ role }) => role === "user")
    const prompt = promptIn(messages[last]?.content)
    const step = messages.slice(last).filter(({ role }) => role === "tool").length
    const call = step < callsOf(prompt) ? `call_${asked.length}` : undefined
    const node = Number(/^\/n(\d+)\//.exec(request.url ?? "")?.[1])
    const entry: Asked = { node, prompt, step, call, began: Date.now(), ended: undefined }
    asked.push(entry)
    response.writeHead(200, { "content-type": "text/event-stream" })
    const command = `echo '${call} ${prompt} ${step}' >> '${effects}'; sleep ${(roll() * 0.15).toFixed(2)}`
    pace(response, call === undefined ? textChunks(prompt) : callChunks(call, command), () => {
      entry.ended = Date.now()
    })
  }
  const server = createServer((request, response) => {
    response.on("error", () => undefined)
    // A node that dies cuts off its request.
    answer(request, response).catch(() => response.destroy())
  })
  yield* Effect.acquireRelease(
    Effect.async<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () =>
      Effect.async<void>((resume) => {
        server.closeAllConnections()
        server.close(() => resume(Effect.void))
      })
  )
  const address = server.address()
  const port = Predicate.isRecord(address) ? Number(address["port"]) : 0
  const model: FaultModel = { url: (node) => `http://127.0.0.1:${port}/n${node}/v1`, asked }
  return model
})
