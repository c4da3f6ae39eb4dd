import type { Message, Session } from "@daybook/core"
import { assert, describe, it } from "@effect/vitest"
import { eventJson, eventLine } from "../../packages/cli/src/render/EventLine.ts"
import { rootHelp, verbHelp } from "../../packages/cli/src/render/Help.ts"
import { messageLine, messageText } from "../../packages/cli/src/render/MessageText.ts"
import { sessionTable } from "../../packages/cli/src/render/SessionLine.ts"
import { activitySettled, textEnded, toolCalled } from "./support/events.ts"

const session = {
  id: "ses_a",
  location: { directory: "/work/a\nb" },
  title: "two\nlines \u001b[31m",
  cost: 0,
  tokens: { input: 1, output: 2, reasoning: 0, cache: { read: 0, write: 0 } },
  createdAt: Date.UTC(2026, 0, 2, 3, 4, 5),
  updatedAt: Date.UTC(2026, 0, 2, 3, 4, 5)
} as unknown as Session // the identifiers' brands are of no interest here

const assistant = (text: string, output: string) =>
  ({
    type: "assistant",
    id: "msg_a",
    seq: 7,
    createdAt: Date.UTC(2026, 0, 2, 3, 4, 5),
    agent: "build",
    model: { providerID: "p", id: "m" },
    content: [
      { type: "text", id: "t", text },
      {
        type: "tool",
        id: "c",
        name: "read",
        state: "completed",
        input: { path: "a" },
        content: [{ type: "text", text: output }],
        createdAt: 0
      }
    ]
  }) as unknown as Message // as above

describe("renderers", () => {
  it("CL-12: the keys of an event are in the documented order", () => {
    const event = textEnded("t", "Hello\nworld")
    assert.match(
      eventJson(event),
      /^\{"position":\d+,"seq":\d+,"id":"evt_\d+","type":"session\.next\.text\.ended","version":1,"sessionID":"ses_test","created":\d+,"data":\{.*\}\}$/
    )
    assert.deepStrictEqual(JSON.parse(eventJson(event)).data, event.data)
  })

  it("CL-13: an event is one line, whatever it carries", () => {
    assert.match(
      eventLine(textEnded("t", "Hello\nworld")),
      /^ +\d+ {2}2026-01-02 03:04:05 {2}text\.ended +Hello world$/
    )
    assert.match(eventLine(toolCalled("c", "read", { path: "x".repeat(500) })), /^[^\n]{60,150}…$/)
    assert.match(eventLine(activitySettled("failed", "boom")), /activity\.settled +act_1 failed boom$/)
  })

  it("CL-14: a session is one line, whatever its title and folder are called", () => {
    assert.strictEqual(sessionTable([session]), "2026-01-02 03:04:05  new  ses_a  two lines ␛[31m  /work/a b\n")
  })

  it("CL-15: a message is one line: its words, then its calls", () => {
    assert.strictEqual(
      messageLine(assistant("Let me\nsee", "x")),
      "     7  2026-01-02 03:04:05  assistant       msg_a  Let me see [read]\n"
    )
  })

  it("CL-16: a transcript cuts long results and says how much is left", () => {
    const text = messageText(assistant("See", "line\n".repeat(40)), false)
    assert.strictEqual(text.split("  | line").length - 1, 12)
    assert.include(text, "  | … 28 more lines")
  })

  it("CL-30: a transcript on a terminal obeys nobody", () => {
    assert.notInclude(messageText(assistant("\u001b[2J", "\u001b[3J"), true), "\u001b")
    assert.include(messageText(assistant("\u001b[2J", "x"), false), "\u001b[2J")
  })

  it("CL-3: help names every verb, option and example", () => {
    const verb = {
      name: "fly",
      summary: "fly somewhere",
      words: "PLACE",
      details: ["It is far."],
      flags: [
        { name: "fast", about: "hurry" },
        { name: "by", value: "WHAT", about: "means" }
      ],
      examples: [["daybook fly home", "goes home"]] as const
    }
    // Help does not parse: the parser's part of a flag is of no interest here.
    const helped = verb as unknown as Parameters<typeof verbHelp>[0]
    assert.match(rootHelp("1.2.3", [helped]), /^daybook 1\.2\.3.*\n[^]* {2}fly {2}fly somewhere\n/)
    const text = verbHelp(helped)
    for (const part of ["Usage: daybook fly [options] PLACE", "--fast", "--by WHAT", "daybook fly home"]) {
      assert.include(text, part)
    }
  })
})
