/**
 * Method: the whole runtime talks to a provider over HTTP on loopback, which keeps the bodies it was sent. Then each turn
 * is shown again from the log, and what was shown is sent to the same provider once more: the bodies have to be equal.
 */
import { writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { Models } from "@daybook/models"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { jsonSchemaTool } from "../../packages/core/src/tool/ToolDefinition.ts"
import * as Daybook from "../../packages/embedded/src/Daybook.ts"
import { hello } from "../models/support/Answers.ts"
import { answer, type Api, secret } from "../models/support/Client.ts"
import { chunks, events, type Reply, serve } from "../models/support/Server.ts"
import { temporaryFolder } from "../support/Harness.ts"
import { pixel } from "../support/HostileLogs.ts"
import { stepsOf } from "./support/Conversation.ts"

const input = '{"path":"notes.txt"}'

/** Two calls in one answer. */
const asksTwice: Readonly<Record<Api, Reply>> = {
  anthropic: events(
    { type: "message_start", message: { id: "msg_1", model: "m", usage: { input_tokens: 3, output_tokens: 1 } } },
    ...[0, 1].flatMap((index) => [
      {
        type: "content_block_start",
        index,
        content_block: { type: "tool_use", id: `call_${index}`, name: "read", input: {} }
      },
      { type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json: input } },
      { type: "content_block_stop", index }
    ]),
    { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 2 } },
    { type: "message_stop" }
  ),
  openai: events(
    ...[0, 1].flatMap((index) => {
      const item = { type: "function_call", id: `fc_${index}`, call_id: `call_${index}`, name: "read" }
      return [
        { type: "response.output_item.added", output_index: index, item: { ...item, arguments: "" } },
        { type: "response.output_item.done", output_index: index, item: { ...item, arguments: input } }
      ]
    }),
    { type: "response.completed", response: { id: "resp_1", usage: { input_tokens: 3, output_tokens: 2 } } }
  ),
  "openai-compatible": chunks(
    {
      choices: [
        {
          index: 0,
          delta: {
            tool_calls: [0, 1].map((index) => ({
              index,
              id: `call_${index}`,
              function: { name: "read", arguments: input }
            }))
          },
          finish_reason: null
        }
      ]
    },
    { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] }
  )
}

const names: Readonly<Record<Api, string>> = {
  anthropic: "claude-sonnet-4-6",
  openai: "gpt-6.1-terra",
  "openai-compatible": "qwen3:8b"
}

describe("what is shown again", () => {
  for (const api of ["anthropic", "openai", "openai-compatible"] as const) {
    it.scopedLive(`RQ-34: makes the body that went over the wire: ${api}`, () =>
      Effect.gen(function* () {
        const directory = yield* temporaryFolder
        yield* Effect.promise(() => writeFile(join(directory, "notes.txt"), 'Some "notes"\nand more\n'))
        // The conversation takes three answers, the turns that are shown again as many.
        const conversation = [asksTwice[api], hello[api], hello[api]]
        const server = yield* serve(...conversation, hello[api], hello[api], hello[api])
        const baseUrl = api === "anthropic" ? server.url : `${server.url}/v1`
        const providers = { [api]: { api, apiKey: Redacted.make(secret), baseUrl } }
        const ref = { providerID: api, id: names[api] }
        const { model } = yield* Effect.flatMap(Models.make({ providers }), (resolver) => resolver.resolve(ref))
        yield* Effect.gen(function* () {
          const sessions = yield* Sessions
          const { id } = yield* sessions.create({ location: { directory }, model: ref })
          for (const text of ["Read notes.txt twice.", "Thanks"]) {
            yield* sessions.prompt({ sessionID: id, prompt: { text }, resume: false })
            yield* sessions.resume(id)
          }
          const steps = yield* stepsOf(id)
          assert.strictEqual(steps.length, conversation.length)
          const sent = server.received.slice(0, steps.length)
          for (const [at, { seq }] of steps.entries()) {
            const { frame, messages } = yield* sessions.request({ sessionID: id, at: seq })
            yield* answer(model, {
              prompt: [...frame.system.map((content) => ({ role: "system" as const, content })), ...messages],
              tools: frame.tools.map(jsonSchemaTool)
            })
            assert.deepEqual(server.received.at(-1)?.body, sent[at]?.body, `turn ${at}`)
          }
          assert.include(JSON.stringify(sent[1]?.body), "notes")
        }).pipe(
          Effect.provide(
            Daybook.layer({ filename: ":memory:" }).pipe(Layer.provide(Models.layerOptions({ providers })))
          )
        )
      })
    )
  }
})

describe("names of pictures and documents", () => {
  const files = [
    { uri: `data:image/png;base64,${pixel}`, mime: "image/png", name: "plan of the house.png" },
    { uri: "data:application/pdf;base64,JVBERi0xLjQKJSVFT0YK", mime: "application/pdf", name: "lease.pdf" }
  ]
  for (const api of ["anthropic", "openai", "openai-compatible"] as const) {
    it.scopedLive(`PX-28, PX-19: reach the provider, before what they name, expanded or as given: ${api}`, () =>
      Effect.gen(function* () {
        const server = yield* serve(hello[api], hello[api])
        const baseUrl = api === "anthropic" ? server.url : `${server.url}/v1`
        const providers = { [api]: { api, apiKey: Redacted.make(secret), baseUrl } }
        yield* Effect.gen(function* () {
          const sessions = yield* Sessions
          for (const [nth, expand] of [true, false].entries()) {
            const { id } = yield* sessions.create({
              location: { directory: tmpdir() },
              model: { providerID: api, id: names[api] }
            })
            yield* sessions.prompt({ sessionID: id, prompt: { text: "Look.", files }, expand, resume: false })
            yield* sessions.resume(id)
            const body = JSON.stringify(server.received[nth]?.body)
            const places = ["plan of the house.png", pixel, "lease.pdf", "JVBERi0xLjQKJSVFT0YK"].map((text) =>
              body.indexOf(text)
            )
            assert.notInclude(places, -1, body)
            assert.deepStrictEqual(
              places,
              [...places].sort((a, b) => a - b)
            )
            // The document has its name in the protocol's own field too.
            const field = { anthropic: "title", openai: "filename", "openai-compatible": "filename" }[api]
            assert.include(body, `"${field}":"lease.pdf"`)
          }
        }).pipe(
          Effect.provide(
            Daybook.layer({ filename: ":memory:" }).pipe(Layer.provide(Models.layerOptions({ providers })))
          )
        )
      })
    )
  }
})
