import { Tool } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { Models } from "@daybook/models"
import type { RequestSettings } from "../../packages/core/src/domain/Agent.ts"
import { classifyError } from "../../packages/core/src/model/ProviderError.ts"
import { answer, type Asked, at, connect, only, type Part, secret, textOf, tool } from "./support/Client.ts"
import { refusal, type Reply, serve } from "./support/Server.ts"

const flash = { id: "gemini-3.5-flash" }

/** Nameless events without an end mark, as Google sends them. */
const chunks = (...list: ReadonlyArray<Record<string, unknown>>): Reply => ({
  chunks: list.map((chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`)
})
const parts = (...list: ReadonlyArray<unknown>) => ({
  candidates: [{ content: { parts: list, role: "model" }, index: 0 }],
  modelVersion: "gemini-3.5-flash",
  responseId: "resp_1"
})
const end = (finishReason = "STOP", ...list: ReadonlyArray<unknown>) => ({
  candidates: [{ content: { parts: list, role: "model" }, finishReason, index: 0 }],
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 }
})
const hello = chunks(parts({ text: "Hel" }), end("STOP", { text: "lo" }))
const call = (name: string, args: unknown, rest: object = {}, id?: string) => ({
  functionCall: { name, args, ...(id === undefined ? {} : { id }) },
  ...rest
})
const signed = (thoughtSignature: string) => ({ thoughtSignature })

/** The body of a request to a model of this name, with settings. */
const sent = (
  id: string,
  settings: RequestSettings = {},
  asked: Asked = { prompt: "Hi" },
  variants = ["low", "high"]
) =>
  Effect.gen(function* () {
    const server = yield* serve(hello)
    const baseUrl = `${server.url}/v1beta`
    const apiKey = Redacted.make(secret)
    const resolver = yield* Models.make({
      providers: { google: { api: "gemini", apiKey, baseUrl, models: { [id]: { variants } } } }
    })
    const { model } = yield* Effect.orDie(resolver.resolve({ providerID: "google", id }, settings))
    assert.strictEqual(textOf(yield* answer(model, asked)), "Hello")
    return server.received[0]
  })

/** What the runtime gets of an answer. */
interface Facts {
  readonly text: string
  readonly thoughts: string
  readonly calls: ReadonlyArray<unknown>
  readonly reason: ReadonlyArray<string>
}

const facts = (all: ReadonlyArray<Part>): Facts => ({
  text: textOf(all),
  thoughts: all.map((part) => (part.type === "reasoning-delta" ? part.delta : "")).join(""),
  calls: only(all, "tool-call").map(({ name, params }): unknown => [name, params]),
  reason: only(all, "finish").map(({ reason }) => reason)
})

const result = (id: string, value: unknown, isFailure = false) => ({
  type: "tool-result" as const,
  id,
  name: "read",
  isFailure,
  result: value,
  providerExecuted: false
})

describe("Gemini", () => {
  it.scopedLive("MD-110: text streams, and the request carries the conversation, the tools and the key", () =>
    Effect.gen(function* () {
      const { model, server } = yield* connect("gemini", flash, hello)
      const all = yield* answer(model, {
        prompt: [
          { role: "system", content: "Be brief." },
          { role: "system", content: "Today is Sunday." },
          { role: "user", content: "Read both." },
          {
            role: "assistant",
            content: [
              { type: "text", text: "I look." },
              { type: "tool-call", id: "c1", name: "read", params: { path: "a" } },
              { type: "tool-call", id: "c2", name: "read", params: "{broken" }
            ]
          },
          { role: "tool", content: [result("c1", "one\n")] },
          { role: "tool", content: [result("c2", "no such file", true)] },
          { role: "system", content: "The date is new." },
          { role: "user", content: "And now?" }
        ],
        tools: [tool("read")]
      })
      assert.strictEqual(textOf(all), "Hello")
      const [request] = server.received
      assert.strictEqual(request?.path, "/v1/models/gemini-3.5-flash:streamGenerateContent?alt=sse")
      assert.strictEqual(request?.headers["x-goog-api-key"], secret)
      assert.isUndefined(request?.headers.authorization)
      const made = (id: string, args: object) => ({ functionCall: { id, name: "read", args } })
      const read = (id: string, response: object) => ({ functionResponse: { id, name: "read", response } })
      assert.deepStrictEqual(request?.body, {
        contents: [
          { role: "user", parts: [{ text: "Read both." }] },
          {
            role: "model",
            parts: [
              { text: "I look." },
              { thoughtSignature: "skip_thought_signature_validator", ...made("c1", { path: "a" }) },
              made("c2", {})
            ]
          },
          { role: "user", parts: [read("c1", { output: "one\n" }), read("c2", { error: "no such file" })] },
          {
            role: "user",
            parts: [{ text: "<system-update>\nThe date is new.\n</system-update>" }, { text: "And now?" }]
          }
        ],
        systemInstruction: { parts: [{ text: "Be brief." }, { text: "Today is Sunday." }] },
        generationConfig: { thinkingConfig: { includeThoughts: true } },
        tools: [
          {
            functionDeclarations: [
              {
                name: "read",
                description: "The read tool",
                parametersJsonSchema: {
                  type: "object",
                  properties: { path: { type: "string" } },
                  required: ["path"],
                  additionalProperties: false
                }
              }
            ]
          }
        ],
        toolConfig: { functionCallingConfig: { mode: "AUTO" } }
      })
    })
  )

  it.scopedLive("MD-110: pictures and documents are sent as bytes, or as an address", () =>
    Effect.gen(function* () {
      const png = new Uint8Array(
        Buffer.from(
          "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
          "base64"
        )
      )
      const request = yield* sent(
        "gemini-3.5-flash",
        {},
        {
          prompt: [
            {
              role: "user",
              content: [
                { type: "file", mediaType: "image/png", data: png },
                { type: "file", mediaType: "application/pdf", data: new URL("https://example.com/a.pdf") }
              ]
            }
          ]
        }
      )
      assert.deepStrictEqual(at(request?.body, "contents", 0, "parts"), [
        { inlineData: { mimeType: "image/png", data: Buffer.from(png).toString("base64") } },
        { fileData: { mimeType: "application/pdf", fileUri: "https://example.com/a.pdf" } }
      ])
    })
  )

  it.scopedLive("MD-47: settings and the schema of an answer are sent under Gemini's names", () =>
    Effect.gen(function* () {
      const settings = { maxOutputTokens: 123, temperature: 0.5, topP: 0.9, topK: 40, stop: ["END"], effort: "low" }
      const request = yield* sent("gemini-3.5-flash", { ...settings, body: { safetySettings: [] } })
      assert.deepStrictEqual(at(request?.body, "generationConfig"), {
        maxOutputTokens: 123,
        temperature: 0.5,
        topP: 0.9,
        topK: 40,
        stopSequences: ["END"],
        thinkingConfig: { includeThoughts: true, thinkingLevel: "low" }
      })
      assert.deepStrictEqual(at(request?.body, "safetySettings"), [])
    })
  )

  it.scopedLive("MD-110: an answer that must be JSON is asked for with its schema", () =>
    Effect.gen(function* () {
      const { model, server } = yield* connect("gemini", flash, chunks(end("STOP", { text: '{"n":1}' })))
      const made = yield* model.generateObject({ prompt: "go", schema: Schema.Struct({ n: Schema.Number }) })
      assert.deepStrictEqual(made.value, { n: 1 })
      const config = at(server.received[0]?.body, "generationConfig")
      assert.strictEqual(at(config, "responseMimeType"), "application/json")
      assert.deepStrictEqual(at(config, "responseJsonSchema", "required"), ["n"])
      assert.isUndefined(at(config, "responseJsonSchema", "$schema"))
    })
  )

  const choices = [
    ["auto", { mode: "AUTO" }],
    ["none", { mode: "NONE" }],
    ["required", { mode: "ANY" }],
    [{ tool: "read" }, { mode: "ANY", allowedFunctionNames: ["read"] }]
  ] as const
  for (const [toolChoice, expected] of choices) {
    it.scopedLive(`MD-55: Gemini is sent the choice ${JSON.stringify(toolChoice)}`, () =>
      Effect.gen(function* () {
        const request = yield* sent("gemini-3.5-flash", {}, { prompt: "Hi", tools: [tool("read")], toolChoice })
        assert.deepStrictEqual(at(request?.body, "toolConfig", "functionCallingConfig"), expected)
      })
    )
  }

  it.scopedLive("MD-28: a hosted tool is offered beside the functions", () =>
    Effect.gen(function* () {
      const search = Tool.providerDefined({
        id: "google.google_search",
        toolkitName: "GoogleSearch",
        providerName: "google_search",
        args: {},
        success: Schema.Unknown
      })({})
      const request = yield* sent("gemini-3.5-flash", {}, { prompt: "Hi", tools: [tool("read"), search] })
      assert.deepStrictEqual(at(request?.body, "tools", 1), { googleSearch: {} })
    })
  )

  const efforts = [
    ["gemini-3.5-flash", "high", { includeThoughts: true, thinkingLevel: "high" }],
    ["gemini-3.5-flash", "max", { includeThoughts: true, thinkingLevel: "high" }],
    ["gemini-3.5-flash", "none", { includeThoughts: true, thinkingLevel: "minimal" }],
    ["gemini-3.1-pro-preview", "minimal", { includeThoughts: true, thinkingLevel: "low" }],
    ["gemini-flash-latest", "medium", { includeThoughts: true, thinkingLevel: "medium" }],
    ["gemini-2.5-flash", "medium", { includeThoughts: true, thinkingBudget: 8192 }],
    ["gemini-2.5-flash", "none", { includeThoughts: true, thinkingBudget: 0 }],
    ["gemini-2.5-pro", "none", { includeThoughts: true, thinkingBudget: 128 }],
    ["gemini-2.5-flash", undefined, { includeThoughts: true }],
    ["gemini-2.0-flash", undefined, undefined]
  ] as const
  for (const [id, effort, expected] of efforts) {
    it.scopedLive(`MD-112: ${id} takes the effort ${String(effort)} in its own form`, () =>
      Effect.gen(function* () {
        const settings = effort === undefined ? {} : { effort }
        const request = yield* sent(id, settings, { prompt: "Hi" }, effort === undefined ? [] : [effort])
        assert.deepStrictEqual(at(request?.body, "generationConfig", "thinkingConfig"), expected)
      })
    )
  }

  it.scopedLive(
    "MD-111: signatures of text, thinking and calls go back on their parts; unsigned thinking stays out",
    () =>
      Effect.gen(function* () {
        const { model, server } = yield* connect(
          "gemini",
          flash,
          chunks(
            parts({ text: "Let me see.", thought: true }),
            parts({ text: "Both, then.", thought: true, ...signed("S0") }),
            parts({ text: "I look" }, { text: " at both.", ...signed("S1") }),
            parts(call("read", { path: "a" }, signed("S2")), call("read", { path: "b" })),
            end("STOP", { text: "" })
          ),
          hello
        )
        const all = yield* answer(model, { prompt: "go", tools: [tool("read")] })
        const noted = (type: "text-end" | "reasoning-end" | "tool-call") =>
          all.flatMap((part): ReadonlyArray<unknown> => (part.type === type ? [part.metadata] : []))
        assert.deepStrictEqual(noted("reasoning-end"), [{ google: { thought: true, thoughtSignature: "S0" } }])
        const [one, two] = only(all, "tool-call")
        yield* answer(model, {
          prompt: [
            { role: "user", content: "go" },
            {
              role: "assistant",
              content: [
                { type: "reasoning", text: "Let me see.", options: { google: { thought: true } } },
                { type: "reasoning", text: "Both, then.", options: { google: { thoughtSignature: "S0" } } },
                { type: "text", text: "I look at both.", options: only(all, "text-end")[0]?.metadata ?? {} },
                { type: "tool-call", id: "c1", name: "read", params: { path: "a" }, options: one?.metadata ?? {} },
                { type: "tool-call", id: "c2", name: "read", params: { path: "b" }, options: two?.metadata ?? {} }
              ]
            },
            { role: "tool", content: [result("c1", "x"), result("c2", "y")] }
          ]
        })
        assert.deepStrictEqual(at(server.received[1]?.body, "contents", 1, "parts"), [
          { text: "Both, then.", thought: true, thoughtSignature: "S0" },
          { text: "I look at both.", thoughtSignature: "S1" },
          { functionCall: { id: "c1", name: "read", args: { path: "a" } }, thoughtSignature: "S2" },
          { functionCall: { id: "c2", name: "read", args: { path: "b" } } }
        ])
      })
  )

  it.scopedLive("MD-111: a model that checks no signatures gets no placeholder", () =>
    Effect.gen(function* () {
      const request = yield* sent(
        "gemini-2.5-flash",
        {},
        {
          prompt: [
            { role: "user", content: "go" },
            { role: "assistant", content: [{ type: "tool-call", id: "c1", name: "read", params: {} }] },
            { role: "tool", content: [result("c1", "x")] }
          ]
        }
      )
      assert.deepStrictEqual(at(request?.body, "contents", 1, "parts"), [
        { functionCall: { id: "c1", name: "read", args: {} } }
      ])
    })
  )

  it.scopedLive("MD-91: calls keep their ids, and one without gets one", () =>
    Effect.gen(function* () {
      const { model } = yield* connect(
        "gemini",
        flash,
        chunks(end("STOP", call("read", { path: "a" }, {}, "g1"), call("read", { path: "b" })))
      )
      const [one, two] = only(yield* answer(model, { prompt: "go", tools: [tool("read")] }), "tool-call")
      assert.strictEqual(one?.id, "g1")
      assert.match(String(two?.id), /^\w{8,64}$/)
    })
  )

  const plain = { text: "Hello", thoughts: "", calls: [], reason: ["stop"] }
  const called = { ...plain, text: "", calls: [["read", { path: "a" }]], reason: ["tool-calls"] }
  const streams: ReadonlyArray<readonly [string, Reply, Facts]> = [
    [
      "thinking before the text",
      chunks(parts({ text: "Hm.", thought: true }), end("STOP", { text: "Hello" })),
      { ...plain, thoughts: "Hm." }
    ],
    ["a reason of the end in each event", chunks(end("STOP", { text: "Hel" }), end("STOP", { text: "lo" })), plain],
    [
      "a signature in an empty part after the text",
      chunks(parts({ text: "Hello" }), end("STOP", { text: "", ...signed("S") })),
      plain
    ],
    [
      "an empty candidate with the reason",
      chunks(parts({ text: "Hello" }), { candidates: [{ finishReason: "STOP" }] }),
      plain
    ],
    [
      "parts of other kinds",
      chunks(end("STOP", { executableCode: { code: "1" } }, { later: 1 }, { text: "Hello" }, { inlineData: {} })),
      plain
    ],
    [
      "a second candidate",
      chunks({ candidates: [{ index: 1, content: { parts: [{ text: "No" }] } }] }, end("STOP", { text: "Hello" })),
      plain
    ],
    ["a call whose reason is the stop", chunks(end("STOP", call("read", { path: "a" }))), called],
    [
      "a call that is sent twice",
      chunks(parts(call("read", { path: "a" }, {}, "g1")), end("STOP", call("read", { path: "a" }, {}, "g1"))),
      called
    ],
    [
      "a call without arguments",
      chunks(end("STOP", { functionCall: { name: "read" } })),
      { ...called, calls: [["read", {}]] }
    ],
    [
      "fields in snake case",
      chunks(end("STOP", { function_call: { name: "read", args: { path: "a" } }, thought_signature: "S" })),
      called
    ],
    ["the output limit", chunks(end("MAX_TOKENS", { text: "Hello" })), { ...plain, reason: ["length"] }],
    ["a filtered answer", chunks(parts({ text: "Hello" }), end("SAFETY")), { ...plain, reason: ["content-filter"] }],
    ["recited text", chunks(parts({ text: "Hello" }), end("RECITATION")), { ...plain, reason: ["content-filter"] }],
    [
      "a blocked prompt",
      chunks({ promptFeedback: { blockReason: "PROHIBITED_CONTENT" } }),
      { ...plain, text: "", reason: ["content-filter"] }
    ],
    ["another reason", chunks(parts({ text: "Hello" }), end("LATER")), { ...plain, reason: ["other"] }],
    ["an answer in one body", { chunks: [JSON.stringify(end("STOP", { text: "Hello" }))] }, plain],
    [
      "events in one list",
      { chunks: [JSON.stringify([parts({ text: "Hel" }), end("STOP", { text: "lo" })], null, 1)] },
      plain
    ]
  ]
  for (const [name, reply, expected] of streams) {
    it.scopedLive(`MD-113: reads ${name}`, () =>
      Effect.gen(function* () {
        const { model } = yield* connect("gemini", flash, reply)
        assert.deepStrictEqual(facts(yield* answer(model, { prompt: "go", tools: [tool("read")] })), expected)
      })
    )
  }

  it.scopedLive("MD-113: a text after a signature is another text", () =>
    Effect.gen(function* () {
      const said = parts({ text: "One.", ...signed("S1") }, { text: "Two.", ...signed("S2") })
      const { model } = yield* connect("gemini", flash, chunks(said, end()))
      const all = yield* answer(model, { prompt: "go" })
      assert.deepStrictEqual(
        only(all, "text-end").map((part): unknown => part.metadata),
        [{ google: { thoughtSignature: "S1" } }, { google: { thoughtSignature: "S2" } }]
      )
    })
  )

  it.scopedLive("MD-115: usage counts tool prompts as input and thinking as output", () =>
    Effect.gen(function* () {
      const usageMetadata = {
        promptTokenCount: 100,
        cachedContentTokenCount: 60,
        toolUsePromptTokenCount: 7,
        candidatesTokenCount: 20,
        thoughtsTokenCount: 30
      }
      const early = { ...parts({ text: "Hel" }), usageMetadata: { promptTokenCount: 100 } }
      const { model } = yield* connect(
        "gemini",
        flash,
        chunks(early, { ...end("STOP", { text: "lo" }), usageMetadata })
      )
      const [finish] = only(yield* answer(model, { prompt: "go" }), "finish")
      assert.deepInclude(finish?.usage, {
        inputTokens: 107,
        outputTokens: 50,
        totalTokens: 157,
        reasoningTokens: 30,
        cachedInputTokens: 60
      })
    })
  )

  for (const reason of ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"]) {
    it.scopedLive(`MD-114: ${reason} is an error that may pass`, () =>
      Effect.gen(function* () {
        const { model } = yield* connect(
          "gemini",
          flash,
          chunks({ candidates: [{ finishReason: reason, finishMessage: "print(x" }] })
        )
        const [part] = only(yield* answer(model, { prompt: "go" }), "error")
        const failure = classifyError(part?.error)
        assert.isTrue(failure.retryable)
        assert.include(failure.message, reason)
        assert.notInclude(failure.message, "print(x")
      })
    )
  }

  const failures = [
    [
      "an error in a list",
      refusal(429, [{ error: { code: 429, message: "Resource has been exhausted", status: "RESOURCE_EXHAUSTED" } }]),
      { retryable: true, statusCode: 429 },
      "Resource has been exhausted"
    ],
    [
      "an overflow",
      refusal(400, {
        error: {
          code: 400,
          message: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
        }
      }),
      { retryable: false, overflow: true },
      "exceeds the maximum"
    ],
    ["an end without a reason", chunks(parts({ text: "Hel" })), { retryable: true }, "before it was complete"]
  ] as const
  for (const [name, reply, expected, message] of failures) {
    it.scopedLive(`MD-116: ${name} is a typed error that says what it means`, () =>
      Effect.gen(function* () {
        const { model } = yield* connect("gemini", flash, reply)
        const failure = classifyError(yield* Effect.flip(answer(model, { prompt: "go" })))
        assert.deepInclude(failure, expected)
        assert.include(failure.message, message)
        assert.notInclude(failure.message, "[{")
      })
    )
  }

  it.scopedLive("MD-17: an error within the answer is an error part, also in a list", () =>
    Effect.gen(function* () {
      const error = { error: { code: 503, message: "The model is overloaded.", status: "UNAVAILABLE" } }
      for (const reply of [chunks(parts({ text: "Hel" }), error), { chunks: [JSON.stringify([error])] }]) {
        const { model } = yield* connect("gemini", flash, reply)
        const [part] = only(yield* answer(model, { prompt: "go" }), "error")
        assert.deepInclude(classifyError(part?.error), { retryable: true, statusCode: 503 })
      }
    })
  )
})
