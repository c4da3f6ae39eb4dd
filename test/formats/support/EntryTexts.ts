/** Small entry logs by hand: every record type of a dialect, with branches, labels and a compaction. */

const at = (second: number) => 1_760_000_000_000 + second * 1000
const stamp = (second: number) => new Date(at(second)).toISOString()

const usage = (input: number, output: number, total: number) => ({
  input,
  output,
  cacheRead: 3,
  cacheWrite: 2,
  totalTokens: input + output + 5,
  cost: { input: total / 2, output: total / 2, cacheRead: 0, cacheWrite: 0, total }
})

const long = "The quick brown fox jumps over the lazy dog, again and again. ".repeat(40)

/** One session of pi: a main branch with a compaction, and a branch that was left. */
export const piRecords = (cwd: string): ReadonlyArray<Readonly<Record<string, unknown>>> => [
  { type: "session", version: 3, id: "0198c0de-0000-7000-8000-000000000001", timestamp: stamp(0), cwd, extra: [1] },
  { type: "model_change", id: "m1", parentId: null, timestamp: stamp(1), provider: "anthropic", modelId: "claude-4" },
  { type: "thinking_level_change", id: "t1", parentId: "m1", timestamp: stamp(1), thinkingLevel: "high" },
  {
    type: "message",
    id: "u1",
    parentId: "t1",
    timestamp: stamp(2),
    message: { role: "user", content: `List the files. ${long}`, timestamp: at(2) }
  },
  {
    type: "message",
    id: "a1",
    parentId: "u1",
    timestamp: stamp(4),
    message: {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "I should list them.", thinkingSignature: "c2lnbmF0dXJl" },
        { type: "text", text: "I look." },
        { type: "toolCall", id: "call_1", name: "bash", arguments: { command: "ls", timeout: 5 } },
        { type: "toolCall", id: "call_2", name: "read", arguments: { path: "readme.md" } }
      ],
      api: "anthropic-messages",
      provider: "anthropic",
      model: "claude-4",
      usage: usage(100, 20, 0.25),
      stopReason: "toolUse",
      timestamp: at(3)
    }
  },
  {
    type: "message",
    id: "r1",
    parentId: "a1",
    timestamp: stamp(5),
    message: {
      role: "toolResult",
      toolCallId: "call_1",
      toolName: "bash",
      content: [{ type: "text", text: `readme.md\n${long}` }],
      details: { exitCode: 0 },
      isError: false,
      timestamp: at(5)
    }
  },
  {
    type: "message",
    id: "r2",
    parentId: "r1",
    timestamp: stamp(6),
    message: {
      role: "toolResult",
      toolCallId: "call_2",
      toolName: "read",
      content: [{ type: "text", text: "no such file" }],
      isError: true,
      timestamp: at(6)
    }
  },
  {
    type: "message",
    id: "a2",
    parentId: "r2",
    timestamp: stamp(7),
    message: {
      role: "assistant",
      content: [{ type: "text", text: "There is a readme." }],
      api: "anthropic-messages",
      provider: "anthropic",
      model: "claude-4",
      usage: usage(200, 10, 0.5),
      stopReason: "stop",
      timestamp: at(7)
    }
  },
  {
    type: "custom",
    id: "c1",
    parentId: "a2",
    timestamp: stamp(8),
    customType: "ext",
    data: { state: [1, { a: null }] }
  },
  { type: "future_type", id: "f1", parentId: "c1", timestamp: stamp(8), anything: { "1": 2, x: long } },
  {
    type: "message",
    id: "u2",
    parentId: "f1",
    timestamp: stamp(9),
    message: {
      role: "user",
      content: [
        { type: "text", text: "What is this?" },
        { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" }
      ],
      timestamp: at(9)
    }
  },
  {
    type: "message",
    id: "a3",
    parentId: "u2",
    timestamp: stamp(10),
    message: {
      role: "assistant",
      content: [],
      provider: "anthropic",
      model: "claude-4",
      usage: usage(0, 0, 0),
      stopReason: "aborted",
      errorMessage: "Request was aborted.",
      timestamp: at(10)
    }
  },
  { type: "label", id: "l1", parentId: "a3", timestamp: stamp(11), targetId: "a2", label: "good" },
  // The branch is left here: the next record follows an earlier one.
  {
    type: "branch_summary",
    id: "b1",
    parentId: "a2",
    timestamp: stamp(12),
    fromId: "a3",
    summary: "A picture was asked."
  },
  {
    type: "message",
    id: "u3",
    parentId: "b1",
    timestamp: stamp(13),
    message: { role: "user", content: [{ type: "text", text: "Read it." }], timestamp: at(13) }
  },
  {
    type: "message",
    id: "a4",
    parentId: "u3",
    timestamp: stamp(14),
    message: {
      role: "assistant",
      content: [{ type: "text", text: "It says hello." }],
      provider: "openai",
      model: "gpt-5",
      usage: usage(300, 30, 0.125),
      stopReason: "stop",
      timestamp: at(14)
    }
  },
  {
    type: "compaction",
    id: "k1",
    parentId: "a4",
    timestamp: stamp(15),
    summary: "Files were listed; the readme says hello.",
    firstKeptEntryId: "u3",
    tokensBefore: 4200,
    details: { readFiles: ["readme.md"], modifiedFiles: [] },
    fromHook: false
  },
  {
    type: "custom_message",
    id: "n1",
    parentId: "k1",
    timestamp: stamp(16),
    customType: "ext",
    content: "Remember the milk.",
    display: true,
    details: { debug: false }
  },
  {
    type: "message",
    id: "s1",
    parentId: "n1",
    timestamp: stamp(17),
    message: {
      role: "bashExecution",
      command: "make test",
      output: "all good",
      exitCode: 2,
      cancelled: false,
      truncated: false,
      timestamp: at(17)
    }
  },
  {
    type: "message",
    id: "u4",
    parentId: "s1",
    timestamp: stamp(18),
    message: { role: "user", content: [{ type: "text", text: "Thanks." }], timestamp: at(18) }
  },
  { type: "session_info", id: "i1", parentId: "u4", timestamp: stamp(19), name: "Files" }
]

/** The lines of records. */
export const linesOf = (records: ReadonlyArray<object>): string =>
  records.map((record) => `${JSON.stringify(record)}\n`).join("")

/** A log of many batches: the hand-made one, then exchanges that follow its last record. */
export const longRecords = (exchanges: number): ReadonlyArray<object> => {
  const first = piRecords("/tmp")
  const more = Array.from({ length: exchanges * 2 }, (_, n) => ({
    type: "message",
    id: `x${n}`,
    parentId: n === 0 ? "i1" : `x${n - 1}`,
    timestamp: new Date(1_760_000_100_000 + n * 1000).toISOString(),
    message:
      n % 2 === 0
        ? { role: "user", content: `ask ${n}` }
        : {
            role: "assistant",
            content: [{ type: "text", text: `answer ${n}` }],
            provider: "p",
            model: "m",
            stopReason: "stop"
          }
  }))
  return [...first, ...more]
}
