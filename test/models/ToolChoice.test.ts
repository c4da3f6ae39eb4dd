import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { RequestSettings } from "../../packages/core/src/domain/Agent.ts"
import { type Api, type Asked, at, requestsWith, tool } from "./support/Client.ts"

const models = { anthropic: "claude-sonnet-4-6", openai: "gpt-6.1-terra", "openai-compatible": "qwen3:8b" } as const
const apis = Object.keys(models) as ReadonlyArray<Api>
const tools = [tool("read"), tool("bash"), tool("web_search")]

const namesOf = (body: unknown): ReadonlyArray<unknown> => {
  const list = at(body, "tools")
  return Array.isArray(list) ? list.map((one) => at(one, "name") ?? at(one, "function", "name")) : []
}

const forms: Readonly<Record<Api, (choice: NonNullable<Asked["toolChoice"]>) => unknown>> = {
  anthropic: (choice) =>
    typeof choice === "object" ? { type: "tool", name: choice.tool } : { type: choice === "required" ? "any" : choice },
  openai: (choice) => (typeof choice === "object" ? { type: "function", name: choice.tool } : choice),
  "openai-compatible": (choice) =>
    typeof choice === "object" ? { type: "function", function: { name: choice.tool } } : choice
}

describe("tool choice", () => {
  for (const api of apis) {
    for (const choice of ["auto", "none", "required", { tool: "read" }, { tool: "bash" }] as const) {
      it.scopedLive(`MD-55: ${api} is sent the choice ${JSON.stringify(choice)} with all tools`, () =>
        Effect.gen(function* () {
          const asked = { prompt: "Hi", tools, toolChoice: choice }
          const [request] = yield* requestsWith(api, { id: models[api] }, [undefined], asked)
          assert.deepStrictEqual(at(request?.body, "tool_choice"), forms[api](choice))
          assert.deepStrictEqual(namesOf(request?.body), ["read", "bash", "web_search"])
        })
      )
    }
  }

  for (const [model, settings, expected] of [
    ["claude-opus-5-5", {}, "auto"],
    ["claude-sonnet-5", {}, "auto"],
    ["claude-sonnet-5", { body: { thinking: { type: "disabled" } } }, "tool"],
    ["claude-sonnet-4-6", { body: { thinking: { type: "adaptive" } } }, "auto"],
    ["claude-sonnet-4-6", { body: { thinking: { type: "enabled", budget_tokens: 2048 } } }, "auto"],
    ["claude-opus-4-6", {}, "tool"]
  ] as ReadonlyArray<readonly [string, RequestSettings, string]>) {
    it.scopedLive(`MD-55: a forced tool is "${expected}" for ${model} with ${JSON.stringify(settings)}`, () =>
      Effect.gen(function* () {
        const asked = { prompt: "Hi", tools, toolChoice: { tool: "read" } }
        const [request] = yield* requestsWith("anthropic", { id: model }, [settings], asked)
        const name = expected === "tool" ? { name: "read" } : {}
        assert.deepStrictEqual(at(request?.body, "tool_choice"), { type: expected, ...name })
      })
    )
  }
})

describe("requests without tools and system text", () => {
  for (const api of apis) {
    for (const [title, none] of [
      ["no toolkit", {}],
      ["an empty toolkit", { tools: [] }],
      ["an empty toolkit and no call allowed", { tools: [], toolChoice: "none" as const }]
    ] as const) {
      it.scopedLive(`MD-56: ${api} is sent neither of them with ${title}`, () =>
        Effect.gen(function* () {
          const prompt = [
            { role: "user" as const, content: "One" },
            { role: "assistant" as const, content: "Two" },
            { role: "user" as const, content: "Sum up." }
          ]
          const [request] = yield* requestsWith(api, { id: models[api] }, [undefined], { prompt, ...none })
          for (const name of ["tools", "tool_choice", "system", "instructions"]) {
            assert.notProperty(request?.body, name)
          }
          const conversation = at(request?.body, api === "openai" ? "input" : "messages")
          assert.isArray(conversation)
          assert.strictEqual(Array.isArray(conversation) ? conversation.length : 0, 3)
        })
      )
    }
  }
})
