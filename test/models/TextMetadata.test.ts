/** What servers attach to a text: it is kept in the log and goes back to the model that wrote the text, by the real runtime. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { Models } from "@daybook/models"
import type { ModelInfo } from "../../packages/core/src/model/ModelResolver.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import * as Daybook from "../../packages/embedded/src/Daybook.ts"
import { at, secret } from "./support/Client.ts"
import { chunks, events, type Reply, serve } from "./support/Server.ts"

/** Runs two prompts, and gives the second request's body and the texts of the first answer as they are stored. */
const twoPrompts = (api: "openai" | "gemini" | "openai-compatible", id: string, ...replies: ReadonlyArray<Reply>) =>
  Effect.gen(function* () {
    const server = yield* serve(...replies)
    const provider = { api, apiKey: Redacted.make(secret), baseUrl: `${server.url}/v1` }
    const model: ModelInfo["ref"] = { providerID: api, id }
    return yield* Effect.gen(function* () {
      const sessions = yield* Sessions
      const { id: sessionID } = yield* sessions.create({ location: { directory: "/" }, model, title: "A title" })
      for (const text of ["go", "on"]) {
        yield* sessions.prompt({ sessionID, prompt: { text }, resume: false })
        yield* sessions.resume(sessionID)
      }
      const { items } = yield* sessions.messages({ sessionID })
      const first = items.find(({ type }) => type === "assistant")
      const texts = first?.type === "assistant" ? first.content.filter(({ type }) => type === "text") : []
      return { body: server.received[1]?.body, texts }
    }).pipe(
      Effect.provide(
        Daybook.layer({ filename: ":memory:" }).pipe(
          Layer.provide(Models.layerOptions({ providers: { [api]: provider } }))
        )
      )
    )
  })

const message = (...texts: ReadonlyArray<string>) => ({
  type: "message",
  id: "msg_1",
  role: "assistant",
  phase: "final_answer",
  content: texts.map((text) => ({ type: "output_text", text }))
})
const answered = (...output: ReadonlyArray<unknown>): Reply =>
  events({ type: "response.completed", response: { id: "resp_1", status: "completed", output, usage: {} } })
const thinking = (encrypted_content?: string) => ({ type: "reasoning", id: "rs_1", summary: [], encrypted_content })

describe("the metadata of a text", () => {
  it.scopedLive("MD-761: a message of Responses goes back with its id and its phase, as one message", () =>
    Effect.gen(function* () {
      const replies = [answered(thinking("ENC"), message("One.", "Two.")), answered(message("Three."))]
      const { body, texts } = yield* twoPrompts("openai", "gpt-6.1-terra", ...replies)
      assert.deepStrictEqual(
        texts.map((text) => at(text, "providerMetadata")),
        Array.from({ length: 2 }, () => ({ openai: { itemId: "msg_1", phase: "final_answer" } }))
      )
      const input = at(body, "input")
      const items = Array.isArray(input) ? input.filter((item) => at(item, "id") !== undefined) : []
      assert.deepStrictEqual(items, [
        { id: "rs_1", type: "reasoning", encrypted_content: "ENC", summary: [] },
        {
          role: "assistant",
          id: "msg_1",
          phase: "final_answer",
          content: [
            { type: "output_text", text: "One." },
            { type: "output_text", text: "Two." }
          ]
        }
      ])
    })
  )

  it.scopedLive("MD-761: without the thinking that belongs to it, a message goes back with its phase only", () =>
    Effect.gen(function* () {
      const replies = [answered(thinking(), message("One.")), answered(message("Two."))]
      const { body } = yield* twoPrompts("openai", "gpt-6.1-terra", ...replies)
      assert.notInclude(JSON.stringify(body), "msg_1")
      assert.include(JSON.stringify(body), '"phase":"final_answer"')
    })
  )

  it.scopedLive("MD-761: a signature on a text goes back to Gemini", () =>
    Effect.gen(function* () {
      const said: Reply = chunks({
        candidates: [
          { content: { role: "model", parts: [{ text: "One.", thoughtSignature: "SIG" }] }, finishReason: "STOP" }
        ]
      })
      const { body } = yield* twoPrompts("gemini", "gemini-3.8-flash", said, said)
      assert.deepStrictEqual(at(body, "contents", 1, "parts"), [{ text: "One.", thoughtSignature: "SIG" }])
    })
  )

  it.scopedLive("MD-761: a text without metadata is stored without any", () =>
    Effect.gen(function* () {
      const said = chunks({ choices: [{ index: 0, delta: { content: "One." }, finish_reason: "stop" }] })
      const { texts } = yield* twoPrompts("openai-compatible", "m", said, said)
      assert.deepStrictEqual(
        texts.map((text) => Object.keys(text)),
        [["type", "id", "text"]]
      )
    })
  )
})
