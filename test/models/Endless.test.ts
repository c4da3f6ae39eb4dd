/**
 * A provider that never stops, over loopback: every answer ends at a limit, as a failed step, with an error that names the
 * limit. The server writes as long as the client reads.
 */
import type { ServerResponse } from "node:http"
import { Response } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Either, Layer, Redacted, type Scope, Stream } from "effect"
import { Models, OfflineModel } from "@daybook/models"
import { forEachChunk } from "../../packages/core/src/model/ProviderStream.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import * as Limits from "../../packages/core/src/support/Limits.ts"
import * as Daybook from "../../packages/embedded/src/Daybook.ts"
import { type Origin, origin } from "../http/support/Origins.ts"
import { type Api, secret } from "./support/Client.ts"
import { chunk } from "./support/HeldAnswers.ts"

const models: Readonly<Record<Api, string>> = {
  anthropic: "claude-sonnet-4-5",
  openai: "gpt-5",
  "openai-compatible": "qwen3:8b"
}

/** Writes the head, then the same piece again and again until the client goes away. */
const endless =
  (head: string, piece: string | ((nth: number) => string), type = "text/event-stream", status = 200) =>
  (response: ServerResponse) => {
    let nth = 0
    const more = () => {
      while (!response.destroyed) {
        if (!response.write(typeof piece === "string" ? piece : piece(nth++))) return void response.once("drain", more)
      }
    }
    response.writeHead(status, { "content-type": type })
    response.write(head)
    more()
  }

const serve = (write: (response: ServerResponse) => void): Effect.Effect<Origin, never, Scope.Scope> =>
  origin((_, response) => write(response))

/** The failure of one prompt, and what the session keeps of it. */
const fail = Effect.fnUntraced(function* (api: Api, write: (response: ServerResponse) => void) {
  const { asked, url } = yield* serve(write)
  // A known window, so that the server is not asked for it.
  const facts = { models: { [models[api]]: { contextTokens: 100_000 } } }
  const provider = { api, apiKey: Redacted.make(secret), baseUrl: api === "anthropic" ? url : `${url}/v1`, ...facts }
  const layer = Layer.provide(
    Daybook.layer({ filename: ":memory:" }),
    Models.layerOptions({ providers: { [api]: provider } })
  )
  return yield* Effect.gen(function* () {
    const sessions = yield* Sessions
    const { id } = yield* sessions.create({
      location: { directory: process.cwd() },
      model: { providerID: api, id: models[api] }
    })
    yield* sessions.prompt({ sessionID: id, prompt: { text: "Hi" }, resume: false })
    const outcome = yield* Effect.either(sessions.resume(id))
    assert.isTrue(Either.isLeft(outcome))
    assert.lengthOf(asked, 1, "the request is not made again")
    const { items } = yield* sessions.messages({ sessionID: id })
    const last = items.find(({ type }) => type === "assistant")
    return last?.type === "assistant" ? (last.error?.message ?? "no error") : "no answer"
  }).pipe(Effect.provide(layer))
})

const event = (value: Readonly<Record<string, unknown>>) =>
  `${value["type"] === undefined ? "" : `event: ${String(value["type"])}\n`}data: ${JSON.stringify(value)}\n\n`

const block = (content_block: object, delta: object): readonly [string, string] => [
  event({
    type: "message_start",
    message: { id: "msg_1", type: "message", role: "assistant", content: [], usage: { input_tokens: 1 } }
  }) + event({ type: "content_block_start", index: 0, content_block }),
  event({ type: "content_block_delta", index: 0, delta })
]

const large = "x".repeat(1024 * 1024)

describe("an answer without an end", () => {
  const streams: ReadonlyArray<readonly [string, Api, readonly [string, string], number]> = [
    [
      "reasoning of Anthropic",
      "anthropic",
      block({ type: "thinking", thinking: "", signature: "" }, { type: "thinking_delta", thinking: large }),
      Limits.maxBlockLength
    ],
    [
      "tool input of Anthropic",
      "anthropic",
      block(
        { type: "tool_use", id: "call_1", name: "read", input: {} },
        { type: "input_json_delta", partial_json: large }
      ),
      Limits.maxBlockLength
    ],
    [
      "tool input of chat completions",
      "openai-compatible",
      [
        event(
          chunk({ tool_calls: [{ index: 0, id: "c", type: "function", function: { name: "read", arguments: "" } }] })
        ),
        event(chunk({ tool_calls: [{ index: 0, function: { arguments: large } }] }))
      ],
      Limits.maxBlockLength
    ]
  ]
  for (const [what, api, [head, piece], limit] of streams) {
    it.scopedLive(`LM-12: ${what} fails the step at its limit`, () =>
      Effect.gen(function* () {
        const message = yield* fail(api, endless(head, piece))
        assert.include(message, `more than ${limit} characters`)
      })
    )
  }

  const idsAndLimits = [
    ["one text", () => "1", Limits.maxTextLength],
    ["many texts together", (n: number) => String(n), Limits.maxAnswerLength]
  ] as const
  for (const [what, idOf, limit] of idsAndLimits) {
    it.effect(`LM-12: ${what} fail the answer at the limit, and no more is read`, () =>
      Effect.gen(function* () {
        const { model, ...resolved } = yield* OfflineModel.resolved
        let sent = 0
        const parts = Stream.iterate(1, (n) => n + 1).pipe(
          Stream.map((n) => Response.textDeltaPart({ id: idOf(n), delta: large })),
          Stream.rechunk(1),
          Stream.tap(() => Effect.sync(() => (sent += large.length)))
        )
        const endlessModel = { ...model, streamText: () => parts } as unknown as typeof model
        const fault = yield* Effect.flip(
          forEachChunk({ ...resolved, model: endlessModel }, { prompt: "Hi", tools: [] }, () => Effect.void)
        )
        assert.include(fault.failure.message, `more than ${limit} characters`)
        assert.isFalse(fault.failure.retryable)
        assert.strictEqual(sent, limit + large.length)
      })
    )
  }

  it.scopedLive("LM-12: texts that begin without an end fail the step at their number", () =>
    Effect.gen(function* () {
      const [head] = block({ type: "text", text: "" }, {})
      const next = (nth: number) =>
        event({ type: "content_block_start", index: nth + 1, content_block: { type: "text", text: "x" } }) +
        event({ type: "content_block_stop", index: nth + 1 })
      const message = yield* fail("anthropic", endless(head, next))
      assert.include(message, `more than ${Limits.maxAnswerBlocks} texts and calls`)
    })
  )

  for (const api of ["anthropic", "openai", "openai-compatible"] as const) {
    it.scopedLive(`LM-10: an event of ${api} without an end fails the step at its limit`, () =>
      Effect.gen(function* () {
        const message = yield* fail(api, endless("data: ", large))
        assert.include(message, `more than ${Limits.maxEventBytes.provider} bytes`)
      })
    )

    it.scopedLive(`LM-10: a JSON body of ${api} without an end fails the step at its limit`, () =>
      Effect.gen(function* () {
        const message = yield* fail(api, endless('{"a":"', large, "application/json"))
        assert.include(message, `more than ${Limits.maxBodyBytes.provider} bytes`)
      })
    )

    it.scopedLive(`LM-11: a failed answer of ${api} without an end is cut, and is the failure`, () =>
      Effect.gen(function* () {
        const message = yield* fail(api, endless("the end of the ", large, "text/plain", 400))
        assert.include(message, "answered HTTP 400: the end of the x")
      })
    )
  }
})
