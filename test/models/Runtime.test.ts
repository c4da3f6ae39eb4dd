/**
 * Method: the real runtime on an in-memory store with the real `read` and `bash` tools, in a folder of its own; the model
 * is the offline one, or a provider over HTTP on loopback. What must hold: one prompt becomes a whole turn, with its
 * tool calls settled, whatever the provider sends.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Tool } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Layer, Predicate, Redacted, Schema } from "effect"
import { Models } from "@daybook/models"
import type { ModelInfo } from "../../packages/core/src/model/ModelResolver.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { HostTools } from "../../packages/core/src/tool/HostTools.ts"
import { define } from "../../packages/core/src/tool/ToolDefinition.ts"
import * as Daybook from "../../packages/embedded/src/Daybook.ts"
import { at, secret } from "./support/Client.ts"
import { calling, held } from "./support/HeldAnswers.ts"
import { chunks, events, type Reply, serve } from "./support/Server.ts"

const folder = Effect.acquireRelease(
  Effect.promise(async () => {
    const path = await mkdtemp(join(tmpdir(), "daybook-models-"))
    await writeFile(join(path, "package.json"), '{\n  "scripts": { "build": "tsc", "test": "vitest" }\n}\n')
    return path
  }),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
)

/** Runs one prompt to its end and gives the session's messages. */
const run = Effect.fnUntraced(function* (options: Models.Options, model: ModelInfo["ref"], text: string) {
  const directory = yield* folder
  return yield* Effect.gen(function* () {
    const sessions = yield* Sessions
    const { id } = yield* sessions.create({ location: { directory }, model })
    yield* sessions.prompt({ sessionID: id, prompt: { text }, resume: false })
    yield* sessions.resume(id)
    return (yield* sessions.messages({ sessionID: id })).items
  }).pipe(Effect.provide(Daybook.layer({ filename: ":memory:" }).pipe(Layer.provide(Models.layerOptions(options)))))
})

const texts = (messages: ReadonlyArray<unknown>) =>
  messages
    .flatMap((message) =>
      Array.isArray(at(message, "content")) ? (at(message, "content") as ReadonlyArray<unknown>) : []
    )
    .filter((part) => at(part, "type") === "text")
    .map((part) => String(at(part, "text")))
    .join("\n")

describe("a turn of the runtime", () => {
  it.scopedLive("MD-43: the offline model reads package.json and lists its scripts", () =>
    Effect.gen(function* () {
      const messages = yield* run(
        { providers: {} },
        { providerID: "offline", id: "scribe" },
        "Which scripts does package.json define? Read it first."
      )
      assert.include(texts(messages), "package.json defines 2 scripts:\n- build: tsc\n- test: vitest")
    })
  )

  const anthropicCall = (index: number, id: string, name: string, json: string) => [
    { type: "content_block_start", index, content_block: { type: "tool_use", id, name, input: {} } },
    { type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json: json } },
    { type: "content_block_stop", index }
  ]
  const anthropicStart = {
    type: "message_start",
    message: { id: "msg_1", model: "claude-opus-5-5", usage: { input_tokens: 3, output_tokens: 1 } }
  }
  const anthropicEnd = (stop_reason: string) => [
    { type: "message_delta", delta: { stop_reason }, usage: { output_tokens: 2 } },
    { type: "message_stop" }
  ]
  const openaiResponse = {
    id: "resp_1",
    created_at: 1,
    model: "gpt-6.1-terra",
    usage: { input_tokens: 3, output_tokens: 2 }
  }
  const openaiCall = (output_index: number, call_id: string, name: string, args: string) => {
    const item = { type: "function_call", id: `fc_${output_index}`, call_id, name, arguments: args }
    return [
      { type: "response.output_item.added", output_index, item: { ...item, arguments: "" } },
      { type: "response.function_call_arguments.delta", output_index, item_id: item.id, delta: args },
      { type: "response.output_item.done", output_index, item }
    ]
  }
  const chat = (delta: Record<string, unknown>, finish_reason: string | null = null) => ({
    choices: [{ index: 0, delta, finish_reason }]
  })

  /** One good call, one with broken input, one of a tool that is not offered; then the answer. */
  const protocols: ReadonlyArray<
    readonly ["anthropic" | "openai" | "openai-compatible", string, ReadonlyArray<Reply>]
  > = [
    [
      "anthropic",
      "claude-opus-5-5",
      [
        events(
          anthropicStart,
          ...anthropicCall(0, "call_1", "read", '{"path":"package.json"}'),
          ...anthropicCall(1, "call_2", "bash", '{"command": "ec'),
          ...anthropicCall(2, "call_3", "vanished", '{"x":1}'),
          ...anthropicEnd("tool_use")
        ),
        events(
          anthropicStart,
          { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
          { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Done." } },
          { type: "content_block_stop", index: 0 },
          ...anthropicEnd("end_turn")
        )
      ]
    ],
    [
      "openai",
      "gpt-6.1-terra",
      [
        events(
          { type: "response.created", response: openaiResponse },
          ...openaiCall(0, "call_1", "read", '{"path":"package.json"}'),
          ...openaiCall(1, "call_2", "bash", '{"command": "ec'),
          ...openaiCall(2, "call_3", "vanished", '{"x":1}'),
          { type: "response.completed", response: openaiResponse }
        ),
        events(
          {
            type: "response.output_item.added",
            output_index: 0,
            item: { type: "message", id: "m", role: "assistant", status: "in_progress", content: [] }
          },
          {
            type: "response.output_text.delta",
            output_index: 0,
            content_index: 0,
            item_id: "m",
            delta: "Done.",
            logprobs: []
          },
          {
            type: "response.output_item.done",
            output_index: 0,
            item: { type: "message", id: "m", role: "assistant", status: "completed", content: [] }
          },
          { type: "response.completed", response: openaiResponse }
        )
      ]
    ],
    [
      "openai-compatible",
      "qwen3:8b",
      [
        chunks(
          chat({
            tool_calls: [{ index: 0, id: "call_1", function: { name: "read", arguments: '{"path":"package.json"}' } }]
          }),
          chat({ tool_calls: [{ index: 1, id: "call_2", function: { name: "bash", arguments: '{"command": "ec' } }] }),
          chat({ tool_calls: [{ index: 2, id: "call_3", function: { name: "vanished", arguments: '{"x":1}' } }] }),
          chat({}, "tool_calls")
        ),
        chunks(chat({ content: "Done." }), chat({}, "stop"))
      ]
    ]
  ]
  for (const [api, model, replies] of protocols) {
    it.scopedLive(`MD-13: every call of an answer is settled, and the next request shows the results: ${api}`, () =>
      Effect.gen(function* () {
        const server = yield* serve(...replies)
        const baseUrl = api === "anthropic" ? server.url : `${server.url}/v1`
        const messages = yield* run(
          { providers: { [api]: { api, apiKey: Redacted.make(secret), baseUrl } } },
          { providerID: api, id: model },
          "go"
        )
        assert.include(texts(messages), "Done.")
        const tools = messages
          .flatMap((message) =>
            Predicate.hasProperty(message, "content") && Array.isArray(message.content) ? message.content : []
          )
          .filter((part) => at(part, "type") === "tool")
        assert.sameDeepMembers(
          tools.map((part) => [at(part, "id"), at(part, "state")]),
          [
            ["call_1", "completed"],
            ["call_2", "error"],
            ["call_3", "error"]
          ]
        )
        assert.strictEqual(server.received.length, 2)
        const shown = JSON.stringify(server.received[1]?.body)
        assert.include(shown, "call_3")
        // The file's text goes as text, escaped once by the request's JSON and not once more.
        assert.include(shown, String.raw`{\n  \"scripts\": { \"build\": \"tsc\"`)
      })
    )
  }

  for (const [api, model] of protocols) {
    it.scopedLive(`EX-T3: a complete call runs while its answer is still coming: ${api}`, () =>
      Effect.gen(function* () {
        const server = yield* serve(held(calling[api]("web_search")))
        const baseUrl = api === "anthropic" ? server.url : `${server.url}/v1`
        const providers = { [api]: { api, apiKey: Redacted.make(secret), baseUrl } }
        yield* Effect.gen(function* () {
          const [sessions, host] = [yield* Sessions, yield* HostTools]
          const ran = yield* Deferred.make<unknown>()
          const search = Tool.make("web_search", { parameters: { path: Schema.String }, success: Schema.String })
          yield* host.register([
            define(search, { handler: (input) => Effect.as(Deferred.succeed(ran, input), "found") })
          ])
          const { id } = yield* sessions.create({
            location: { directory: yield* folder },
            model: { providerID: api, id: model }
          })
          yield* sessions.prompt({ sessionID: id, prompt: { text: "go" } })
          assert.deepStrictEqual(yield* Deferred.await(ran), { path: "a" })
          assert.strictEqual((yield* sessions.get(id)).activity?.state, "running")
          yield* sessions.interrupt(id)
        }).pipe(
          Effect.scoped,
          Effect.provide(
            Daybook.layer({ filename: ":memory:" }).pipe(Layer.provide(Models.layerOptions({ providers })))
          )
        )
      })
    )
  }
})
