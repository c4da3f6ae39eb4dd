/** The constructor of models against the library's own: the same parts and errors, with schemas built once per tool set. */
import * as LanguageModel from "@effect/ai/LanguageModel"
import type * as Response from "@effect/ai/Response"
import type * as Tool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import { assert, describe, it } from "@effect/vitest"
import { Chunk, Effect, Stream, Struct } from "effect"
import * as ProviderModel from "../../packages/core/src/model/ProviderModel.ts"
import { jsonSchemaTool } from "../../packages/core/src/tool/ToolDefinition.ts"

const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 }

const answer: ReadonlyArray<Response.StreamPartEncoded> = [
  { type: "response-metadata", id: "r1", modelId: "m1" },
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: "It reads " },
  { type: "text-end", id: "t" },
  { type: "tool-call", id: "c1", name: "read", params: { path: "a.ts" } },
  { type: "finish", reason: "tool-calls", usage }
]

const tool = (name: string) => jsonSchemaTool({ name, parameters: { type: "object" } })

/** A tool that counts how often its parameters are read to build a schema. */
const counting = () => {
  const base = tool("read")
  let reads = 0
  const proxy = new Proxy(base, {
    get: (target, key) => {
      if (key === "parametersSchema") reads += 1
      return Reflect.get(target, key)
    }
  })
  return { tool: proxy, reads: () => reads }
}

const toolkitOf = (tools: ReadonlyArray<Tool.Any>): Toolkit.WithHandler<Record<string, Tool.Any>> => ({
  tools: Object.fromEntries(tools.map((one) => [one.name, one])),
  handle: () => Effect.dieMessage("no call is settled here")
})

type Make = (params: LanguageModel.ConstructorParams) => Effect.Effect<LanguageModel.Service>

/** Asks a model that answers with these parts, and returns its parts or its error, and the request that it got. */
const ask = (make: Make, parts: ReadonlyArray<Response.StreamPartEncoded>, tools: ReadonlyArray<Tool.Any>) =>
  Effect.gen(function* () {
    const seen: Array<Omit<LanguageModel.ProviderOptions, "span">> = []
    const model = yield* make({
      generateText: () => Effect.dieMessage("only streams"),
      streamText: (request) => {
        seen.push(Struct.omit(request, "span"))
        return Stream.fromIterable(parts)
      }
    })
    const stream = model.streamText({
      prompt: "Read it.",
      toolkit: toolkitOf(tools),
      disableToolCallResolution: true
    })
    return { got: yield* Effect.either(Effect.map(Stream.runCollect(stream), Chunk.toReadonlyArray)), seen }
  })

describe("a model of the runtime", () => {
  it.effect("RQ-57: a second request with the same tools builds no schema", () =>
    Effect.gen(function* () {
      const { reads, tool: read } = counting()
      yield* ask(ProviderModel.make, answer, [read, tool("write")])
      const after = reads()
      assert.isAbove(after, 0)
      yield* ask(ProviderModel.make, answer, [read, tool("list")])
      const other = reads()
      assert.isAbove(other, after, "another set of tools has schemas of its own")
      const set = [read, tool("glob")]
      yield* ask(ProviderModel.make, answer, set)
      const known = reads()
      yield* ask(ProviderModel.make, answer, set)
      assert.strictEqual(reads(), known)
    })
  )

  const malformed: Array<Response.StreamPartEncoded> = [
    { type: "text-start", id: "t" },
    { type: "tool-call", id: "c1", name: "unknown", params: {} }
  ]

  for (const [name, parts, tools] of [
    ["calls of its tools", answer, [tool("read"), tool("write")]],
    ["a call of an unknown tool", malformed, [tool("read")]],
    ["a request without tools", answer.slice(0, 4), []]
  ] as const) {
    it.effect(`RQ-58: the request, the parts and the error are those of the library's constructor: ${name}`, () =>
      Effect.gen(function* () {
        const theirs = yield* ask(LanguageModel.make, parts, tools)
        const ours = yield* ask(ProviderModel.make, parts, tools)
        assert.deepStrictEqual(JSON.stringify(ours.got), JSON.stringify(theirs.got))
        assert.deepStrictEqual(ours.seen, theirs.seen)
      })
    )
  }
})
