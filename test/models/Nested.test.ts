import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Models } from "@daybook/models"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import * as Daybook from "../../packages/embedded/src/Daybook.ts"
import { begin, chunk } from "./support/HeldAnswers.ts"
import { chunks, serve } from "./support/Server.ts"

const nested = (levels: number, open: string, close: string) => `${open.repeat(levels)}1${close.repeat(levels)}`

describe("arguments of a call", () => {
  const inputs: ReadonlyArray<readonly [string, string]> = [
    ["objects", nested(5_000, '{"path":', "}")],
    ["lists", `{"path":${nested(50_000, "[", "]")}}`],
    ["a list of 101 levels", `{"path":${nested(100, "[", "]")}}`],
    ["text with JSON in it", JSON.stringify(nested(50_000, '{"path":', "}"))]
  ]
  const many = `[${"{},".repeat(60_000)}{}]`
  const manyInputs: ReadonlyArray<readonly [string, string]> = [
    ["values", `{"items":${many}}`],
    ["text with JSON in it", JSON.stringify(`{"items":${many}}`)],
    ["a field with JSON in it", `{"items":${JSON.stringify(many)}}`]
  ]
  it.scopedLive(
    "LM-31, LM-32: nested too deep or with too many values are a failed call that the model reads, and the run goes on",
    () =>
      Effect.gen(function* () {
        for (const [what, input] of [...inputs, ...manyInputs]) {
          const server = yield* serve(
            chunks(
              begin(0, "call_1", what.startsWith("a field") || input.includes("items") ? "todo" : "read", input),
              chunk({}, "tool_calls")
            ),
            chunks(chunk({ content: "I see." }), chunk({}, "stop"))
          )
          const layer = Layer.provide(
            Daybook.layer({ filename: ":memory:" }),
            Models.layerOptions({
              providers: { own: { api: "openai-compatible", baseUrl: `${server.url}/v1`, models: { m: {} } } }
            })
          )
          const items = yield* Effect.gen(function* () {
            const sessions = yield* Sessions
            const { id } = yield* sessions.create({
              location: { directory: process.cwd() },
              model: { providerID: "own", id: "m" }
            })
            yield* sessions.prompt({ sessionID: id, prompt: { text: "Hi" }, resume: false })
            yield* sessions.resume(id)
            return (yield* sessions.messages({ sessionID: id })).items
          }).pipe(Effect.provide(layer))
          const parts = items.flatMap((item) => (item.type === "assistant" ? item.content : []))
          const tool = parts.find((part) => part.type === "tool")
          const error = tool?.type === "tool" ? tool.error : undefined
          assert.strictEqual(error?.type, "tool.input", what)
          if (what === "values") assert.include(error?.message, "more than 50000 values", what)
          else if (!/^text|^a field/.test(what))
            assert.include(error?.message, "nested more than 100 levels deep", what)
          assert.isTrue(
            parts.some((part) => part.type === "text" && part.text === "I see."),
            what
          )
          assert.lengthOf(server.received, 2, what)
        }
      })
  )
})
