/** What the table of servers makes of a request: the writers' side of each profile, over real HTTP. */
import type { Prompt } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Models } from "@daybook/models"
import type { RequestSettings } from "../../packages/core/src/domain/Agent.ts"
import { type Api, profileOf, profiles } from "../../packages/models/src/Profiles.ts"
import { modelServers } from "../support/ModelServers.ts"
import { hello } from "./support/Answers.ts"
import { answer, type Asked, at, connect, tool } from "./support/Client.ts"
import { chunks, type Reply, serve } from "./support/Server.ts"

const compatible = "openai-compatible"

/** The body of the last request to a server of this profile; `replies` come first. */
const sent = (
  profile: string,
  model: string,
  asked: Asked,
  { replies = [], settings = {} }: { readonly replies?: ReadonlyArray<Reply>; readonly settings?: RequestSettings } = {}
) =>
  Effect.gen(function* () {
    const server = yield* serve(...replies, hello[compatible])
    const resolver = yield* Models.make({ providers: { [profile]: { api: compatible, baseUrl: server.url } } })
    const resolved = yield* Effect.orDie(resolver.resolve({ providerID: profile, id: model }, settings))
    yield* answer(resolved.model, asked)
    return server.received.at(-1)?.body
  })

const user = (text: string) => ({ role: "user" as const, content: text })

/** A call with its result, in the library's form; `options` are what a reader noted. */
const called = (
  id: string,
  options: Prompt.ProviderOptions = {},
  more: ReadonlyArray<Prompt.AssistantMessagePartEncoded> = []
) => [
  {
    role: "assistant" as const,
    content: [...more, { type: "tool-call" as const, id, name: "look", params: { path: id }, options }]
  },
  {
    role: "tool" as const,
    content: [
      { type: "tool-result" as const, id, name: "look", isFailure: false, result: "seen", providerExecuted: false }
    ]
  }
]

const thought = (text: string, field?: string): Prompt.AssistantMessagePartEncoded => ({
  type: "reasoning",
  text,
  ...(field === undefined ? {} : { options: { chat: { field } } })
})

describe("the table of servers", () => {
  it("MD-120: every server has a name, and those with a known address are found by it", () => {
    for (const [name, profile] of Object.entries(profiles)) {
      assert.match(name, /^[a-z0-9][a-z0-9.-]*$/)
      assert.notStrictEqual(profile.name, "")
      if (profile.baseUrl === undefined) continue
      const found = profileOf({ providerID: "mine", api: profile.api, baseUrl: profile.baseUrl, model: "m" })
      assert.strictEqual(found.name, profile.name)
    }
  })

  it("MD-120: every server has its rules tried: a server of tests, or those of another one", () => {
    const tried = new Set(modelServers.map(({ profile }) => profile))
    const alike = ["baseten", "github-models", "kimi-coding", "meta", "nvidia", "openai-compatible", "opencode"]
    const gateways = ["vercel", "xiaomi"]
    assert.deepStrictEqual(
      Object.keys(profiles).filter((name) => !tried.has(name) && ![...alike, ...gateways].includes(name)),
      []
    )
  })

  const found = (asked: {
    readonly api?: Api
    readonly baseUrl?: string
    readonly providerID?: string
    readonly like?: string
  }) => profileOf({ providerID: "mine", api: compatible, model: "m", ...asked }).name

  it("MD-120: the host's word comes before the address, the address before the provider's name", () => {
    const baseUrl = "https://api.deepseek.com/beta"
    assert.strictEqual(found({ baseUrl }), "DeepSeek")
    assert.strictEqual(found({ baseUrl, providerID: compatible }), "DeepSeek")
    assert.strictEqual(found({ baseUrl, like: "vllm" }), "vLLM")
    assert.strictEqual(found({ providerID: "mistral" }), "Mistral")
    assert.strictEqual(found({ providerID: "mistral", api: "openai" }), "OpenAI")
    assert.strictEqual(found({ baseUrl: "http://127.0.0.1:11434/v1" }), "Ollama")
    assert.strictEqual(
      found({ baseUrl: "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1" }),
      "Amazon Bedrock"
    )
    assert.strictEqual(found({ baseUrl: "https://mine.elb.amazonaws.com/v1" }), "OpenAI-compatible server")
    assert.strictEqual(found({ baseUrl: "https://house.openai.azure.com/openai/v1", api: "openai" }), "Azure OpenAI")
    assert.strictEqual(found({ baseUrl: "https://notapi.deepseek.com.example/v1" }), "OpenAI-compatible server")
  })

  it("MD-120: the rules of a model's family apply where any model runs, and nowhere else", () => {
    const thinking = (providerID: string, model: string) => profileOf({ providerID, api: compatible, model }).thinking
    assert.isTrue(thinking("vllm", "deepseek-ai/DeepSeek-V4").required)
    assert.isTrue(thinking("openrouter", "moonshotai/kimi-k2.6").required)
    assert.isFalse(thinking("groq", "deepseek-r1-distill-llama-70b").required)
    assert.isTrue(profileOf({ providerID: "vllm", api: compatible, model: "Devstral-2" }).callIds.exact)
    const own = { callIds: { set: "word", length: 5, exact: false } } as const
    const fields = profileOf({ providerID: "vllm", api: compatible, model: "Devstral-2", fields: own })
    assert.deepStrictEqual(fields.callIds, own.callIds)
  })
})

describe("thinking in chat completions", () => {
  const asked = (...parts: ReadonlyArray<Prompt.AssistantMessagePartEncoded>): Asked => ({
    prompt: [
      user("go"),
      { role: "assistant", content: [thought("Hm."), { type: "text", text: "Hello." }] },
      user("on"),
      ...called("call_1", {}, parts)
    ],
    tools: [tool("look")]
  })

  it.scopedLive.each([
    ["deepseek", "deepseek-v4-pro", { reasoning_content: "Hm." }, { reasoning_content: "Look!", content: "" }],
    ["moonshot", "kimi-k2.6", {}, { reasoning_content: "Look!", content: "" }],
    ["cerebras", "gpt-oss-120b", {}, { reasoning: "Look!", content: null }],
    [
      "mistral",
      "mistral-medium-3-5",
      {},
      { content: [{ type: "thinking", thinking: [{ type: "text", text: "Look!" }] }] }
    ],
    ["minimax", "MiniMax-M3", {}, { reasoning_details: [{ type: "reasoning.text", text: "Look!" }] }],
    ["openai-chat", "gpt-6.1-terra", {}, { content: null }],
    ["vllm", "zai-org/GLM-5.1", {}, { reasoning_content: "Look!" }]
  ] as const)(
    "MD-121: goes back in the form and at the time that the server wants: %s",
    ([profile, model, plain, calling]) =>
      Effect.gen(function* () {
        const messages = at(yield* sent(profile, model, asked(thought("Look!"))), "messages")
        for (const [name, value] of Object.entries(plain)) assert.deepStrictEqual(at(messages, 1, name), value)
        for (const [name, value] of Object.entries(calling)) assert.deepStrictEqual(at(messages, 3, name), value)
        if (profile === "openai-chat") assert.notInclude(JSON.stringify(messages), "Look!")
      })
  )

  it.scopedLive("MD-121: goes back in the field in which it came, where that is a field", () =>
    Effect.gen(function* () {
      const messages = at(yield* sent("vllm", "m", asked(thought("Look!", "reasoning"))), "messages")
      assert.deepInclude(at(messages, 3), { reasoning: "Look!" })
      assert.notProperty(at(messages, 3), "reasoning_content")
    })
  )

  it.scopedLive("MD-121: names the tools in calls of another model, where the server rejects calls without it", () =>
    Effect.gen(function* () {
      const messages = at(yield* sent("deepseek", "deepseek-v4-pro", asked()), "messages")
      assert.deepInclude(at(messages, 3), { reasoning_content: "I call look." })
    })
  )

  const details = (
    first: ReadonlyArray<Record<string, unknown>>,
    last: ReadonlyArray<Record<string, unknown>>
  ): Reply =>
    chunks(
      ...first.map((one) => ({
        choices: [{ index: 0, delta: { reasoning: one["text"] ?? "", reasoning_details: [one] } }]
      })),
      {
        choices: [
          {
            index: 0,
            delta: { tool_calls: [{ index: 0, id: "call_1", function: { name: "look", arguments: '{"path":"a"}' } }] }
          }
        ]
      },
      { choices: [{ index: 0, delta: { reasoning_details: last }, finish_reason: "tool_calls" }] }
    )

  const signed = {
    type: "reasoning.text",
    text: "Let me look.",
    signature: "SIG",
    format: "anthropic-claude-v1",
    index: 0
  }
  const encrypted = { type: "reasoning.encrypted", data: "ENC", id: "call_1", format: "google-gemini-v1", index: 0 }

  it.scopedLive.each([
    [
      "a signature after its text",
      [
        { type: "reasoning.text", text: "Let me ", format: "anthropic-claude-v1", index: 0 },
        { type: "reasoning.text", text: "look.", format: "anthropic-claude-v1", index: 0 },
        { type: "reasoning.text", text: null, signature: "SIG", index: 0 }
      ],
      [],
      [signed]
    ],
    [
      "encrypted thinking of a call, without the text that goes back beside it",
      [{ type: "reasoning.text", text: "thinking", format: "google-gemini-v1", index: 0 }],
      [encrypted],
      [encrypted]
    ]
  ] as const)("MD-122: details of thinking go back as they came: %s", ([, first, last, expected]) =>
    Effect.gen(function* () {
      const server = yield* serve(details(first, last), hello[compatible])
      const resolver = yield* Models.make({ providers: { openrouter: { api: compatible, baseUrl: server.url } } })
      const { model } = yield* Effect.orDie(resolver.resolve({ providerID: "openrouter", id: "m" }))
      const parts = yield* answer(model, { prompt: "go", tools: [tool("look")] })
      const noted = parts.flatMap((part) => (part.type === "reasoning-end" ? [part.metadata] : []))
      const words = parts.flatMap((part) => (part.type === "reasoning-delta" ? [part.delta] : [])).join("")
      const onCall = parts.flatMap((part) => (part.type === "tool-call" ? [part.metadata] : []))
      yield* answer(model, {
        prompt: [
          user("go"),
          ...called("call_1", onCall[0], [{ type: "reasoning", text: words, options: noted[0] ?? {} }])
        ],
        tools: [tool("look")]
      })
      assert.deepStrictEqual(at(server.received[1]?.body, "messages", 1, "reasoning_details"), expected)
      assert.strictEqual(at(server.received[1]?.body, "messages", 1, "reasoning"), words)
    })
  )

  const blocks = (last: object) => [
    { reasoning_content: "Let ", thinking_blocks: [{ type: "thinking", thinking: "Let ", signature: null }] },
    { reasoning_content: "me.", thinking_blocks: [{ type: "thinking", thinking: "me." }] },
    last
  ]

  it.scopedLive.each([
    [
      "signed blocks (LiteLLM)",
      blocks({ thinking_blocks: [{ type: "thinking", thinking: "", signature: "SIG" }] }),
      { thinking_blocks: [{ type: "thinking", thinking: "Let me.", signature: "SIG" }] }
    ],
    ["blocks without a signature do not", blocks({}), { thinking_blocks: undefined }],
    [
      "an opaque text (Copilot)",
      [{ reasoning_text: "Let me." }, { reasoning_opaque: "OPAQUE" }],
      { reasoning_opaque: "OPAQUE", reasoning_text: "Let me." }
    ]
  ] as const)("MD-788: what is beside thinking goes back: %s", ([, deltas, expected]) =>
    Effect.gen(function* () {
      const made = { tool_calls: [{ index: 0, id: "call_1", function: { name: "look", arguments: '{"path":"a"}' } }] }
      const choices = [...deltas, made].map((delta) => ({ choices: [{ index: 0, delta }] }))
      const end = { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] }
      const { model, server } = yield* connect(compatible, { id: "m" }, chunks(...choices, end), hello[compatible])
      const parts = yield* answer(model, { prompt: "go", tools: [tool("look")] })
      const noted = parts.flatMap((part) => (part.type === "reasoning-end" ? [part.metadata] : []))
      const thinking = { type: "reasoning" as const, text: "Let me.", options: noted[0] ?? {} }
      yield* answer(model, { prompt: [user("go"), ...called("call_1", {}, [thinking])], tools: [tool("look")] })
      const sent = at(server.received[1]?.body, "messages", 1)
      for (const [name, value] of Object.entries(expected)) assert.deepStrictEqual(at(sent, name), value)
    })
  )
})

describe("thinking behind Anthropic's protocol", () => {
  const unsigned = { type: "reasoning" as const, text: "Let me." }
  it.scopedLive.each([
    ["deepseek-v4-pro", { type: "thinking", thinking: "Let me." }, { type: "thinking", thinking: "I call look." }],
    ["kimi-k3.1-pro", { type: "thinking", thinking: "Let me." }, { type: "thinking", thinking: "I call look." }],
    ["glm-5.3", { type: "tool_use" }, { type: "tool_use" }]
  ] as const)("MD-794: %s gets it back as it came, if it wants it", ([id, thought, other]) =>
    Effect.gen(function* () {
      const { model, server } = yield* connect("anthropic", { id }, hello.anthropic)
      const prompt = [user("go"), ...called("call_1", {}, [unsigned]), ...called("call_2")]
      yield* answer(model, { prompt, tools: [tool("look")] })
      const body = server.received[0]?.body
      assert.deepInclude(at(body, "messages", 1, "content", 0), thought)
      assert.deepInclude(at(body, "messages", 3, "content", 0), other)
    })
  )
})

describe("fields of requests", () => {
  it.scopedLive.each([
    ["openrouter", "high", { reasoning: { effort: "high" } }],
    ["deepseek", "high", { thinking: { type: "enabled" }, reasoning_effort: "high" }],
    ["deepseek", "none", { thinking: { type: "disabled" } }],
    ["moonshot", "none", { thinking: { type: "disabled" } }],
    ["dashscope", "low", { enable_thinking: true }],
    ["groq", "low", { reasoning_effort: "low" }],
    ["vllm", "none", { chat_template_kwargs: { enable_thinking: false } }],
    ["sglang", "high", { chat_template_kwargs: { enable_thinking: true, reasoning_effort: "high" } }],
    ["tgi", "high", {}]
  ] as const)("MD-123: a level of effort has the server's form: %s, %s", ([profile, effort, expected]) =>
    Effect.gen(function* () {
      const body = yield* sent(profile, "m", { prompt: "go" }, { settings: { effort } })
      const names = ["reasoning", "thinking", "reasoning_effort", "enable_thinking", "chat_template_kwargs"]
      const fields = Object.entries(body ?? {}).filter(([name]) => names.includes(name))
      assert.deepStrictEqual(Object.fromEntries(fields), expected)
    })
  )

  it.scopedLive.each([
    ["deepseek", "required", undefined],
    ["deepseek", "auto", undefined],
    ["deepseek", "none", "none"],
    ["groq", "required", "required"]
  ] as const)(
    "MD-124: a tool choice is sent only to a server that takes one: %s, %s",
    ([profile, toolChoice, expected]) =>
      Effect.gen(function* () {
        const body = yield* sent(profile, "m", { prompt: "go", tools: [tool("look")], toolChoice })
        assert.strictEqual(at(body, "tool_choice"), expected)
      })
  )

  const properties = {
    word: { type: "string", description: "A word." },
    view: { enum: ["text", "raw"] },
    level: { enum: [1, "auto"] },
    choice: { type: "string", oneOf: [{ minLength: 2 }, { const: "a" }] },
    either: { type: "object", properties: { a: { type: "string" } }, anyOf: [{ required: ["a"] }] },
    referred: { $ref: "#/$defs/A", description: "Conflicts." },
    inherited: { allOf: [{ $ref: "#/$defs/A" }], default: {} },
    untyped: { items: { pattern: "^a" } }
  }
  const typed = {
    ...properties,
    view: { type: "string", enum: ["text", "raw"] },
    level: {
      anyOf: [
        { type: "integer", enum: [1] },
        { type: "string", enum: ["auto"] }
      ]
    },
    choice: {
      anyOf: [
        { type: "string", minLength: 2 },
        { type: "string", const: "a" }
      ]
    },
    either: { type: "object", properties: { a: { type: "string" } } },
    referred: { $ref: "#/$defs/A" },
    inherited: { $ref: "#/$defs/A" },
    untyped: { type: "array", items: { type: "string", pattern: "^a" } }
  }
  it.scopedLive.each([
    ["moonshot", "kimi-k3.1-pro", typed],
    ["openrouter", "moonshotai/kimi-k3", typed],
    ["openrouter", "z-ai/glm-5.3", properties]
  ] as const)("MD-791: each schema of a tool has a type, where it is needed: %s, %s", ([profile, model, expected]) =>
    Effect.gen(function* () {
      const body = yield* sent(profile, model, { prompt: "go", tools: [tool("look", properties)] })
      assert.deepStrictEqual(at(body, "tools", 0, "function", "parameters", "properties"), expected)
    })
  )

  it.scopedLive("MD-791: each schema has a type for Kimi behind Anthropic's protocol too", () =>
    Effect.gen(function* () {
      const { model, server } = yield* connect("anthropic", { id: "kimi-k3.1-pro" }, hello.anthropic)
      yield* answer(model, { prompt: "go", tools: [tool("look", properties)] })
      assert.deepStrictEqual(at(server.received[0]?.body, "tools", 0, "input_schema", "properties"), typed)
    })
  )

  it.scopedLive("MD-791: a schema that allows anything is a choice of all types", () =>
    Effect.gen(function* () {
      const body = yield* sent("moonshot", "m", { prompt: "go", tools: [tool("look", { any: {} })] })
      const choice = at(body, "tools", 0, "function", "parameters", "properties", "any", "anyOf")
      const types = ["string", "number", "boolean", "object", "null", "array"]
      assert.deepStrictEqual(
        types.map((_, nth) => at(choice, nth, "type")),
        types
      )
    })
  )

  it.scopedLive("MD-125: Claude behind a gateway gets marks at the system prompt and the last messages", () =>
    Effect.gen(function* () {
      const prompt = [{ role: "system" as const, content: "Be brief." }, user("go"), ...called("call_1")]
      const mark = { cache_control: { type: "ephemeral" } }
      const claude = at(
        yield* sent("openrouter", "anthropic/claude-sonnet-5", { prompt, tools: [tool("look")] }),
        "messages"
      )
      assert.deepStrictEqual(at(claude, 0, "content"), [{ type: "text", text: "Be brief.", ...mark }])
      assert.deepStrictEqual(at(claude, 1, "content"), [{ type: "text", text: "go", ...mark }])
      assert.deepInclude(at(claude, 3), { content: "seen", ...mark })
      const other = yield* sent("openrouter", "openai/gpt-6.1-terra", { prompt, tools: [tool("look")] })
      assert.notInclude(JSON.stringify(other), "cache_control")
    })
  )

  it.scopedLive("MD-126: Gemini's compatible endpoint gets a signature for the first call of another model", () =>
    Effect.gen(function* () {
      const own = { chat: { extra_content: { google: { thought_signature: "OWN" } } } }
      const prompt = [user("go"), ...called("call_1"), ...called("call_2", own)]
      const body = yield* sent("google-openai", "gemini-3.1-pro-preview", { prompt, tools: [tool("look")] })
      const signature = (index: number) =>
        at(body, "messages", index, "tool_calls", 0, "extra_content", "google", "thought_signature")
      assert.deepStrictEqual([signature(1), signature(3)], ["skip_thought_signature_validator", "OWN"])
    })
  )
})
