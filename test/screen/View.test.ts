import { assert, describe, it } from "@effect/vitest"
import * as Draw from "../../packages/cli/src/screen/Draw.ts"
import { lastEvents } from "../../packages/cli/src/screen/SessionFollower.ts"
import { themeOf } from "../../packages/cli/src/screen/Theme.ts"
import * as View from "../../packages/cli/src/screen/View.ts"
import {
  activitySettled,
  delta,
  promoted,
  reasoningDelta,
  reasoningEnded,
  stepStarted,
  textEnded,
  toolCalled,
  toolFailed,
  toolSucceeded
} from "../cli/support/events.ts"

const theme = themeOf({ NO_COLOR: "1" }, "dark")
const shown: Draw.Details = { thinking: true, results: false }

/** Plays events; returns the view and the lines that were written. */
const play = (events: ReadonlyArray<Parameters<typeof View.step>[1]>, options = shown, columns = 80) => {
  let view = View.empty
  const lines: Array<string> = []
  for (const event of events) {
    const [next, blocks] = View.step(view, event)
    view = next
    lines.push(...blocks.flatMap((block) => Draw.blockLines(block, columns, theme, options)))
  }
  return { view, lines }
}

describe("what the screen shows", () => {
  it("SC-505: a text is written once, whether its deltas come before its end, after it, or not at all", () => {
    const whole = ["", "One.", "", "Two."]
    const text = "One.\n\nTwo."
    const parts = [delta("t", "One.\n\nT"), delta("t", "wo.")]
    assert.deepStrictEqual(play([stepStarted(), ...parts, textEnded("t", text)]).lines, whole)
    assert.deepStrictEqual(play([stepStarted(), textEnded("t", text), ...parts]).lines, whole)
    assert.deepStrictEqual(play([stepStarted(), textEnded("t", text)]).lines, whole)
  })

  it("SC-505: if the first deltas are missing, the whole text is written at its end", () => {
    const { lines } = play([stepStarted(), delta("t", "wo."), textEnded("t", "One.\n\nTwo.")])
    assert.deepStrictEqual(lines, ["", "One.", "", "Two."])
  })

  it("SC-507: thinking is quoted, or one line once it is folded", () => {
    const events = [reasoningDelta("r", "First.\n"), reasoningEnded("r", "First.\nSecond.")]
    assert.deepStrictEqual(play(events).lines, ["", "> First.", "> Second."])
    assert.deepStrictEqual(play(events, { ...shown, thinking: false }).lines, ["", "> thought: First. Second."])
  })

  it("SC-566: a command that failed shows more of the end of its output, without the line about its exit code", () => {
    const output = (code: number) =>
      `${Array.from({ length: 12 }, (_, at) => `line ${at}`).join("\n")}\n\n[Exit code ${code}.]`
    const linesOf = (code: number) =>
      play([toolCalled("a", "bash", { command: "run" }), toolSucceeded("a", { exitCode: code }, 0, output(code))]).lines
    assert.deepStrictEqual(linesOf(1).slice(1, 3), ["✗ bash run: exit code 1", "  … 4 more lines: Ctrl-O"])
    assert.strictEqual(linesOf(1).at(-1), "  line 11")
    assert.lengthOf(linesOf(1), 11)
  })

  it("SC-508: a call is a line, an edit has its changed lines, a failure its reason", () => {
    const { lines, view } = play([
      toolCalled("a", "edit", { path: "x.ts", oldText: "one\ntwo", newText: "one\nthree" }),
      toolSucceeded("a", {}, 3),
      toolCalled("b", "read", { path: "y.ts" }),
      toolFailed("b", "it does not exist")
    ])
    assert.deepStrictEqual(lines, [
      "",
      "✓ edit x.ts (3 s)",
      "  - two",
      "  + three",
      "",
      "✗ read y.ts: it does not exist"
    ])
    assert.deepStrictEqual(Draw.unfolded(view.lastCall ?? assert.fail(), 80, theme), [
      "",
      "read y.ts:",
      "  it does not exist"
    ])
  })

  it("SC-510: an activity that failed says why, and nothing of it stays open", () => {
    const { lines, view } = play([
      stepStarted(),
      delta("t", "Half"),
      toolCalled("a", "bash", { command: "sleep 9" }),
      activitySettled("failed", "the server is gone")
    ])
    assert.deepStrictEqual(lines, ["", "✗ the server is gone"])
    assert.deepStrictEqual([view.activity, view.running.size, view.texts.size], [undefined, 0, 0])
  })

  it("SC-503: no line is wider than the terminal, also with wide characters on 12 columns", () => {
    const long = "你好世界".repeat(40)
    const { lines } = play(
      [promoted(long), reasoningEnded("r", long), toolCalled("a", "bash", { command: long }), toolFailed("a", long)],
      shown,
      12
    )
    const narrowed = Draw.makeNarrowing()
    assert.deepStrictEqual(narrowed(lines, 12), lines)
    // What is remembered of one width does not hold for another.
    assert.notDeepEqual(narrowed(lines, 8), lines)
    assert.deepStrictEqual(narrowed(lines, 12), lines)
  })

  it("SC-525: of a long log the last prompts are shown, from their beginning", () => {
    const events = Array.from({ length: 30 }, (_, at) => [promoted(`prompt ${at}`), textEnded("t", "Yes.")]).flat()
    const last = lastEvents(events)
    assert.strictEqual(last.length, 16)
    assert.deepStrictEqual(last[0], events[44])
    assert.deepStrictEqual(lastEvents([textEnded("t", "Yes.")]).length, 1)
  })

  it("SC-525: of a short log all is shown, also over a server, which leaves out the creation", () => {
    const begun = [toolCalled("a", "bash", {}), promoted("Go on"), textEnded("t", "Yes.")]
    const numbered = begun.map((event, at) => ({ ...event, seq: at + 1 }))
    assert.deepStrictEqual(lastEvents(numbered), numbered)
    assert.strictEqual(lastEvents(numbered.map((event) => ({ ...event, seq: event.seq + 1 }))).length, 2)
  })

  it("SC-567: a printed line that is too wide goes on below its last column", () => {
    const line = "  Esc      stops the activity; twice, the whole run"
    assert.deepStrictEqual(Draw.hanging(line, 34), [
      "  Esc      stops the activity;",
      "           twice, the whole run"
    ])
    assert.deepStrictEqual(Draw.hanging(line, 80), [line])
    assert.deepStrictEqual(Draw.hanging("itself              $0.0000           3,382", 34), ["itself  $0.0000  3,382"])
    for (const row of Draw.hanging(line, 12)) assert.isAtMost(row.length, 11)
  })

  it("SC-511: the status line says the most important first, and is cut to the terminal", () => {
    const { view } = play([stepStarted()])
    const facts = {
      session: undefined,
      directory: "/home/me/project",
      branch: "main",
      window: 0,
      lost: ["github"],
      server: undefined,
      mode: undefined
    }
    const line = Draw.statusLine(view, facts, 200, "/home/me")
    assert.include(line, "MCP github failed · ~/project (main)")
    assert.isAtMost(Draw.statusLine(view, facts, 20, "/home/me").length, 19)
    assert.include(Draw.statusLine(view, { ...facts, mode: "read-only" }, 200, "/home/me"), " · read-only · ")
  })
})
