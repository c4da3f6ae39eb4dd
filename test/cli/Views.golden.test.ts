/**
 * Every view of every event, message and session, word for word. A change of a view changes a file in `golden`, where it
 * is looked at: `npx vitest run test/cli/Views.golden.test.ts -u` writes them.
 */
import { describe, expect, it } from "@effect/vitest"
import { agentTable } from "../../packages/cli/src/commands/models.ts"
import { budgetText } from "../../packages/cli/src/commands/budget.ts"
import { eventJson, eventLine } from "../../packages/cli/src/render/EventLine.ts"
import { findingLine } from "../../packages/cli/src/commands/files.ts"
import { messageLine, messageText } from "../../packages/cli/src/commands/sessions.ts"
import { modelTable } from "../../packages/cli/src/host/ModelList.ts"
import { pendingText } from "../../packages/cli/src/terminal/QuestionPrompt.ts"
import { sessionHead, sessionTable } from "../../packages/cli/src/render/SessionLine.ts"
import { jsonLine } from "../../packages/cli/src/render/Plain.ts"
import { coloured } from "../../packages/cli/src/render/Style.ts"
import * as RunView from "../../packages/cli/src/render/RunView.ts"
import { events, messages, missing, sessions } from "./support/samples.ts"

const golden = (text: string, name: string) => expect(text).toMatchFileSnapshot(`golden/${name}.txt`)

/** What a follower of the session is shown, each write with its stream. */
const followed = (options: RunView.Options) => {
  let view = RunView.make(options)
  let text = ""
  for (const event of events) {
    const [next, writes] = RunView.step(view, event)
    view = next
    text += writes.map((write) => `${write.to}: ${JSON.stringify(write.text)}\n`).join("")
  }
  return text.replaceAll("\\u001b", "ESC")
}

describe("views", () => {
  it("CL-13: every type of event has a sample", () => expect(missing).toEqual([]))

  it("CL-13: events as lines", () => golden(events.map((event) => `${eventLine(event)}\n`).join(""), "events"))

  it("CL-12: events as JSON, for a terminal", () =>
    golden(events.map((event) => `${eventJson(event, true)}\n`).join(""), "events.json"))

  it("CL-7: a run as it is followed without a terminal", () => golden(followed({}), "followed"))

  it("CL-47: a run as it is followed on a terminal", () =>
    golden(followed({ terminal: true, live: true, style: coloured }), "followed.terminal"))

  it("CL-15: messages as lines", () => golden(messages.map(messageLine).join(""), "messages"))

  it("CL-16: messages as a transcript on a terminal", () =>
    golden(messages.map((message) => messageText(message, true)).join(""), "show"))

  it("CL-14: sessions as lines, facts and JSON", () =>
    golden(
      [
        sessionTable(sessions),
        ...sessions.map((session) => sessionHead(session)),
        ...sessions.map((each) => `${jsonLine(each, true)}\n`)
      ].join("\n"),
      "sessions"
    ))

  it("CL-82: questions that wait", () =>
    golden(
      pendingText({
        sessionID: sessions[0]?.id,
        messageID: "msg_a",
        callID: "call_1",
        askedAt: Date.UTC(2026, 0, 2, 3, 4, 5),
        questions: [
          {
            header: "Store",
            question: "Which\nstore?",
            options: [{ label: "SQLite", description: "one file" }, { label: "Files \u001b[2J" }],
            multiple: true
          },
          { question: "Why?" },
          { question: "When?", options: [{ label: "now" }] }
        ]
      } as unknown as Parameters<typeof pendingText>[0]),
      "questions"
    ))

  it("CL-90: what was spent and is left", () => {
    const usage = (cost: number, input: number) => ({
      cost,
      tokens: { input, output: 34, reasoning: 0, cache: { read: 0, write: 0 } }
    })
    const spent = { own: usage(0.5, 1_200), total: usage(1.25, 1_234_567), estimated: { cost: 0.1, tokens: 50 } }
    return golden(
      [
        budgetText({ ...spent, limit: { budget: { cost: 1, tokens: 2_000_000 }, from: "session" } }),
        budgetText({ ...spent, limit: { budget: { cost: 5 }, from: "configuration" } }),
        budgetText({ ...spent, estimated: { cost: 0, tokens: 0 }, limit: undefined })
      ].join("\n"),
      "budget"
    )
  })

  it("CL-92: agents, and what other hands changed, and models", () =>
    golden(
      [
        agentTable([
          { name: "build", mode: "primary", description: "does\nit" },
          { name: "评审", model: { providerID: "p", id: "m", variant: "high" } }
        ] as unknown as Parameters<typeof agentTable>[0]),
        findingLine({ kind: "changed", path: "home/a\nb", details: "it\u001b differs" } as never),
        `${jsonLine({ kind: "changed", path: "home/a", details: "it\u009b differs" }, true)}\n`,
        modelTable([
          { model: "p/模型", name: "x", source: "server", default: false },
          {
            model: "anthropic/m",
            name: "M",
            contextTokens: 200_000,
            outputTokens: 32_000,
            price: { input: 1, output: 5.5, cacheRead: 0, cacheWrite: 0 },
            media: ["image"],
            variants: ["low", "high"],
            source: "catalogue",
            default: true
          },
          {
            model: "openai/m",
            name: "M",
            contextTokens: 1_050_000,
            media: [],
            thinks: true,
            source: "catalogue",
            needs: "OPENAI_API_KEY",
            default: false
          }
        ])
      ].join("\n"),
      "tables"
    ))
})
