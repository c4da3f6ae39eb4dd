import { assert, describe, it } from "@effect/vitest"
import type { Prompt } from "@effect/ai"
import { Effect, Predicate } from "effect"
import { hello } from "./support/Answers.ts"
import { answer, at, connect, tool, type Api } from "./support/Client.ts"

type Message = Prompt.MessageEncoded

const system: ReadonlyArray<Message> = [
  { role: "system", content: "You are a careful agent." },
  { role: "system", content: "Today is Sunday.\nThe folder is /work." }
]
const call = (id: string, path: string) => ({
  type: "tool-call" as const,
  id,
  name: "read",
  params: { path },
  providerExecuted: false
})
const result = (id: string, text: string) => ({
  type: "tool-result" as const,
  id,
  name: "read",
  isFailure: false,
  result: text,
  providerExecuted: false
})
const many = Array.from({ length: 30 }, (_, index) => `call_${index}`)

/** What a conversation grows by, request after request: calls and results, steering, an update, thirty calls at once. */
const turns: ReadonlyArray<ReadonlyArray<Message>> = [
  [{ role: "user", content: [{ type: "text", text: "Read a.txt " }] }],
  [
    { role: "assistant", content: [{ type: "text", text: "I will. \n" }, call("call_a", "a.txt")] },
    { role: "tool", content: [result("call_a", 'one "two"\n')] }
  ],
  [
    { role: "assistant", content: [{ type: "text", text: "It says one." }] },
    { role: "user", content: [{ type: "text", text: "<system-update>\nToday is Monday.\n</system-update>" }] },
    { role: "user", content: [{ type: "text", text: "Now all others" }] }
  ],
  [
    { role: "assistant", content: many.map((id) => call(id, `${id}.txt`)) },
    { role: "tool", content: many.map((id) => result(id, id)) }
  ],
  [
    { role: "assistant", content: [{ type: "text", text: "Done." }] },
    { role: "user", content: [{ type: "text", text: "Thanks" }] }
  ]
]

/** The bodies of the requests of the conversation, each with everything before it. */
const conversation = Effect.fnUntraced(function* (api: Api, id: string) {
  const { model, server } = yield* connect(api, { id }, ...turns.map(() => hello[api]))
  for (let turn = 1; turn <= turns.length; turn++) {
    yield* answer(model, { prompt: [...system, ...turns.slice(0, turn).flat()], tools: [tool("read"), tool("grep")] })
  }
  return server.received.map(({ body }) => body)
})

const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/** The bytes without the marks of the cache, whose place moves. */
const bytes = (value: unknown): string =>
  JSON.stringify(value, (key, inner: unknown) => (key === "cache_control" ? undefined : inner))

const everyPair = (bodies: ReadonlyArray<unknown>, check: (earlier: unknown, later: unknown) => void) =>
  bodies.slice(1).forEach((later, index) => check(bodies[index], later))

describe("prompt cache", () => {
  for (const [api, model, key] of [
    ["anthropic", "claude-sonnet-4-6", "messages"],
    ["openai", "gpt-6.1-terra", "input"],
    ["openai-compatible", "qwen3:8b", "messages"]
  ] as const) {
    it.scopedLive(`MD-54: tools, system text and every earlier message keep their bytes between turns: ${api}`, () =>
      Effect.gen(function* () {
        const bodies = yield* conversation(api, model)
        assert.strictEqual(bodies.length, turns.length)
        everyPair(bodies, (earlier, later) => {
          const before = list(at(earlier, key))
          assert.strictEqual(bytes(list(at(later, key)).slice(0, before.length)), bytes(before))
          assert.isAbove(list(at(later, key)).length, before.length)
          const rest = (body: unknown) => bytes(Predicate.isRecord(body) ? { ...body, [key]: [] } : body)
          assert.strictEqual(rest(later), rest(earlier))
        })
      })
    )
  }

  it.scopedLive("MD-54, MD-82: two system texts are sent in their order, as blocks, items, or one message", () =>
    Effect.gen(function* () {
      const texts = system.map(({ content }) => content)
      const [anthropic] = yield* conversation("anthropic", "claude-sonnet-4-6")
      assert.deepStrictEqual(
        list(at(anthropic, "system")).map((block) => at(block, "text")),
        texts
      )
      const [openai] = yield* conversation("openai", "gpt-6.1-terra")
      assert.deepStrictEqual(
        list(at(openai, "input"))
          .slice(0, 2)
          .map((message) => at(message, "content")),
        texts
      )
      // A chat template may take one system message only.
      const [chat] = yield* conversation("openai-compatible", "gpt-6.1-terra")
      assert.strictEqual(at(chat, "messages", 0, "content"), texts.join("\n\n"))
    })
  )

  it.scopedLive(
    "MD-65, MD-20: Anthropic's marks stand at the end of the system text, of this request and of the last one",
    () =>
      Effect.gen(function* () {
        const bodies = yield* conversation("anthropic", "claude-opus-5-5")
        const marksOf = (blocks: ReadonlyArray<unknown>) =>
          blocks.flatMap((block, index) => (at(block, "cache_control") === undefined ? [] : [index]))
        for (const body of bodies) {
          assert.deepStrictEqual(marksOf(list(at(body, "system"))), [1])
          assert.deepStrictEqual(marksOf(list(at(body, "tools"))), [])
          assert.isAtMost(countMarks(body), 4)
        }
        // What ended one request is marked again in the next, thirty calls later too.
        everyPair(bodies, (earlier, later) => {
          const end = list(at(earlier, "messages")).length - 1
          const marked = (body: unknown) =>
            list(at(body, "messages")).flatMap((message, index) =>
              marksOf(list(at(message, "content"))).map((block) => [index, block])
            )
          assert.deepStrictEqual(marked(later)[0], marked(earlier).at(-1))
          assert.strictEqual(marked(later)[0]?.[0], end)
          const last = list(at(later, "messages")).length - 1
          const blocks = list(at(later, "messages", last, "content"))
          assert.deepStrictEqual(marked(later).slice(1), [[last, blocks.length - 1]])
        })
      })
  )

  it.scopedLive(
    "MD-65, MD-20: without a system text the tools are marked, and marks of the caller's own stand alone",
    () =>
      Effect.gen(function* () {
        const { model, server } = yield* connect(
          "anthropic",
          { id: "claude-opus-5-5" },
          hello.anthropic,
          hello.anthropic
        )
        const cacheControl = { type: "ephemeral" as const, ttl: "1h" as const }
        yield* answer(model, { prompt: "Hi", tools: [tool("read"), tool("grep")] })
        yield* answer(model, {
          prompt: [
            { role: "user", content: [{ type: "text", text: "Hi" }], options: { anthropic: { cacheControl } } },
            { role: "assistant", content: "Hello" },
            { role: "user", content: "And now?" }
          ],
          tools: [tool("read")]
        })
        const [own, theirs] = server.received
        assert.notProperty(at(own?.body, "tools", 0), "cache_control")
        assert.deepStrictEqual(at(own?.body, "tools", 1, "cache_control"), { type: "ephemeral" })
        assert.strictEqual(countMarks(own?.body), 2)
        assert.deepStrictEqual(at(theirs?.body, "messages", 0, "content", 0, "cache_control"), cacheControl)
        assert.strictEqual(countMarks(theirs?.body), 1)
      })
  )
})

const countMarks = (body: unknown): number => JSON.stringify(body).split('"cache_control"').length - 1
