/** Logs for the inspector's tests: one with everything that it shows, hostile ones, and long ones. */
import { Array as Arr, Effect } from "effect"
import { ActivityID, MessageID, SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { draft, type Draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"

export const model = { providerID: "example", id: "large-1" }

const tokens = (input: number, output: number, read = 0) => ({
  input,
  output,
  reasoning: 0,
  cache: { read, write: 0 }
})

/** Milliseconds: the beginning of the logs. */
export const beginning = Date.UTC(2026, 10, 26, 16, 20)

/** A draft, and the milliseconds since the one before it. */
export type Timed = readonly [afterMs: number, draft: Draft]

const baseline = [
  "You work in /home/u/shop on Debian 13.",
  "Date: 26 November 2026.",
  "Instructions of AGENTS.md: run the tests before you answer."
].join("\n")

const framed = (index: number): Draft =>
  draft("session.next.request.framed", {
    hash: `frame-${index}`,
    system: ["You are a careful engineer.", baseline],
    baselineSeq: -1,
    tools: {
      offered: ["read", "bash"],
      defined: [
        {
          name: "read",
          description: "Reads a file",
          parameters: { type: "object", properties: { path: { type: "string" } } }
        },
        {
          name: "bash",
          description: "Runs a command",
          parameters: { type: "object", properties: { command: { type: "string" } } }
        }
      ]
    },
    settings: { temperature: 0.2 },
    context: {
      baseline: 1,
      snapshot: { told: { date: { value: "26 November" }, instructions: { value: "AGENTS.md" } } }
    }
  })

const call = (
  assistantMessageID: MessageID,
  callID: string,
  tool: string,
  input: Record<string, string>,
  ms: number,
  output: string
): ReadonlyArray<Timed> => [
  [40, draft("session.next.tool.input.started", { assistantMessageID, callID, name: tool })],
  [120, draft("session.next.tool.input.ended", { assistantMessageID, callID, text: JSON.stringify(input) })],
  [5, draft("session.next.tool.called", { assistantMessageID, callID, tool, input, provider: { executed: false } })],
  [
    ms,
    draft("session.next.tool.success", {
      assistantMessageID,
      callID,
      structured: {},
      content: [{ type: "text", text: output }],
      provider: { executed: false }
    })
  ]
]

const answer = (assistantMessageID: MessageID, text: string, ms: number): ReadonlyArray<Timed> => [
  [300, draft("session.next.text.started", { assistantMessageID, textID: "t" })],
  [ms, draft("session.next.text.ended", { assistantMessageID, textID: "t", text })]
]

const report = `The total was wrong because **rounding** happened per line. I moved it to the end:

\`\`\`ts
const total = (lines: ReadonlyArray<Line>): number =>
  Math.round(lines.reduce((sum, { price, count }) => sum + price * count, 0) * 100) / 100
\`\`\`

| order | before | after |
|---|---|---|
| 4711 | 19.98 | 19.97 |
| 4712 | 5.00 | 5.00 |

1. All 48 tests pass.
2. The report of \`npm test\` is in the output above.
`

/** A session with prompts, turns, tools, a retry, a compaction, a failure and a budget. */
export const rich = (name: string): ReadonlyArray<Timed> => {
  const id = (word: string) => MessageID.make(`msg_${name}-${word}`)
  const activity = (word: string) => ActivityID.make(`act_${name}-${word}`)
  const step = (word: string, inputEstimate: number): Timed => [
    30,
    draft("session.next.step.started", { assistantMessageID: id(word), agent: "build", model, inputEstimate })
  ]
  const ended = (word: string, cost: number, used: ReturnType<typeof tokens>, finish = "stop"): Timed => [
    20,
    draft("session.next.step.ended", { assistantMessageID: id(word), finish, cost, tokens: used })
  ]
  const ask = (word: string, text: string): ReadonlyArray<Timed> => [
    [10, draft("session.next.prompt.admitted", { messageID: id(word), prompt: { text }, delivery: "steer" })],
    [15, draft("session.next.activity.started", { activityID: activity(word), trigger: "steer" })],
    [5, draft("session.next.prompt.promoted", { messageID: id(word), prompt: { text }, timeCreated: beginning })]
  ]
  const settled = (word: string): Timed => [
    25,
    draft("session.next.activity.settled", { activityID: activity(word), outcome: "completed" })
  ]
  return [
    [
      0,
      draft("session.created", {
        location: { directory: "/home/u/shop" },
        agent: "build",
        model,
        title: "Fix the totals of the shop"
      })
    ],
    [5, draft("session.next.budget.set", { budget: { cost: 1 } })],
    ...ask("p1", "The totals of orders are off by a cent. Find out why, and fix it.\n\nStart with `src/total.ts`."),
    [20, framed(1)],
    step("a1", 2_100),
    [900, draft("session.next.reasoning.started", { assistantMessageID: id("a1"), reasoningID: "r" })],
    [
      700,
      draft("session.next.reasoning.ended", {
        assistantMessageID: id("a1"),
        reasoningID: "r",
        text: "I read the file first, then run the tests."
      })
    ],
    ...call(id("a1"), "c1", "read", { path: "src/total.ts" }, 35, "export const total = (lines) => lines.map(round)…"),
    ...call(
      id("a1"),
      "c2",
      "bash",
      { command: "npm test -- total" },
      4_200,
      "✗ total of 4711\n  expected 19.97\n  received 19.98\n\n1 failed, 47 passed"
    ),
    ended("a1", 0.021, tokens(2_140, 180), "tool-calls"),
    [
      10,
      draft("session.next.retried", {
        attempt: 1,
        waitMs: 2_000,
        error: { message: "overloaded", statusCode: 529, isRetryable: true }
      })
    ],
    [
      2_000,
      draft("session.next.step.started", { assistantMessageID: id("a2"), agent: "build", model, inputEstimate: 2_600 })
    ],
    ...call(id("a2"), "c1", "bash", { command: "npm test" }, 9_300, "48 passed"),
    ...answer(id("a2"), report, 2_400),
    ended("a2", 0.034, tokens(2_900, 420, 2_048)),
    settled("p1"),
    // A night.
    [
      9 * 3_600_000,
      draft("session.next.context.updated", { messageID: id("s1"), text: "The date is now 27 November 2026." })
    ],
    ...ask("p2", "Thank you. Does the invoice have the same problem?"),
    step("a3", 3_300),
    ...call(
      id("a3"),
      "c1",
      "bash",
      { command: "grep -rn round src/invoice" },
      160,
      "src/invoice/Invoice.ts:41: round(line)"
    ),
    ended("a3", 0.012, tokens(3_400, 90, 2_900), "tool-calls"),
    [30, draft("session.next.compaction.started", { messageID: id("k1"), reason: "auto" })],
    [
      3_100,
      draft("session.next.compaction.ended", {
        messageID: id("k1"),
        reason: "auto",
        text: "The totals were fixed; the invoice rounds per line too.",
        recent: "",
        cost: 0.008,
        tokens: tokens(3_600, 120)
      })
    ],
    [20, framed(2)],
    step("a4", 1_400),
    ...answer(id("a4"), "Yes: `Invoice.ts` line 41 rounds each line. Shall I change it too?", 1_300),
    ended("a4", 0.009, tokens(1_500, 60)),
    settled("p2"),
    ...ask("p3", "Yes, please."),
    step("a5", 1_600),
    [
      600,
      draft("session.next.step.failed", {
        assistantMessageID: id("a5"),
        error: { type: "provider", message: "The provider closed the connection." }
      })
    ],
    [
      20,
      draft("session.next.activity.settled", {
        activityID: activity("p3"),
        outcome: "failed",
        error: { type: "provider", message: "The provider closed the connection." }
      })
    ]
  ]
}

/** A session of many short turns, of at least so many events. */
export const long = (name: string, events: number): ReadonlyArray<Timed> => {
  const drafts: Array<Timed> = [
    [
      0,
      draft("session.created", {
        location: { directory: "/home/u/long" },
        agent: "build",
        model,
        title: "A long session"
      })
    ],
    [1, draft("session.next.activity.started", { activityID: ActivityID.make(`act_${name}`), trigger: "steer" })]
  ]
  for (let turn = 0; drafts.length < events - 1; turn++) {
    const message = MessageID.make(`msg_${name}-${turn}`)
    drafts.push([30, draft("session.next.step.started", { assistantMessageID: message, agent: "build", model })])
    for (let at = 0; at < 5; at++)
      drafts.push(
        ...call(
          message,
          `c${at}`,
          "bash",
          { command: `make target-${turn}-${at}` },
          50,
          `built ${turn} ${at}\n`.repeat(8)
        )
      )
    drafts.push(...answer(message, `Turn ${turn}: **all** targets of \`make\` are built.`, 200))
    drafts.push([
      20,
      draft("session.next.step.ended", {
        assistantMessageID: message,
        finish: "tool-calls",
        cost: 0.001,
        tokens: tokens(1_000 + turn, 100)
      })
    ])
  }
  drafts.push([
    5,
    draft("session.next.activity.settled", { activityID: ActivityID.make(`act_${name}`), outcome: "completed" })
  ])
  return drafts
}

/** Prompts of one line, which the model was given. */
export const prompts = (name: string, count: number): Arr.NonEmptyArray<Timed> =>
  Arr.flatMap(Arr.range(0, count - 1), (n): Arr.NonEmptyArray<Timed> => {
    const [messageID, prompt] = [MessageID.make(`msg_${name}-prompt-${n}`), { text: `Prompt ${n}` }]
    return [
      [10, draft("session.next.prompt.admitted", { messageID, prompt, delivery: "steer" })],
      [15, draft("session.next.prompt.promoted", { messageID, prompt, timeCreated: beginning })]
    ]
  })

/** A promotion repeats the time of its prompt's admission, which came just before. */
const admittedAt = (each: Draft, time: number): Draft =>
  each.type === "session.next.prompt.promoted" ? { ...each, data: { ...each.data, timeCreated: time } } : each

/** Stores the log of a session, in pages. */
export const store = Effect.fnUntraced(function* (sessionID: string, drafts: ReadonlyArray<Timed>) {
  const log = yield* EventLog
  const id = SessionID.make(sessionID)
  let at = beginning
  const timed = drafts.map(([after, each]) => [(at += after), admittedAt(each, at)] as const)
  for (const page of Arr.chunksOf(timed, 500)) {
    yield* log.append(
      id,
      Arr.map(page, ([, each]) => each),
      { times: page.map(([time]) => time) }
    )
  }
  return id
})
