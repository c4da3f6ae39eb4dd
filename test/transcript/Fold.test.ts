/** What single events come to: blocks of prompts and results, codes, ends of runs. */
import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Struct } from "effect"
import { ActivityID, MessageID } from "../../packages/log/src/domain/Identifiers.ts"
import type { Prompt, StoredError } from "../../packages/log/src/domain/Values.ts"
import { type Draft, draft } from "../../packages/log/src/events/SessionEvents.ts"
import * as Fold from "../../packages/transcript/src/Fold.ts"
import { runOf } from "../../packages/transcript/src/row/Rows.ts"
import { folded, stored } from "../files/support/Logs.ts"

const created = draft("session.created", { location: { directory: "/work" } })
const fold = (...drafts: ReadonlyArray<Draft>) => folded(stored([created, ...drafts]))
const id = MessageID.make("msg_1")
const activityID = ActivityID.make("act_1")
const assistantMessageID = MessageID.make("msg_a")
const at = { assistantMessageID }
const provider = { executed: false }

const admitted = (prompt: Prompt) => draft("session.next.prompt.admitted", { messageID: id, prompt, delivery: "queue" })
const promoted = (prompt: Prompt) =>
  draft("session.next.prompt.promoted", {
    messageID: id,
    prompt: Struct.omit(prompt, "expansion"),
    timeCreated: 0
  })
const started = (trigger: "queue" | "resume" = "resume", name = activityID) =>
  draft("session.next.activity.started", { activityID: name, trigger })
const settled = (outcome: "completed" | "failed" | "interrupted", error?: StoredError) =>
  draft("session.next.activity.settled", { activityID, outcome, ...(error === undefined ? {} : { error }) })
const step = draft("session.next.step.started", { ...at, agent: "build", model: { providerID: "p", id: "m" } })
const stepEnded = draft("session.next.step.ended", {
  ...at,
  finish: "stop",
  cost: 0,
  tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } }
})
const textStarted = (textID = "t") => draft("session.next.text.started", { ...at, textID })
const textEnded = (text: string, textID = "t") => draft("session.next.text.ended", { ...at, textID, text })
const call = (callID: string) => [
  draft("session.next.tool.input.started", { ...at, callID, name: "read" }),
  draft("session.next.tool.called", { ...at, callID, tool: "read", input: {}, provider })
]
const success = (callID: string) =>
  draft("session.next.tool.success", {
    ...at,
    callID,
    structured: {},
    content: [{ type: "text", text: callID }],
    provider
  })

const types = (rows: ReadonlyArray<{ readonly type: string }>) => rows.map(({ type }) => type).slice(1)
const contentOf = (prompt: Prompt) => fold(admitted(prompt), promoted(prompt)).messages[0]?.content

describe("prompts", () => {
  it("FL-4: a prompt of words is one block of text", () => {
    assert.deepStrictEqual(contentOf({ text: "hello" }), [{ type: "text", text: "hello" }])
    assert.deepStrictEqual(contentOf({ text: "" }), [{ type: "text", text: "" }])
  })

  it("FI-102, FI-23: what a prompt came to follows its words, whole, and says what it is", () => {
    const long = "line\n".repeat(100_000)
    const content = contentOf({
      text: "/review @a.txt",
      expansion: {
        text: "Review this.",
        parts: [
          { kind: "file", name: "a.txt", content: { type: "text", text: long } },
          { kind: "failure", name: "b", content: { type: "text", text: "there is no b" } }
        ]
      }
    })
    assert.deepStrictEqual(content, [
      { type: "text", text: "/review @a.txt" },
      { type: "text", text: "Review this.", from: "template" },
      { type: "text", text: long, from: "file", name: "a.txt" },
      { type: "text", text: "there is no b", from: "failure", name: "b" }
    ])
  })

  it("PK-5: bytes are named by their hash, and given out with the admission, once for each place", () => {
    const bytes = Buffer.from([1, 2, 3])
    const hash = `sha256-${createHash("sha256").update(bytes).digest("hex")}`
    const prompt: Prompt = {
      text: "look",
      files: [{ uri: `data:image/png;base64,${bytes.toString("base64")}`, mime: "image/png", name: "p.png" }],
      expansion: {
        parts: [
          { kind: "media", name: "p", content: { type: "file", uri: "attachment:0", mime: "image/png", name: "p.png" } }
        ]
      }
    }
    const { blobs, messages } = fold(admitted(prompt))
    assert.deepStrictEqual(messages, [])
    assert.deepStrictEqual(
      blobs.map((blob) => [blob.hash, blob.mediaType, blob.size, [...blob.bytes()]]),
      [[hash, "image/png", 3, [1, 2, 3]]]
    )
    assert.deepStrictEqual(contentOf(prompt)?.slice(1), [
      { type: "media", media_type: "image/png", name: "p.png", blob: hash, bytes: 3 }
    ])
  })

  it("FI-24: a file without data has its uri; one whose data cannot be read has neither", () => {
    const content = contentOf({
      text: "",
      files: [
        { uri: "https://example.org/a.png", mime: "image/png" },
        { uri: "data:image/png;base64,*", mime: "image/png" }
      ]
    })
    assert.deepStrictEqual(content, [
      { type: "media", media_type: "image/png", uri: "https://example.org/a.png" },
      { type: "media", media_type: "image/png" }
    ])
  })

  it("FI-25: a prompt's privileged text is a system row before it", () => {
    const prompt: Prompt = { text: "hello", system: "Be brief." }
    const rows = fold(admitted(prompt), promoted(prompt)).messages.map((row) => [row.role, row.id])
    assert.deepStrictEqual(rows, [
      ["system", "msg_1.system"],
      ["user", "msg_1"]
    ])
  })

  it("FI-23: a prompt of an old log, visible at once, is a user's row", () => {
    const { messages, state } = fold(
      draft("session.next.prompted", { messageID: id, prompt: { text: "old" }, delivery: "steer" })
    )
    assert.deepStrictEqual(messages[0]?.content, [{ type: "text", text: "old" }])
    assert.isUndefined(messages[0]?.run)
    assert.strictEqual(state.word, "idle")
  })

  it("DC-19: a prompt that was taken back is a cancelled run that never began, and is in no message", () => {
    const { events, messages, state } = fold(
      admitted({ text: "never mind" }),
      draft("session.next.prompt.withdrawn", { messageID: id })
    )
    assert.deepStrictEqual(messages, [])
    assert.deepStrictEqual(types(events), ["done"])
    assert.include(events[1], { run: runOf("ses_s", "msg_1"), status: "cancelled" })
    assert.deepStrictEqual(state.waiting, [])
  })
})

describe("runs", () => {
  it("FR-9: the run of a client's prompt begins with its id and folder", () => {
    const prompt: Prompt = { text: "go", client: { id: "m1", cwd: "/work/api" } }
    const { events, messages } = fold(admitted(prompt), started("queue"), promoted(prompt))
    const run = runOf("ses_s", "msg_1")
    assert.include(events[1], { type: "start", run, client_id: "m1", scope: "private", cwd: "/work/api" })
    assert.strictEqual(messages[0]?.run, run)
  })

  it("FI-20: a run whose prompt was taken back before it became visible is named after its activity", () => {
    const { events } = fold(
      admitted({ text: "go" }),
      started("queue"),
      draft("session.next.context.updated", { messageID: MessageID.make("msg_c"), text: "Today." })
    )
    assert.include(events[1], { type: "start", run: runOf("ses_s", "act_1"), id: "evt_s-3", seq: 12 })
  })

  it("FR-5: a run that failed says why by an errno name", () => {
    const codes = [
      ["ProviderFailed", "EIO"],
      ["BudgetExceeded", "EACCES"],
      ["AgentNotFound", "ENOENT"],
      ["OwnerLost", "EBUSY"],
      ["toString", "EIO"]
    ] as const
    for (const [type, code] of codes) {
      const { events } = fold(started(), settled("failed", { type, message: "no" }))
      assert.deepStrictEqual(types(events), ["start", "error", "done"])
      assert.include(events[2], { code, message: "no" })
      assert.notProperty(events[2], "recoverable")
      assert.include(events[3], { status: "error" })
    }
  })

  it("DC-18: a run whose process is gone ends with EHOSTDOWN", () => {
    const gone = { type: "process.ended", message: "it ended" }
    const { events, state } = fold(started(), settled("interrupted", gone))
    assert.include(events[2], { type: "error", code: "EHOSTDOWN" })
    assert.include(events[3], { type: "done", status: "error" })
    assert.strictEqual(state.word, "error")
  })

  it("DC-18: a run during which another begins is over", () => {
    const { events } = fold(started(), step, started("resume", ActivityID.make("act_2")))
    assert.deepStrictEqual(types(events), ["start", "error", "done", "start"])
    assert.deepStrictEqual(events.slice(2).map(Struct.get("seq")), [12, 13, 14])
  })

  it("FR-11: what comes after the end of a run is in no row", () => {
    const rest = [textEnded("late"), stepEnded, success("c1"), settled("completed")]
    const before = [started(), step, textStarted(), ...call("c1"), settled("interrupted")]
    const { events, messages } = fold(...before, ...rest)
    assert.deepStrictEqual(types(events), ["start", "tool_call", "done"])
    assert.deepStrictEqual(messages.map(Struct.get("role")), ["assistant"])
  })

  it("FI-104, FI-31: a long text is cut between code points, and says how long it is", () => {
    const text = `a${"😀".repeat(Fold.textLimit / 4)}`
    const { events, latest } = fold(started(), step, textStarted(), textEnded(text), stepEnded, settled("completed"))
    const message = events.find((row) => row.type === "message")
    const shown = message?.content[0]?.text ?? ""
    assert.strictEqual(Buffer.byteLength(shown), Fold.textLimit - 3)
    assert.isTrue(text.startsWith(shown) && !/\p{Surrogate}/u.test(shown))
    assert.include(message, { truncated: true, length: text.length })
    assert.strictEqual(latest, text)
  })

  it("FI-104, FI-31: a text of exactly the limit is whole", () => {
    for (const character of ["a", "é", "€", "😀"]) {
      const most = character.repeat(Math.floor(Fold.textLimit / Buffer.byteLength(character)))
      assert.strictEqual(Fold.clip(most), most)
      assert.strictEqual(Fold.clip(most + character), most)
    }
  })

  it("FR-7: texts of one message follow directly on each other, in the order in which they began", () => {
    const { latest } = fold(
      started(),
      step,
      textStarted("a"),
      textStarted("b"),
      textEnded("two", "b"),
      textEnded("one, ", "a"),
      stepEnded,
      settled("completed")
    )
    assert.strictEqual(latest, "one, two")
  })
})

describe("steps", () => {
  it("FI-27: results wait for their step's row and for the calls before them", () => {
    const calls = [...call("c1"), ...call("c2"), ...call("c3")]
    const before = [started(), step, ...calls, success("c3"), success("c1")]
    assert.deepStrictEqual(fold(...before).messages, [])
    const ended = fold(...before, stepEnded).messages
    assert.deepStrictEqual(ended.map(Struct.get("id")), ["msg_a", "msg_a:c1"])
    const whole = fold(...before, stepEnded, success("c2")).messages
    assert.deepStrictEqual(whole.map(Struct.get("id")), ["msg_a", "msg_a:c1", "msg_a:c2", "msg_a:c3"])
  })

  it("FI-26: a step that failed has a row with the reason, if it came to say anything", () => {
    const failed = draft("session.next.step.failed", { ...at, error: { type: "context-overflow", message: "long" } })
    assert.deepStrictEqual(fold(started(), step, textStarted(), failed).messages, [])
    const [row] = fold(started(), step, textStarted(), textEnded("half"), failed).messages
    assert.deepInclude(row, { role: "assistant", error: { code: "EMSGSIZE", message: "long" } })
  })

  it("FL-5: a failed call is an error that the run survives, and a result that says so", () => {
    const failed = draft("session.next.tool.failed", {
      ...at,
      callID: "c1",
      error: { type: "permission.denied", message: "not here" },
      provider
    })
    const { events, messages } = fold(started(), step, ...call("c1"), failed, stepEnded)
    assert.include(events[3], { type: "error", tool: "read", tool_call_id: "c1", code: "EACCES", recoverable: true })
    assert.deepStrictEqual(messages[1]?.content, [
      { type: "tool_result", tool_call_id: "c1", content: [{ type: "text", text: "not here" }], is_error: true }
    ])
  })

  it("FI-28: a result without content is its value; what a provider ran, the provider's own", () => {
    const base = { ...at, callID: "c1", structured: { lines: 2 }, content: [] }
    const own = draft("session.next.tool.success", { ...base, provider })
    const hosted = draft("session.next.tool.success", { ...base, result: [1], provider: { executed: true } })
    for (const [result, text] of [
      [own, '{"lines":2}'],
      [hosted, "[1]"]
    ] as const) {
      const { messages } = fold(started(), step, ...call("c1"), result, stepEnded)
      assert.deepStrictEqual(messages[1]?.content, [
        { type: "tool_result", tool_call_id: "c1", content: [{ type: "text", text }] }
      ])
    }
  })

  it("FI-38: without activities rows are of no run, and an answer sets latest.md", () => {
    const { events, latest, messages, state } = fold(
      step,
      ...call("c1"),
      textStarted(),
      textEnded("hi"),
      stepEnded,
      success("c1")
    )
    assert.deepStrictEqual(types(events), ["tool_call", "tool_result"])
    assert.isTrue([...events, ...messages].every((row) => row.run === undefined))
    assert.strictEqual(latest, "hi")
    assert.isTrue(Fold.isQuiet(state))
  })

  it("FI-26: reasoning and progress are in no row", () => {
    const { messages } = fold(
      started(),
      step,
      draft("session.next.reasoning.started", { ...at, reasoningID: "r" }),
      draft("session.next.reasoning.ended", { ...at, reasoningID: "r", text: "hm" }),
      ...call("c1"),
      draft("session.next.tool.progress", { ...at, callID: "c1", structured: {}, content: [] }),
      success("c1"),
      stepEnded
    )
    assert.notInclude(JSON.stringify(messages), "hm")
    assert.strictEqual(messages.length, 2)
  })
})
