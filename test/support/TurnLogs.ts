/** Generates logs as turns make them: prompts, frames, steps with texts and calls, checkpoints, and what is left open. */
import { FastCheck as fc } from "effect"
import { MessageID, ActivityID } from "../../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft } from "../../packages/log/src/events/SessionEvents.ts"
import { admitted, call, created, step, tokens, unique } from "../contracts/Samples.ts"

/** What a turn says and does, and how long its texts are. */
export interface Said {
  readonly prompt: string
  readonly answer: string
  /** The output of each call; undefined: it failed. */
  readonly outputs: ReadonlyArray<string | undefined>
}

const text = (assistantMessageID: MessageID, textID: string, value: string) => [
  draft("session.next.text.started", { assistantMessageID, textID }),
  draft("session.next.text.ended", { assistantMessageID, textID, text: value })
]

const tool = (assistantMessageID: MessageID, callID: string, output: string | undefined): ReadonlyArray<Draft> => [
  ...call({ messageID: assistantMessageID, callID, tool: "bash", input: { command: `run ${callID}` } }),
  draft("session.next.tool.progress", {
    assistantMessageID,
    callID,
    structured: { done: 1 },
    content: [{ type: "text", text: (output ?? "so far").slice(0, 200) }]
  }),
  output === undefined
    ? draft("session.next.tool.failed", {
        assistantMessageID,
        callID,
        error: { type: "failed", message: "it failed" },
        provider: { executed: false }
      })
    : draft("session.next.tool.success", {
        assistantMessageID,
        callID,
        structured: {},
        content: [{ type: "text", text: output }],
        provider: { executed: false }
      })
]

const framed = (turn: number): Draft =>
  draft("session.next.request.framed", {
    hash: `frame ${turn}`,
    ...(turn === 0
      ? {
          system: ["You help."],
          baselineSeq: -1,
          tools: { offered: [], defined: [] },
          settings: {},
          context: { baseline: 0, snapshot: { told: { date: { value: "today" } } } }
        }
      : { settings: { turn } })
  })

/** One activity, from the admission of its prompt until it settles. Odd turns have a reasoning, every third retries. */
export const turn = (index: number, { answer, outputs, prompt }: Said): ReadonlyArray<Draft> => {
  const [input, first, last] = [unique(), unique(), unique()].map((name) => MessageID.make(`msg_${name}`))
  if (input === undefined || first === undefined || last === undefined) return []
  const activityID = ActivityID.make(`act_${unique()}`)
  const retried = draft("session.next.retried", {
    attempt: 1,
    error: { message: "again", isRetryable: true },
    cost: 0.1 * (index + 1),
    tokens: tokens(index + 1),
    estimated: true
  })
  const thought = [
    draft("session.next.reasoning.started", {
      assistantMessageID: last,
      reasoningID: "r",
      providerMetadata: { p: { signature: "s" } }
    }),
    draft("session.next.reasoning.ended", { assistantMessageID: last, reasoningID: "r", text: `thinking of ${prompt}` })
  ]
  const ended = (assistantMessageID: MessageID, finish: string) =>
    draft("session.next.step.ended", { assistantMessageID, finish, cost: 0.25, tokens: tokens(10 + index) })
  return [
    admitted(input, prompt),
    draft("session.next.activity.started", { activityID, trigger: "steer" }),
    draft("session.next.prompt.promoted", { messageID: input, prompt: { text: prompt }, timeCreated: 1 }),
    framed(index),
    ...(outputs.length === 0
      ? []
      : [
          step(first),
          ...outputs.flatMap((output, at) => tool(first, `call_${index}_${at}`, output)),
          ended(first, "tool-calls")
        ]),
    ...(index % 3 === 2 ? [retried] : []),
    step(last),
    ...(index % 2 === 1 ? thought : []),
    ...text(last, "t", answer),
    ended(last, "stop"),
    ...(index % 5 === 4
      ? [
          draft("session.next.context.updated", {
            messageID: MessageID.make(`msg_${unique()}`),
            text: `it is day ${index}`
          })
        ]
      : []),
    draft("session.next.activity.settled", { activityID, outcome: "completed" })
  ]
}

/** A checkpoint between two activities. */
export const checkpoint = (summary: string): ReadonlyArray<Draft> => {
  const messageID = MessageID.make(`msg_${unique()}`)
  return [
    draft("session.next.compaction.started", { messageID, reason: "manual" }),
    draft("session.next.compaction.ended", { messageID, reason: "manual", text: summary, recent: "" })
  ]
}

/** What a log ends with beside settled turns. */
const tails = ["nothing", "waiting", "running", "shell", "compacting"] as const

const tailOf = (kind: (typeof tails)[number]): ReadonlyArray<Draft> => {
  const messageID = MessageID.make(`msg_${unique()}`)
  const activityID = ActivityID.make(`act_${unique()}`)
  switch (kind) {
    case "nothing":
      return []
    case "waiting":
      return [admitted(messageID, "later")]
    case "running":
      return [
        draft("session.next.activity.started", { activityID, trigger: "steer" }),
        step(messageID),
        ...tool(messageID, "open", "x").slice(0, 3)
      ]
    case "shell":
      return [draft("session.next.shell.started", { messageID, callID: messageID, command: "sleep" })]
    case "compacting":
      return [draft("session.next.compaction.started", { messageID, reason: "manual" })]
  }
}

const said: fc.Arbitrary<Said> = fc.record({
  prompt: fc.string({ minLength: 1 }),
  answer: fc.string({ unit: "grapheme", maxLength: 400 }),
  outputs: fc.array(fc.option(fc.string({ maxLength: 300 }), { nil: undefined }), { maxLength: 3 })
})

/** A whole log: the appends of a session, in order. */
export const turnLog: fc.Arbitrary<ReadonlyArray<ReadonlyArray<Draft>>> = fc
  .record({
    turns: fc.array(fc.record({ said, checkpoint: fc.boolean() }), { maxLength: 8 }),
    tail: fc.constantFrom(...tails)
  })
  .map(({ tail, turns }) => [
    [created],
    ...turns.flatMap((each, index) => [
      turn(index, each.said),
      ...(each.checkpoint ? [checkpoint(`summary ${index}`)] : [])
    ]),
    ...[tailOf(tail)].filter(({ length }) => length > 0)
  ])
