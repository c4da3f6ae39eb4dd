/** Tests the context of entry logs: a table of cases of seed 002. Spec: FM-35..FM-39 in specs/formats.md. */
import { assert, describe, it } from "@effect/vitest"
import type { AgentMessage } from "../../../packages/formats/src/entry/AgentMessage.ts"
import type { Entry } from "../../../packages/formats/src/entry/Entry.ts"
import * as SessionContext from "../../../packages/formats/src/entry/SessionContext.ts"
import { answer, compaction, entries, startedAt, user } from "../support/Entries.ts"

/** A message in one word: its text, in brackets if it is a summary. */
const said = (message: AgentMessage): string => {
  if (message.role === "compactionSummary") return `[${message.summary}]`
  if (message.role === "branchSummary") return `(${message.summary})`
  const content = "content" in message ? message.content : ""
  return typeof content === "string" ? content : JSON.stringify(content).replace(/.*"text":"([^"]*)".*/, "$1")
}

const context = (list: ReadonlyArray<Entry>, leaf?: string | null, options?: SessionContext.Options) =>
  SessionContext.build(list, leaf, options)
const shown = (list: ReadonlyArray<Entry>, leaf?: string | null) => context(list, leaf).messages.map(said).join(" ")

const branched = entries(user("a"), answer("b"), user("c"), answer("d"), user("e", { parentId: "e2" }), answer("f"))
const setting = (type: string, more: object) => ({ type, ...more })

describe("SessionContext", () => {
  const leaves: ReadonlyArray<[string, string, string | null | undefined, string]> = [
    ["CX-1", "without a leaf the last entry is the leaf", undefined, "a b e f"],
    ["CX-1", "an unknown leaf is the last entry", "gone", "a b e f"],
    ["CX-1", "an empty leaf is the last entry", "", "a b e f"],
    ["CX-1", "a known leaf", "e4", "a b c d"],
    ["CX-1", "no leaf: before all entries", null, ""],
    ["CX-2", "the root", "e1", "a"]
  ]
  for (const [law, name, leaf, expected] of leaves) {
    it(`FM-35: ${law}: ${name}`, () => assert.strictEqual(shown(branched, leaf), expected))
  }

  const messages: ReadonlyArray<[string, string, ReadonlyArray<Entry>, string]> = [
    ["CX-1", "no entries", [], ""],
    [
      "CX-2",
      "a missing parent starts the path at the orphan",
      entries(user("a"), user("b", { parentId: "gone" }), user("c")),
      "b c"
    ],
    ["CX-2", "a cycle ends", entries(user("a", { parentId: "e2" }), user("b")), "a b"],
    [
      "CX-6",
      "entries of settings, state and labels show nothing",
      entries(
        user("a"),
        setting("custom", { customType: "x", data: 1 }),
        setting("label", { targetId: "e1", label: "l" }),
        setting("session_init", { systemPrompt: "s", task: "t", tools: [] }),
        setting("mode_change", { mode: "plan" }),
        setting("unknown_type", { text: "x" }),
        user("b")
      ),
      "a b"
    ],
    [
      "CX-6",
      "a message of an extension and a summary of a branch are shown, an empty summary is not",
      entries(
        user("a"),
        setting("custom_message", { customType: "x", content: "note", display: true }),
        setting("branch_summary", { fromId: "e1", summary: "left" }),
        setting("branch_summary", { fromId: "root", summary: "" })
      ),
      "a note (left)"
    ],
    [
      "CX-7",
      "summary, kept, later",
      entries(user("a"), answer("b"), user("c"), compaction("s", "e3"), user("d")),
      "[s] c d"
    ],
    [
      "CX-7",
      "only the last compaction counts",
      entries(user("a"), compaction("s", "e1"), user("b"), compaction("t", "e3"), user("c")),
      "[t] b c"
    ],
    [
      "CX-8",
      "an older compaction in the kept range shows nothing",
      entries(user("a"), compaction("s", "e1"), user("b"), compaction("t", "e1")),
      "[t] a b"
    ],
    ["CX-8", "without a first kept entry nothing is kept", entries(user("a"), compaction("s"), user("b")), "[s] b"],
    [
      "CX-8",
      "a first kept entry of another branch keeps nothing",
      entries(user("a"), user("b"), user("c", { parentId: "e1" }), compaction("s", "e2"), user("d")),
      "[s] d"
    ],
    ["CX-8", "a compaction as leaf", entries(user("a"), answer("b"), compaction("s", "e2")), "[s] b"],
    [
      "CX-8",
      "a first kept entry after the compaction keeps nothing",
      entries(user("a"), compaction("s", "e3"), user("b")),
      "[s] b"
    ],
    [
      "CX-10",
      "a compaction of another branch has no effect",
      entries(user("a"), compaction("s", "e1"), user("b", { parentId: "e1" })),
      "a b"
    ],
    [
      "CX-12",
      "kept messages of its own replace the kept range",
      entries(user("a"), compaction("s", "e1", { retainedTail: [{ role: "user", content: "tail" }] }), user("b")),
      "[s] tail b"
    ],
    [
      "CX-9",
      "a history that the provider keeps replaces the kept range",
      entries(
        user("a"),
        compaction("s", "e1", {
          preserveData: { openaiRemoteCompaction: { provider: "openai", replacementHistory: [1] } }
        }),
        user("b")
      ),
      "[s] b"
    ],
    [
      "CX-9",
      "a remote history without a provider does not",
      entries(
        user("a"),
        compaction("s", "e1", { preserveData: { openaiRemoteCompaction: { provider: "", replacementHistory: [1] } } })
      ),
      "[s] a"
    ]
  ]
  for (const [law, name, list, expected] of messages) {
    it(`FM-36: ${law}: ${name}`, () => assert.strictEqual(shown(list), expected))
  }

  it("FM-36: CX-9: the summary carries the provider's history", () => {
    const preserveData = { openaiRemoteCompaction: { provider: "openai", replacementHistory: [{ x: 1 }] } }
    assert.deepStrictEqual(context(entries(compaction("s", "e1", { preserveData }))).messages, [
      {
        role: "compactionSummary",
        summary: "s",
        tokensBefore: 42,
        providerPayload: { type: "openaiResponsesHistory", provider: "openai", items: [{ x: 1 }] },
        timestamp: Date.parse(startedAt)
      }
    ])
  })

  it("FM-36: CX-11: summaries and messages of extensions have the entry's time, other messages their own", () => {
    const list = entries(
      { type: "message", message: { role: "user", content: "a", timestamp: 7 } },
      setting("custom_message", { customType: "x", content: "n" }),
      setting("branch_summary", { fromId: "root", summary: "s" })
    )
    assert.deepStrictEqual(
      context(list).messages.map(({ timestamp }) => timestamp),
      [7, Date.parse(startedAt) + 1000, Date.parse(startedAt) + 2000]
    )
  })

  it("FM-36: a message that passes through is the record's own, with its unknown fields", () => {
    const list = entries({ type: "message", message: { role: "user", content: "a", extra: { x: 1 } } })
    assert.strictEqual(context(list).messages[0], list[0]?.record["message"])
  })

  it("FM-37: without settings the defaults hold", () => {
    assert.deepStrictEqual(context([]), {
      messages: [],
      thinkingLevel: "off",
      models: {},
      injectedTtsrRules: [],
      mode: "none"
    })
  })

  it("FM-37: CX-3: settings come from the whole path, also before a compaction, and not from other branches", () => {
    const list = entries(
      setting("thinking_level_change", { thinkingLevel: "high" }),
      setting("model_change", { model: "openai/gpt-4o" }),
      setting("model_change", { provider: "x", modelId: "y/z", role: "smol" }),
      setting("ttsr_injection", { injectedRules: ["b", "a"] }),
      setting("ttsr_injection", { injectedRules: ["a", "c"] }),
      setting("mode_change", { mode: "plan", data: { file: "p" } }),
      setting("context_change", { contextName: "prod", tenant: "t", namespace: "n" }),
      setting("service_tier_change", { serviceTier: "flex" }),
      setting("mcp_tool_selection", { selectedToolNames: ["q"] }),
      compaction("s"),
      setting("thinking_level_change", { thinkingLevel: "low", parentId: "e1" }),
      user("x", { parentId: "e10" })
    )
    const { messages, ...settings } = context(list)
    assert.strictEqual(messages.length, 2)
    assert.deepStrictEqual(settings, {
      thinkingLevel: "high",
      models: { default: { provider: "openai", modelId: "gpt-4o" }, smol: { provider: "x", modelId: "y/z" } },
      injectedTtsrRules: ["b", "a", "c"],
      mode: "plan",
      modeData: { file: "p" },
      serviceTier: "flex",
      selectedToolNames: ["q"],
      contextName: "prod",
      tenant: "t"
    })
  })

  const model = (list: ReadonlyArray<Entry>, options?: SessionContext.Options) =>
    context(list, undefined, options).models["default"]?.modelId
  const change = setting("model_change", { model: "openai/chosen" })

  it("FM-38: D-3: a change of the model wins over later answers, in compat mode the last writer wins", () => {
    const list = entries(change, answer("a", "answered"))
    assert.strictEqual(model(list), "chosen")
    assert.strictEqual(model(list, { compat: true }), "answered")
    assert.strictEqual(model(entries(answer("a", "answered"), change), { compat: true }), "chosen")
  })

  it("FM-38: CX-4: without a change of the default model the last answer names it", () => {
    const other = setting("model_change", { model: "openai/small", role: "smol" })
    assert.strictEqual(model(entries(answer("a", "first"), other, answer("b", "last"))), "last")
    assert.isUndefined(model(entries(user("a"))))
  })

  it("FM-35: a path of 50,000 entries takes time in proportion to its length", () => {
    const list = entries(...Array.from({ length: 50_000 }, (_, n) => user(`${n}`)))
    assert.strictEqual(context(list).messages.length, 50_000)
  })
})
