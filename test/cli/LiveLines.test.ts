/** The lines that move, and calls as a person reads them. */
import { assert, describe, it } from "@effect/vitest"
import * as CallText from "../../packages/cli/src/render/CallText.ts"
import { liveLines, type Live } from "../../packages/cli/src/render/LiveLines.ts"
import { coloured, plain, styleOf } from "../../packages/cli/src/render/Style.ts"
import { cut, pad, width } from "../../packages/cli/src/render/Plain.ts"

const now = 100_000
const bash = (command: string, seconds: number, output = "") => ({
  tool: "bash",
  input: { command },
  startedAt: now - seconds * 1_000,
  output
})
const lines = (live: Partial<Live>, columns = 60, rows = 24, style = plain) =>
  liveLines(
    { startedAt: now - 65_000, phase: { type: "waiting" }, running: [], ...live },
    now,
    { columns, rows },
    style
  )

describe("LiveLines", () => {
  it("CL-45: the status says how long the run takes and what it waits for", () => {
    const status = (phase: Live["phase"]) => lines({ phase })
    assert.deepStrictEqual(status({ type: "queued" }), ["⠋ 1 min 05 s  waiting for its turn  (Ctrl-C stops)"])
    assert.deepStrictEqual(status({ type: "waiting" }), ["⠋ 1 min 05 s  waiting for the model  (Ctrl-C stops)"])
    assert.deepStrictEqual(status({ type: "thinking" }), ["⠋ 1 min 05 s  thinking  (Ctrl-C stops)"])
    assert.deepStrictEqual(status({ type: "stopping" }), ["⠋ 1 min 05 s  stopping  (Ctrl-C stops)"])
    assert.deepStrictEqual(status({ type: "calling", tool: "write\u001b" }), [
      "⠋ 1 min 05 s  writing a call of write␛  (Ctrl-C stops)"
    ])
    assert.deepStrictEqual(status({ type: "retrying", attempt: 1, attempts: 8, until: now + 26_500 }), [
      "⠋ 1 min 05 s  attempt 2 of 8 in 27 s  (Ctrl-C stops)"
    ])
    assert.deepStrictEqual(status({ type: "retrying", attempt: 1, attempts: undefined, until: now }), [
      "⠋ 1 min 05 s  attempt 2  (Ctrl-C stops)"
    ])
  })

  it("CL-45: the picture before it moves with the time", () => {
    const first = (at: number) =>
      liveLines({ startedAt: 0, phase: { type: "waiting" }, running: [] }, at, { columns: 60, rows: 24 }, plain)[0]?.[0]
    assert.notStrictEqual(first(0), first(200))
    assert.strictEqual(first(0), first(2_000))
  })

  it("CL-45: a running call has its time and the last lines of its output, as a terminal would show them", () => {
    assert.deepStrictEqual(lines({ running: [bash("npm test", 12, "a\nb\n\u001b[31mc\n10 %\r20 %\r\nd\n")] }), [
      "→ bash npm test  12 s",
      "  ␛[31mc",
      "  20 %",
      "  d",
      "⠋ 1 min 05 s  running bash  (Ctrl-C stops)"
    ])
    assert.strictEqual(lines({ running: [bash("x", 0, "out")] }, 60, 24, coloured)[1], "\u001b[2m  out\u001b[22m")
  })

  it("CL-45: a terminal of few rows shows fewer lines, and always the status", () => {
    const running = Array.from({ length: 6 }, (_, i) => bash(`job ${i}`, i, "1\n2\n3\n4"))
    assert.deepStrictEqual(lines({ running }, 60, 8), [
      "→ bash job 0  0 s",
      "→ bash job 1  1 s",
      "→ bash job 2  2 s",
      "→ bash job 3  3 s",
      "  and 2 more",
      "⠋ 1 min 05 s  running 6 calls  (Ctrl-C stops)"
    ])
    assert.lengthOf(lines({ running }, 60, 24), 18)
    assert.deepStrictEqual(lines({ running }, 60, 2), ["⠋ 1 min 05 s  running 6 calls  (Ctrl-C stops)"])
  })

  it("CL-45: no line is wider than the terminal, whatever it is made of", () => {
    const running = [bash("echo 你好世界你好世界你好世界", 3_700, "你".repeat(80))]
    assert.deepStrictEqual(lines({ running }, 28), [
      "→ bash echo 你…  1 h 01 min",
      `  ${"你".repeat(12)}…`,
      "⠋ 1 min 05 s  running bash"
    ])
    for (const columns of [1, 2, 5, 13]) {
      for (const line of lines({ running }, columns)) assert.isAtMost(width(line), Math.max(2, columns - 1))
    }
  })
})

describe("calls", () => {
  it.each([
    ["bash", { command: "npm\ntest" }, "bash npm test"],
    ["read", { path: "a.ts" }, "read a.ts"],
    ["write", { path: "a.ts", content: "x" }, "write a.ts"],
    ["glob", { pattern: "**/*.ts" }, "glob **/*.ts"],
    ["grep", { pattern: "x+", path: "src" }, "grep x+ in src"],
    [
      "apply_patch",
      { patch: "*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: b\n*** End Patch" },
      "apply_patch a, b"
    ],
    ["apply_patch", { patch: "nonsense" }, 'apply_patch {"patch":"nonsense"}'],
    ["question", { questions: [{ question: "Why?" }] }, "question Why?"],
    ["skill", { name: "deploy" }, "skill deploy"],
    ["task", { agent: "explore", description: "Look" }, "task explore: Look"],
    ["todo", { items: [1, 2] }, "todo 2 items"],
    ["todo", {}, "todo"],
    ["bash", { command: 7 }, 'bash {"command":7}'],
    ["mcp_search", { query: "x" }, 'mcp_search {"query":"x"}'],
    ["mcp_list", {}, "mcp_list"]
  ])("CL-47: a call of %s with %o is one line", (tool, input, line) => {
    assert.strictEqual(CallText.callText({ tool, input }), line)
  })

  it("CL-47: a call takes at most 110 columns, unless others are given", () => {
    const call = { tool: "bash", input: { command: "x".repeat(300) } }
    assert.lengthOf(CallText.callText(call), 110)
    assert.lengthOf(CallText.callText(call, 20), 20)
  })

  it("CL-47: what an edit changed are the lines that differ, without those around them", () => {
    const shown = (tool: string, input: Record<string, unknown>) =>
      CallText.changes({ tool, input }).map(({ sign, text }) => `${sign}${text}`)
    assert.deepStrictEqual(shown("edit", { oldText: "a\nb\nc", newText: "a\nB\nBB\nc" }), ["-b", "+B", "+BB"])
    assert.deepStrictEqual(shown("edit", { oldText: "a\na", newText: "a" }), ["-a"])
    assert.deepStrictEqual(shown("edit", { oldText: "gone\n", newText: "" }), ["-gone"])
    assert.deepStrictEqual(shown("edit", { oldText: 1 }), [])
    assert.deepStrictEqual(shown("write", { content: "\u001b[2J\n" }), ["+␛[2J"])
    assert.deepStrictEqual(shown("write", { content: "x\n".repeat(20) }).slice(15), ["+x", " … 4 more lines"])
    const patch = "*** Begin Patch\n*** Update File: a\n@@ f\n same\n-old\n+new\n*** End Patch"
    assert.deepStrictEqual(shown("apply_patch", { patch }), [" Update File: a", "-old", "+new"])
    assert.deepStrictEqual(shown("read", { path: "a" }), [])
  })

  it("CL-47: a command that ended badly counts as failed, other results do not", () => {
    const why = (structured: Record<string, unknown>, tool = "bash") =>
      CallText.commandFailure({ tool, input: {} }, structured)
    assert.strictEqual(why({ exitCode: 2 }), "exit code 2")
    assert.strictEqual(why({ exitCode: null, signal: "SIGKILL" }), "ended by SIGKILL")
    assert.strictEqual(why({ exitCode: null, stopped: "timeout" }), "timed out")
    assert.strictEqual(why({ exitCode: null, stopped: "output" }), "stopped: too much output")
    assert.isUndefined(why({ exitCode: 0 }))
    assert.isUndefined(why({ exitCode: 2 }, "other"))
  })
})

describe("Width", () => {
  it("CL-31: a text is cut by the cells that it takes, never within a character", () => {
    assert.strictEqual(cut("hello", 5), "hello")
    assert.strictEqual(cut("hello!", 5), "hell…")
    assert.strictEqual(cut("你好世界", 8), "你好世界")
    assert.strictEqual(cut("你好世界", 7), "你好世…")
    assert.strictEqual(cut("你好世界", 6), "你好…")
    assert.strictEqual(cut("👩‍👩‍👧👩‍👩‍👧", 3), "👩‍👩‍👧…")
    assert.strictEqual(cut("e\u0301e\u0301e\u0301", 2), "e\u0301…")
    assert.strictEqual(pad("你", 4), "你  ")
  })

  it("CL-46: colours are for terminals that want them", () => {
    assert.strictEqual(styleOf({}, true), coloured)
    assert.strictEqual(styleOf({ NO_COLOR: "" }, true), coloured)
    for (const [env, terminal] of [
      [{ NO_COLOR: "1" }, true],
      [{ TERM: "dumb" }, true],
      [{}, false]
    ] as const) {
      assert.strictEqual(styleOf(env, terminal), plain)
    }
  })
})
