import { assert, describe, it } from "@effect/vitest"
import * as TurnView from "../../packages/cli/src/render/TurnView.ts"
import {
  activitySettled,
  compactionEnded,
  compactionFailed,
  delta,
  promoted,
  promptID,
  stepStarted,
  textEnded,
  toolCalled,
  toolSucceeded
} from "./support/events.ts"

/** Feeds the items to a fresh view and returns what each stream got. */
const play = (items: ReadonlyArray<Parameters<typeof TurnView.step>[1]>, terminal = false) => {
  let view = TurnView.make(promptID, terminal)
  const written = { stdout: "", stderr: "" }
  for (const item of items) {
    const [next, writes] = TurnView.step(view, item)
    view = next
    for (const { to, text } of writes) written[to] += text
  }
  return { ...written, view }
}

describe("TurnView", () => {
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
      "→ question ",
      "… summarised: the request had 13 tokens, the summary has 7 characters",
      "✗ nothing was summarised: no room",
      ""
    ])
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
    assert.deepStrictEqual([stdout, stderr], ["", '→ read {"path":"a"}\n'])
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
    assert.strictEqual(plain.stderr, '→ read {"path":"a\\nb"}\n')
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
})
