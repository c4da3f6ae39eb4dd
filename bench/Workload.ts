/** Generates the events of a session: turns of a coding agent with one tool call each, in typical sizes. */
import { ActivityID, MessageID } from "../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft } from "../packages/log/src/events/SessionEvents.ts"

const sentence = "The build reads the manifest first, then every workspace in the order of its references. "
const prose = (bytes: number) => sentence.repeat(Math.ceil(bytes / sentence.length)).slice(0, bytes)

const question = prose(200)
const answer = prose(700)
const source = prose(1200)

export const model = { providerID: "anthropic", id: "claude-sonnet" }
export const tokens = { input: 5210, output: 402, reasoning: 0, cache: { read: 4096, write: 512 } }
const provider = { executed: false }

/** The first event of a session in a folder. */
export const createdAt = (directory: string): Draft =>
  draft("session.created", { location: { directory }, agent: "build", model })

/** The first event of every session that does not run. */
export const created: Draft = createdAt("/home/ada/project")

let made = 0

/** Identifiers that are as long as generated ones and also increase with time. */
const identifier = (prefix: string): string => `${prefix}_${String(made++).padStart(26, "0")}`

/** Every event of one turn, in order. */
export const turn = (): ReadonlyArray<Draft> => {
  const messageID = MessageID.make(identifier("msg"))
  const assistantMessageID = MessageID.make(identifier("msg"))
  const activityID = ActivityID.make(identifier("act"))
  const callID = identifier("toolu")
  const prompt = { text: question }
  const input = { path: "packages/core/src/index.ts", offset: 0, limit: 400 }
  return [
    draft("session.next.prompt.admitted", { messageID, prompt, delivery: "steer" }),
    draft("session.next.prompt.promoted", { messageID, prompt, timeCreated: 1_750_000_000_000 }),
    draft("session.next.activity.started", { activityID, trigger: "steer" }),
    draft("session.next.step.started", { assistantMessageID, agent: "build", model }),
    draft("session.next.text.started", { assistantMessageID, textID: "0" }),
    draft("session.next.text.ended", { assistantMessageID, textID: "0", text: answer }),
    draft("session.next.tool.input.started", { assistantMessageID, callID, name: "read" }),
    draft("session.next.tool.input.ended", { assistantMessageID, callID, text: JSON.stringify(input) }),
    draft("session.next.tool.called", { assistantMessageID, callID, tool: "read", input, provider }),
    draft("session.next.tool.success", {
      assistantMessageID,
      callID,
      structured: { lines: 40, truncated: false },
      content: [{ type: "text", text: source }],
      provider
    }),
    draft("session.next.step.ended", { assistantMessageID, finish: "tool-calls", cost: 0.0123, tokens }),
    draft("session.next.activity.settled", { activityID, outcome: "completed" })
  ]
}

/** An event whose text is a time, in milliseconds. */
export const timed = (time: number): Draft =>
  draft("session.next.prompt.admitted", {
    messageID: MessageID.make(identifier("msg")),
    prompt: { text: `at ${time} ${question}` },
    delivery: "steer"
  })

/** Bytes of one turn's content: the prompt, the answer, the call's input and output. */
export const saidBytes = question.length + answer.length + source.length + 60

/** Endless events of one session's turns. */
export function* events(): Generator<Draft, never> {
  for (;;) yield* turn()
}
