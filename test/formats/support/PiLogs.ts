/** Logs of pi 1.x: every kind of entry and message that it writes, with all of their fields. */

type Json = Readonly<Record<string, unknown>>

const at = (second: number) => 1_795_000_000_000 + second * 1000
const stamp = (second: number) => new Date(at(second)).toISOString()

const usage = (input: number, total: number, more: Json = {}) => ({
  input,
  output: 10,
  cacheRead: 4,
  cacheWrite: 2,
  cacheWrite1h: 1,
  reasoning: 3,
  totalTokens: input + 16,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total, totalFromProvider: false },
  ...more
})

const text = (words: string) => [{ type: "text", text: words }]

/** An entry that follows the one before it unless it names its parent. */
export type Given = Json & { readonly id: string; readonly type: string; readonly parentId?: string | null }

/** The records of a log with these entries. */
export const piLog = (entries: ReadonlyArray<Given>, cwd = "/tmp"): ReadonlyArray<Json> => [
  { type: "session", version: 3, id: "01a22254-9839-765e-9ff1-fb222e7b7338", timestamp: stamp(0), cwd },
  ...entries.map(({ id, parentId, type, ...fields }, n) => ({
    type,
    id,
    parentId: parentId === undefined ? (entries[n - 1]?.id ?? null) : parentId,
    timestamp: stamp(n + 1),
    ...fields
  }))
]

const message = (id: string, second: number, fields: Json, more: Json = {}): Given => ({
  type: "message",
  id,
  message: { ...fields, timestamp: at(second) },
  ...more
})

export const user = (id: string, second: number, content: unknown, more: Json = {}) =>
  message(id, second, { role: "user", content }, more)

export const answer = (id: string, second: number, content: ReadonlyArray<Json>, fields: Json = {}, more: Json = {}) =>
  message(
    id,
    second,
    {
      role: "assistant",
      content,
      api: "anthropic-messages",
      provider: "anthropic",
      model: "claude-5",
      usage: usage(100, 0.25),
      stopReason: "stop",
      rawStopReason: "end_turn",
      responseId: `resp_${id}`,
      durationMs: 12.5,
      thinkingLevel: "high",
      ...fields
    },
    more
  )

export const call = (id: string, input: Json) => ({
  type: "toolCall",
  id,
  name: "read",
  arguments: input,
  thoughtSignature: "sig"
})

export const result = (id: string, second: number, callID: string, content: unknown, fields: Json = {}) =>
  message(id, second, { role: "toolResult", toolCallId: callID, toolName: "read", content, isError: false, ...fields })

export const edit = (id: string, targetId: string, replacement: unknown, more: Json = {}): Given => ({
  type: "context_edit",
  id,
  targetId,
  replacement,
  ...more
})

const tool = (name: string) => ({ name, description: "a tool", parameters: { type: "object", properties: {} } })

export { text }

/** A log with each kind of entry. Its branch ends with a compaction that keeps nothing, and a prompt. */
export const allKinds = (cwd: string): ReadonlyArray<Json> =>
  piLog(
    [
      { type: "model_change", id: "m1", provider: "anthropic", modelId: "claude-5" },
      { type: "thinking_level_change", id: "t1", thinkingLevel: "high" },
      message("s1", 3, {
        role: "system",
        content: "",
        sections: { preamble: "You are a helper.", cwd },
        toolsAdded: [tool("read"), tool("write")]
      }),
      user("u1", 4, text("Read the file.")),
      answer("a1", 5, [
        { type: "thinking", thinking: "I read it.", thinkingSignature: "abc", redacted: false },
        { type: "text", text: "Reading.", textSignature: "{}" },
        call("call_1", { path: "a.txt" })
      ]),
      result("r1", 6, "call_1", text("the old secret"), {
        details: { lines: 1 },
        usage: usage(30, 0.5),
        nestedCalls: { calls: [{ id: "n1", name: "bash", status: "ok", durationMs: 1 }], complete: true },
        durationMs: 3
      }),
      answer("a2", 7, text("overloaded"), { stopReason: "error", errorMessage: "529 overloaded" }),
      edit("e1", "a2", null),
      answer("a3", 8, text("It says so.")),
      { type: "usage", id: "g1", kind: "cache_warm", provider: "p", model: "m", usage: usage(7, 1), note: "warm" },
      edit("e2", "r1", { content: text("the new words") }),
      message("s2", 9, {
        role: "system",
        content: "Be brief.",
        sections: { cwd: null },
        toolsRemoved: [{ name: "write" }]
      }),
      { type: "custom", id: "c1", customType: "pi.virtual-model-state", data: { state: [1, null] } },
      { type: "custom_message", id: "n1", customType: "ext", content: "A hint.", display: false, details: { a: 1 } },
      message("b1", 10, {
        role: "bashExecution",
        command: "ls",
        output: "a.txt",
        exitCode: 0,
        cancelled: false,
        truncated: false
      }),
      { type: "label", id: "l1", targetId: "a3", label: "good" },
      { type: "session_info", id: "i1", name: "My name" },
      {
        type: "branch_summary",
        id: "y1",
        parentId: "a3",
        fromId: "i1",
        summary: "A branch was tried.",
        usage: usage(11, 2),
        details: { readFiles: [], modifiedFiles: [] }
      },
      answer("a4", 12, [], { stopReason: "deferred", deferred: { provider: "p", modelId: "m", api: "x", id: "d1" } }),
      {
        type: "compaction",
        id: "k1",
        summary: "All was read.",
        firstKeptEntryId: "k1",
        tokensBefore: 500,
        usage: usage(13, 4),
        fromHook: true,
        systemMessage: { role: "system", content: "Checkpoint.", toolsAdded: [tool("read")], timestamp: at(13) }
      },
      user("u2", 14, "And now?")
    ],
    cwd
  )
