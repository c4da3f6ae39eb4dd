import { assert, describe, it } from "@effect/vitest"
import { rootHelp, verbHelps } from "../../packages/cli/src/arguments/Help.ts"
import { budgetText } from "../../packages/cli/src/commands/budget.ts"
import { eventJson, eventLine } from "../../packages/cli/src/render/EventLine.ts"
import { messageLine, messageText } from "../../packages/cli/src/commands/sessions.ts"
import { dateTime, sentences } from "../../packages/cli/src/render/Plain.ts"
import { sessionHead, sessionTable } from "../../packages/cli/src/render/SessionLine.ts"
import { ActivityID, MessageID } from "../../packages/log/src/domain/Identifiers.ts"
import type { Message, Session } from "../../packages/log/src/domain/Message.ts"
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

it("CL-562: sentences for a terminal are broken at words, and times say that they are in UTC", () => {
  assert.strictEqual(
    sentences("set ANTHROPIC_API_KEY or another\nshort\n", 20),
    "set\nANTHROPIC_API_KEY or\nanother\nshort\n"
  )
  assert.strictEqual(sentences("abcdefgh", 3), "abc\ndef\ngh")
  assert.strictEqual(dateTime(0), "1970-01-01 00:00:00Z")
})

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
      /^ +\d+ {2}2026-01-02 03:04:05Z {2}text\.ended +Hello world$/
    )
    assert.match(eventLine(toolCalled("c", "read", { path: "x".repeat(500) })), /^[^\n]{60,150}…$/)
    assert.match(eventLine(activitySettled("failed", "boom")), /activity\.settled +act_1 failed boom$/)
  })

  it("CL-90: a budget shows how much of what was spent is an estimate, where some of it is", () => {
    const usage = { cost: 0.5, tokens: session.tokens }
    const shown = (tokens: number) =>
      budgetText({ own: usage, total: usage, estimated: { cost: 0.25, tokens }, limit: undefined })
    assert.match(shown(1_200), /^ {2}of it estimated +\$0\.2500 +1,200$/m)
    assert.notInclude(shown(0), "estimated")
  })

  it("CL-13: what is new of a request, a summary, an answer and a budget is told in words", () => {
    const line = (type: string, data: unknown) => eventLine({ ...activitySettled("completed"), type, data } as never)
    const text = "## Goal\nA long summary"
    const told: ReadonlyArray<readonly [string, unknown, RegExp]> = [
      [
        "request.framed",
        { hash: "abcdefghij", system: ["a", "b"], tools: { offered: ["x", "y"], defined: [{}] } },
        /abcdefgh 2 system texts, 2 tools, 1 new$/
      ],
      ["instructions.discovered", { paths: ["/a/AGENTS.md", "/b/AGENTS.md"] }, / \/a\/AGENTS\.md \/b\/AGENTS\.md$/],
      [
        "compaction.ended",
        { text, tokensBefore: 10.4 },
        /the request had 10 tokens, the summary has 22 characters; ## Goal/
      ],
      ["compaction.failed", { messageID: "msg_a", error: { message: "too long" } }, /msg_a too long$/],
      ["context.pruned", { through: 4 }, /results up to 4 are not shown$/],
      ["context.pruned", { through: -1 }, /all results are shown$/],
      ["context.edited", { messageID: "msg_b" }, / msg_b is not shown$/],
      ["context.edited", { messageID: "msg_b", callID: "c", content: [] }, / msg_b c is shown with another content$/],
      [
        "part.withheld",
        {
          messageID: "msg_b",
          callID: "c",
          index: 0,
          kind: "pdf",
          model: { providerID: "a", id: "m" },
          reason: "locked"
        },
        / msg_b a\/m is not shown a PDF document of the result of call c: its server refused it \(locked\)$/
      ],
      ["question.answered", { callID: "c", answers: ["one", "two"] }, / c one \| two$/],
      ["step.ended", { finish: "stop", tokens: { input: 3, output: 4 } }, / stop 3 in, 4 out$/],
      ["step.failed", { error: { message: "interrupted" } }, / interrupted$/],
      [
        "step.failed",
        { error: { message: "interrupted" }, tokens: { input: 3, output: 4 }, estimated: true },
        / interrupted; 3 in, 4 out \(estimated\)$/
      ],
      [
        "retried",
        { attempt: 1, waitMs: 60_000, error: { message: "busy" } },
        / the request failed; next attempt in 1 min 00 s \(2\): busy$/
      ],
      ["retried", { attempt: 1, error: { message: "busy" } }, / the request failed; next attempt \(2\): busy$/],
      ["budget.set", { budget: { cost: 1.5, tokens: 10 } }, /\$1\.5, 10 tokens$/],
      ["budget.set", { budget: {} }, /no limit$/]
    ]
    for (const [type, data, expected] of told) assert.match(line(`session.next.${type}`, data), expected)
  })

  it("CL-16: what a prompt pointed at is named with its size, or with why it could not be had", () => {
    const part = (kind: string, name: string, text: string) => ({ kind, name, content: { type: "text", text } })
    const user = {
      type: "user",
      id: "msg_u",
      seq: 3,
      createdAt: 0,
      text: "Look at @a and @b",
      system: "Be\nbrief",
      tools: { "*": false },
      expansion: {
        text: "from the template",
        parts: [
          part("file", "a", "ä".repeat(600)),
          part("failure", "b", "there is\nno b"),
          {
            kind: "media",
            name: "c.png",
            content: { type: "file", mime: "image/png", uri: "data:image/png;base64,AAAA" }
          }
        ]
      }
    } as unknown as Message // as above
    const shown = messageText(user, true)
    for (const line of [
      "[system] Be brief",
      "[tools] *=off",
      "[template] from the template",
      "[file] a (1 kB)",
      "[failure] b: there is no b",
      "[media] c.png (image/png)"
    ]) {
      assert.include(shown.split("\n"), line)
    }
    assert.notInclude(shown, "ää")
    const summary = { type: "compaction", reason: "auto", summary: "So far.", recent: "", readFiles: ["a", "b"] }
    assert.match(
      messageText({ ...user, ...summary } as never, true),
      /^## summary \(auto\)[^]*So far\.\n\n\[files\] 2 read\n/
    )
  })

  it("CL-14: a session is one line, whatever its title and folder are called", () => {
    assert.strictEqual(sessionTable([session]), "2026-01-02 03:04:05Z  new  ses_a  two lines ␛[31m  /work/a b\n")
  })

  it("CL-400: a session whose process ended before its work was done is cut off, or waits if prompts do", () => {
    const activity = { id: ActivityID.make("act_a"), state: "running" } as const
    const error = { type: "process.ended", message: "it ended" }
    const running: Session = { ...session, activity }
    const left: Session = { ...session, activity: { ...activity, state: "interrupted", error } }
    const stateOf = (line: string) => line.split("  ")[1]
    assert.strictEqual(stateOf(sessionTable([running])), "running")
    assert.strictEqual(stateOf(sessionTable([left])), "cut off")
    const waiting = (workspaceID: string | undefined) => sessionTable([left], new Map([[session.id, { workspaceID }]]))
    assert.strictEqual(stateOf(waiting(undefined)), "waiting")
  })

  it("CL-823: a session whose workspace no node has waits for the workspace", () => {
    assert.strictEqual(
      sessionTable([session], new Map([[session.id, { workspaceID: "gpu" }]])).split("  ")[1],
      "waiting for gpu"
    )
  })

  it("CL-621: a session whose answer is not whole has that as its state, and its head has the sentence", () => {
    const error = { type: "answer.refused", message: "The model refused to answer." }
    const activity = { id: ActivityID.make("act_a"), state: "completed", error } as const
    assert.strictEqual(sessionTable([{ ...session, activity }]).split("  ")[1], "answer refused")
    assert.match(sessionHead({ ...session, activity }), /^activity +answer refused: The model refused to answer\.$/m)
  })

  it("CL-621: a transcript ends an answer that is not whole with its sentence, and a whole one without", () => {
    const answer = (finish: string, text: string) =>
      ({
        type: "assistant",
        id: MessageID.make("msg_a"),
        seq: 1,
        createdAt: 0,
        agent: "build",
        model: { providerID: "p", id: "m" },
        content: [{ type: "text", id: "t", text }],
        finish,
        tokens: { input: 1, output: 4_096, reasoning: 0, cache: { read: 0, write: 0 } }
      }) satisfies Message
    assert.include(
      messageText(answer("length", "Half of it"), false),
      "Half of it\n\n! The answer was cut off at the model's output limit, after 4,096 tokens.\n"
    )
    assert.include(messageText(answer("stop", ""), false), "\n! The model answered nothing.\n")
    assert.notInclude(messageText(answer("stop", "All of it"), false), "!")
  })

  it("CL-15: a message is one line: its words, then its calls", () => {
    assert.strictEqual(
      messageLine(assistant("Let me\nsee", "x")),
      "     7  2026-01-02 03:04:05Z  assistant       msg_a  Let me see [read]\n"
    )
  })

  it("CL-440: a transcript says what the model is shown in place of a message or a result", () => {
    const edits = [{}, { callID: "c1", content: [{ type: "text", text: "other\nwords" }] }]
    const text = messageText({ ...assistant("See", "a result"), edits } as never, true)
    assert.include(text, "a result")
    assert.include(text, "\n~ the model is not shown this message\n")
    assert.include(text, "\n~ in place of the result of c1 the model is shown: other words\n")
  })

  it("CL-640: a transcript says which parts a model is not shown, and why", () => {
    const withheld = [
      { index: 0, kind: "image", model: { providerID: "acme", id: "m1" }, reason: "no\npictures" },
      { callID: "c1", kind: "input", model: { providerID: "acme", id: "m1" }, reason: "flagged" }
    ]
    const text = messageText({ ...assistant("See", "a result"), withheld } as never, true)
    assert.include(text, "\n~ acme/m1 is not shown a picture: its server refused it (no pictures)\n")
    assert.include(text, "\n~ acme/m1 is not shown the input of call c1: its server refused it (flagged)\n")
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
    const helped = verb as unknown as Parameters<typeof verbHelps>[0][number]
    const travel = { ...helped, name: "travel", flags: [], actions: [helped], words: "ACTION" }
    assert.match(rootHelp("1.2.3", [helped]), /^daybook 1\.2\.3.*\n[^]* {2}fly {2}fly somewhere\n/)
    const texts = verbHelps([helped, travel])
    assert.deepStrictEqual(Object.keys(texts), ["fly", "travel", "travel fly"])
    for (const [name, parts] of Object.entries({
      fly: ["Usage: daybook fly [options] PLACE", "--fast", "--by WHAT", "daybook fly home"],
      travel: ["Usage: daybook travel ACTION", "  fly PLACE  fly somewhere"],
      "travel fly": ["Usage: daybook travel fly [options] PLACE", "--fast", "--by WHAT"]
    })) {
      for (const part of parts) assert.include(texts[name], part)
    }
  })
})
