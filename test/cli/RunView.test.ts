import { assert, describe, it } from "@effect/vitest"
import { coloured } from "../../packages/cli/src/render/Style.ts"
import * as RunView from "../../packages/cli/src/render/RunView.ts"
import { longestText } from "../../packages/log/src/domain/LongText.ts"
import {
  activitySettled,
  compactionEnded,
  compactionFailed,
  compactionStarted,
  delta,
  eventTime,
  promoted,
  promptID,
  reasoningDelta,
  reasoningEnded,
  retried,
  stepStarted,
  textEnded,
  toolCalled,
  toolFailed,
  toolInputStarted,
  toolProgress,
  toolSucceeded
} from "./support/events.ts"

/** Feeds the items to a fresh view and returns what each stream got. */
const play = (
  items: ReadonlyArray<Parameters<typeof RunView.step>[1]>,
  terminal = false,
  options: RunView.Options = {}
) => {
  let view = RunView.make({ promptID, terminal, ...options })
  const written = { stdout: "", stderr: "" }
  for (const item of items) {
    const [next, writes] = RunView.step(view, item)
    view = next
    for (const { to, text } of writes) written[to] += text
  }
  return { ...written, view }
}

describe("RunView", () => {
  it("CL-7: what is asked, and what came of a compaction, is a line each", () => {
    const { stderr, stdout } = play([
      promoted(),
      toolCalled("c", "question", { questions: [{ question: "Which\nstore?" }, { question: "Why?" }] }),
      toolCalled("d", "question", { questions: "broken" }),
      compactionEnded("summary", 12.5),
      compactionFailed("no\nroom")
    ])
    assert.strictEqual(stdout, "")
    assert.deepStrictEqual(stderr.split("\n"), [
      "→ question Which store? Why?",
      "→ question",
      "… summarized: the request had 13 tokens, the summary has 7 characters",
      "✗ nothing was summarized: no room",
      ""
    ])
  })

  it("EX-R11: a text that was stored in parts is printed as one", () => {
    const [first, rest] = ["x".repeat(longestText), "y\nz"]
    const { stdout } = play([
      promoted(),
      delta("a", first),
      textEnded("a", first),
      delta("b", "y"),
      textEnded("b", rest),
      textEnded("c", "another")
    ])
    assert.isTrue(stdout === `${first}${rest}\n\nanother\n`)
  })

  it("CL-86: the value of the answer is the input of the call that was accepted, and is told by nobody else", () => {
    const { stderr, stdout, view } = play([
      promoted(),
      toolCalled("c1", "structured_output", { title: 1 }),
      stepStarted(),
      toolCalled("c1", "read", { path: "a" }),
      toolCalled("c2", "structured_output", { title: "a" }),
      toolCalled("c3", "structured_output", {}),
      toolSucceeded("c1"),
      toolSucceeded("c2")
    ])
    assert.deepStrictEqual(view.value, { title: "a" })
    assert.deepStrictEqual([stdout, stderr], ["", "→ read a\n✓ read a\n"])
  })

  it("CL-5: deltas are written as they come and the ended text adds nothing", () => {
    const { stdout } = play([promoted(), delta("t", "Hel"), delta("t", "lo"), textEnded("t", "Hello")])
    assert.strictEqual(stdout, "Hello\n")
  })

  it("CL-5: what deltas missed is completed by the ended text", () => {
    assert.strictEqual(play([promoted(), textEnded("t", "Hello")]).stdout, "Hello\n")
    assert.strictEqual(play([promoted(), delta("t", "Hel"), textEnded("t", "Hello")]).stdout, "Hello\n")
  })

  it("CL-5: a delta that comes after its text has ended is dropped", () => {
    const { stdout } = play([promoted(), delta("t", "He"), textEnded("t", "Hello"), delta("t", "llo")])
    assert.strictEqual(stdout, "Hello\n")
  })

  it("CL-5: a text whose first deltas were missed is told anew, whole", () => {
    const { stdout } = play([promoted(), delta("t", "lo"), textEnded("t", "Hello")])
    assert.strictEqual(stdout, "lo\n\nHello\n")
  })

  it("CL-6: deltas that overtake the promotion are not lost", () => {
    const { stdout } = play([delta("t", "Hel"), promoted(), delta("t", "lo"), textEnded("t", "Hello")])
    assert.strictEqual(stdout, "Hello\n")
  })

  it("CL-6: what was said before the prompt became visible is another turn's", () => {
    const before = [delta("old", "Old"), textEnded("old", "Old answer"), toolCalled("c0", "read", {})]
    const { stderr, stdout } = play([...before, promoted(), textEnded("new", "New")])
    assert.strictEqual(stdout, "New\n")
    assert.strictEqual(stderr, "")
  })

  it("CL-6: texts are set apart, also when the next begins before the last is known to have ended", () => {
    const items = [promoted(), delta("a", "One"), delta("b", "Tw"), textEnded("a", "One"), delta("b", "o")]
    assert.strictEqual(play([...items, textEnded("b", "Two")]).stdout, "One\n\nTwo\n")
  })

  it("CL-7: a tool call is one line on stderr, and on a terminal ends the answer's line first", () => {
    const items = [promoted(), delta("t", "Let me see"), toolCalled("c", "read", { path: "a\nb" })]
    const plain = play(items)
    assert.strictEqual(plain.stdout, "Let me see")
    assert.strictEqual(plain.stderr, "→ read a b\n")
    assert.strictEqual(play(items, true).stdout, "Let me see\n")
  })

  it("CL-30: a terminal gets no escape sequence from a delta", () => {
    assert.strictEqual(play([promoted(), delta("t", "\u001b[2J")], true).stdout, "␛[2J")
    assert.strictEqual(play([promoted(), delta("t", "\u001b[2J")]).stdout, "\u001b[2J")
  })

  it("CL-5: a character that two deltas share is written once it is whole", () => {
    const [high = "", low = ""] = "😀".split("")
    const half = play([promoted(), delta("t", `a${high}`)])
    assert.strictEqual(half.stdout, "a")
    assert.strictEqual(play([promoted(), delta("t", `a${high}`), delta("t", low)]).stdout, "a😀")
    assert.strictEqual(play([promoted(), delta("t", `a${high}`), textEnded("t", "a😀")]).stdout, "a😀\n")
  })

  it("CL-8: only an activity that took the prompt in settles it", () => {
    const other = play([activitySettled("failed", "boom")])
    assert.isUndefined(other.view.settled)
    assert.strictEqual(other.view.elsewhere?.error?.message, "boom")
    const own = play([activitySettled("failed", "boom"), promoted(), activitySettled("completed")])
    assert.strictEqual(own.view.settled?.outcome, "completed")
  })

  it("CL-5: ended texts are remembered no longer than their step", () => {
    const { view } = play([promoted(), textEnded("a", "One"), stepStarted()])
    assert.strictEqual(view.ended.size, 0)
    assert.strictEqual(view.open.size, 0)
  })

  it("CL-47: without a terminal a call is a line when it begins and one when it ends, with how, and what it changed", () => {
    const { stderr, view } = play([
      promoted(),
      toolCalled("a", "edit", { path: "src/a.ts", oldText: "one\ntwo\nsame\n", newText: "one\n2\nsame\n" }),
      toolCalled("b", "bash", { command: "npm test" }),
      toolSucceeded("a", { path: "src/a.ts", replacements: 1 }),
      toolSucceeded("b", { exitCode: 1 }, 75),
      toolCalled("c", "bash", { command: "sleep 9" }),
      toolFailed("c", "not\u001b[31m allowed", 2),
      toolFailed("d", "unknown")
    ])
    assert.deepStrictEqual(stderr.split("\n"), [
      "→ edit src/a.ts",
      "→ bash npm test",
      "✓ edit src/a.ts",
      "  - two",
      "  + 2",
      "✗ bash npm test: exit code 1 (1 min 15 s)",
      "→ bash sleep 9",
      "✗ bash sleep 9: not␛[31m allowed (2 s)",
      "✗ unknown",
      ""
    ])
    assert.strictEqual(view.running.size, 0)
  })

  it("CL-47: where lines move, a running call is one of them and stays only when it has ended, in colour", () => {
    const live = { live: true, style: coloured }
    const begun = play(
      [promoted(), toolCalled("b", "bash", { command: "make" }), toolProgress("b", "1\n2")],
      true,
      live
    )
    assert.strictEqual(begun.stderr, "")
    assert.deepStrictEqual(
      [...begun.view.running.values()],
      [{ tool: "bash", input: { command: "make" }, startedAt: eventTime, output: "1\n2" }]
    )
    const ended = play(
      [
        promoted(),
        toolCalled("b", "bash", { command: "make" }),
        toolSucceeded("b", { exitCode: 0 }),
        toolCalled("w", "write", { path: "a", content: "new\n" }),
        toolSucceeded("w")
      ],
      true,
      live
    )
    assert.strictEqual(
      ended.stderr,
      "\u001b[32m✓\u001b[39m bash make\n\u001b[32m✓\u001b[39m write a\n\u001b[32m  + new\u001b[39m\n"
    )
  })

  it("CL-46: what the model thinks is told as it comes where lines move, else whole, and not at all when it is not wanted", () => {
    const items = [
      promoted(),
      reasoningDelta("r", "I "),
      reasoningDelta("r", "see\n"),
      reasoningEnded("r", "I see\nit.\u001b"),
      reasoningEnded("s", "  \n")
    ]
    assert.strictEqual(play(items, true, { live: true }).stderr, "I see\nit.␛\n")
    assert.strictEqual(play(items).stderr, "> I see\n> it.␛\n")
    assert.strictEqual(play(items, false, { reasoning: false }).stderr, "")
    assert.strictEqual(play(items, true, { live: true, reasoning: false }).stderr, "")
  })

  it("CL-7: a retry says why it is made, when, and how many there may be", () => {
    assert.strictEqual(
      play([
        promoted(),
        retried(1, "host: Over\nloaded", 26_500, 529),
        retried(2, "slow down", 400, 429),
        retried(3, "no")
      ]).stderr,
      "… the provider is overloaded (HTTP 529); next attempt in 27 s (2 of 8): host: Over loaded\n" +
        "… the provider limits requests (HTTP 429); next attempt in 1 s (3 of 8): slow down\n" +
        "… the request failed; next attempt (4): no\n"
    )
  })

  it("CL-45: the phase is what the run waits for", () => {
    const phase = (...items: ReadonlyArray<Parameters<typeof RunView.step>[1]>) => play(items).view.phase
    assert.deepStrictEqual(phase(stepStarted()), { type: "queued" })
    assert.deepStrictEqual(phase(promoted()), { type: "waiting" })
    assert.deepStrictEqual(phase(promoted(), reasoningDelta("r", "hm")), { type: "thinking" })
    assert.deepStrictEqual(phase(promoted(), delta("t", "So")), { type: "answering" })
    assert.deepStrictEqual(phase(promoted(), toolInputStarted("c", "write")), { type: "calling", tool: "write" })
    assert.deepStrictEqual(phase(promoted(), toolInputStarted("c", "write"), toolProgress("d", "x")), {
      type: "calling",
      tool: "write"
    })
    assert.deepStrictEqual(phase(promoted(), compactionStarted()), { type: "summarizing" })
    assert.deepStrictEqual(phase(promoted(), retried(2, "no", 1_500)), {
      type: "retrying",
      attempt: 2,
      attempts: 8,
      until: eventTime + 1_500
    })
    assert.deepStrictEqual(phase(promoted(), delta("t", "So"), textEnded("t", "So")), { type: "waiting" })
  })

  it("CL-30: a line break that two deltas share stays one", () => {
    assert.strictEqual(
      play([promoted(), delta("t", "a\r"), delta("t", "\nb"), textEnded("t", "a\r\nb")], true).stdout,
      "a\nb\n"
    )
  })
})
