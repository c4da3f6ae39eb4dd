import { OfflineModel } from "@daybook/models"
import { Prompt } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { answer, only, textOf, tool } from "./support/Client.ts"

const question = "Which scripts does package.json define? Read it first."

/** The prompt of the second request: the question, the calls, and what the tool said. */
const after = (asked: string, ...results: ReadonlyArray<{ path: string; result: unknown; isFailure?: boolean }>) => [
  { role: "user" as const, content: asked },
  {
    role: "assistant" as const,
    content: results.map(({ path }, index) => ({
      type: "tool-call" as const,
      id: `call_${index}`,
      name: "read",
      params: { path }
    }))
  },
  {
    role: "tool" as const,
    content: results.map(({ isFailure = false, result }, index) => ({
      type: "tool-result" as const,
      id: `call_${index}`,
      name: "read",
      isFailure,
      result,
      providerExecuted: false
    }))
  }
]
const ask = (prompt: Prompt.RawInput, tools = [tool("read")]) =>
  Effect.flatMap(OfflineModel.make, (model) => answer(model, { prompt, tools }))

describe("the offline model", () => {
  it.effect("MD-41: a prompt that names a file gets it read first", () =>
    Effect.gen(function* () {
      const parts = yield* ask(question)
      const [call] = only(parts, "tool-call")
      assert.deepStrictEqual<unknown>([call?.name, call?.params], ["read", { path: "package.json" }])
      assert.strictEqual(only(parts, "finish")[0]?.reason, "tool-calls")
      assert.strictEqual(textOf(parts), "")
    })
  )

  it.effect("MD-42: several files are read by parallel calls, each once, eight at most", () =>
    Effect.gen(function* () {
      const names = Array.from({ length: 10 }, (_, index) => `f${index}.ts`)
      const parts = yield* ask(`Compare ${names.join(", ")} and f0.ts`)
      const calls = only(parts, "tool-call")
      assert.deepStrictEqual<unknown>(
        calls.map((call) => call.params),
        names.slice(0, 8).map((path) => ({ path }))
      )
      assert.strictEqual(new Set(calls.map((call) => call.id)).size, 8)
    })
  )

  it("MD-41: names are found as people write them", () => {
    const found = (text: string) => OfflineModel.fileNames(text)
    assert.deepStrictEqual(found("see `src/my file.ts`, (README.md) and ./a/b-c.json!"), [
      "src/my file.ts",
      "README.md",
      "./a/b-c.json"
    ])
    assert.deepStrictEqual(found("What is in @src/a.ts?"), ["src/a.ts"])
    assert.deepStrictEqual(found("Read the Makefile and docs/LICENSE."), ["Makefile", "docs/LICENSE"])
    assert.deepStrictEqual(found("e.g. version 3.22 of Node.js at https://a.example/x.html, mail me@a.example"), [])
  })

  for (const [form, result] of [
    ["text", '{\n  "scripts": { "build": "tsc", "test": "vitest" }\n}\n'],
    ["numbered lines", '1: {\n2:   "scripts": { "build": "tsc", "test": "vitest" }\n3: }'],
    ["content parts", [{ type: "text", text: '{"scripts":{"build":"tsc","test":"vitest"}}' }]],
    ["structured output", { content: '{"scripts":{"build":"tsc","test":"vitest"}}', truncated: false }]
  ] as const) {
    it.effect(`MD-43: the scripts of a manifest are listed, given as ${form}`, () =>
      Effect.gen(function* () {
        const text = textOf(yield* ask(after(question, { path: "package.json", result })))
        assert.include(text, "package.json defines 2 scripts:\n- build: tsc\n- test: vitest")
        assert.include(text, "not a language model")
      })
    )
  }

  it.effect("MD-43: other files are counted and begun, failures are said", () =>
    Effect.gen(function* () {
      const text = textOf(
        yield* ask(
          after(
            "Read notes.txt and gone.txt",
            { path: "notes.txt", result: "one\ntwo\nthree\nfour\n" },
            { path: "gone.txt", result: { message: "no such file" }, isFailure: true }
          )
        )
      )
      assert.include(
        text,
        "notes.txt: the read tool returned 4 lines, 19 characters.\nIt begins:\n    one\n    two\n    three"
      )
      assert.include(text, "gone.txt could not be read: no such file")
    })
  )

  it.effect("MD-44: without a file it repeats what was asked, and says what it is and can do", () =>
    Effect.gen(function* () {
      const text = textOf(yield* ask(`What is love? ${"x".repeat(5000)}`))
      assert.include(text, "not a language model")
      assert.include(text, '"What is love?')
      assert.isBelow(text.length, 600)
    })
  )

  it.effect("MD-44: without a read tool it calls nothing", () =>
    Effect.gen(function* () {
      const parts = yield* ask(question, [tool("bash")])
      assert.deepStrictEqual(only(parts, "tool-call"), [])
      assert.include(textOf(parts), 'no "read" tool is offered')
    })
  )

  it.effect("MD-44: a new prompt after an answered one is looked at afresh", () =>
    Effect.gen(function* () {
      const parts = yield* ask([
        ...after(question, { path: "package.json", result: "{}" }),
        { role: "assistant", content: "Done." },
        { role: "user", content: "Now read other.md" }
      ])
      assert.deepStrictEqual<unknown>(
        only(parts, "tool-call").map((call) => call.params),
        [{ path: "other.md" }]
      )
    })
  )

  it.effect("MD-45: the same prompt gets the same answer, and another prompt other call ids", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* ask(question), yield* ask(question))
      const ids = (parts: Effect.Effect.Success<ReturnType<typeof ask>>) =>
        only(parts, "tool-call").map((call) => call.id)
      assert.notDeepEqual(ids(yield* ask(question)), ids(yield* ask(`${question} Please.`)))
    })
  )

  it.effect("MD-46: usage is estimated, and the answer streams in small parts", () =>
    Effect.gen(function* () {
      const parts = yield* ask("Hello")
      const [finish] = only(parts, "finish")
      assert.isAbove(finish?.usage.inputTokens ?? 0, 0)
      assert.strictEqual(finish?.usage.outputTokens, Math.ceil(textOf(parts).length / 4))
      assert.isAbove(only(parts, "text-delta").length, 10)
    })
  )

  it.effect("MD-46: it answers as a whole as it does in a stream", () =>
    Effect.gen(function* () {
      const model = yield* OfflineModel.make
      const whole = yield* model.generateText({ prompt: "Hello" })
      assert.strictEqual(whole.text, textOf(yield* ask("Hello", [])))
    })
  )
})
