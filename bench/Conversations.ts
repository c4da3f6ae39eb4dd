/**
 * Generates sessions with the content of real work: prompts and answers are sentences of this project's specifications,
 * calls and results are those of `Work.ts`, and commands report progress. Seeded, so that two runs hold the same.
 */
import { ActivityID, MessageID } from "../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft } from "../packages/log/src/events/SessionEvents.ts"
import { type Call, calls, choosing, type Corpus } from "./Work.ts"
import { model, tokens } from "./Workload.ts"

const provider = { executed: false }

/** Progress events of a command, of at most so many characters: what `bash` reports once a second. */
const [mostProgress, progressLength] = [4, 2000]

/** Makes the sessions of a store: each has its own calls. */
export const sessions = (corpus: Corpus, seed: number) => {
  const choose = choosing(seed)
  const { between, one } = choose
  const joined = (length: number) => {
    let text = ""
    while (text.length < length) text += one(corpus.sentences) + " "
    return text
  }
  let made = 0
  /** Grows as a ULID does, with as many random digits. */
  const identifier = (prefix: string) => {
    const digits = Array.from({ length: 16 }, () => one([..."0123456789ABCDEFGHJKMNPQRSTVWXYZ"])).join("")
    return `${prefix}_${String(made++).padStart(10, "0")}${digits}`
  }

  const content = (text: string) => [{ type: "text" as const, text }]

  const called = (assistantMessageID: MessageID, { input, output, structured, tool }: Call): ReadonlyArray<Draft> => {
    const callID = identifier("toolu")
    const reports = tool === "bash" ? between(0, mostProgress) : 0
    return [
      draft("session.next.tool.input.started", { assistantMessageID, callID, name: tool }),
      draft("session.next.tool.input.ended", { assistantMessageID, callID, text: JSON.stringify(input) }),
      draft("session.next.tool.called", { assistantMessageID, callID, tool, input, provider }),
      ...Array.from({ length: reports }, (_, index) => {
        const end = Math.floor((output.length * (index + 1)) / (reports + 1))
        return draft("session.next.tool.progress", {
          assistantMessageID,
          callID,
          structured: { bytes: end },
          content: content(output.slice(Math.max(0, end - progressLength), end))
        })
      }),
      draft("session.next.tool.success", { assistantMessageID, callID, structured, content: content(output), provider })
    ]
  }

  const step = (middle: (id: MessageID) => ReadonlyArray<Draft>, finish: string): ReadonlyArray<Draft> => {
    const assistantMessageID = MessageID.make(identifier("msg"))
    const text = joined(between(80, finish === "stop" ? 1500 : 200))
    return [
      draft("session.next.step.started", { assistantMessageID, agent: "build", model }),
      draft("session.next.text.started", { assistantMessageID, textID: "0" }),
      draft("session.next.text.ended", { assistantMessageID, textID: "0", text }),
      ...middle(assistantMessageID),
      draft("session.next.step.ended", { assistantMessageID, finish, cost: 0.0123, tokens })
    ]
  }

  /** Every event of one turn: a prompt, up to six steps with a call, and an answer. */
  const turn = (next: () => Call): ReadonlyArray<Draft> => {
    const messageID = MessageID.make(identifier("msg"))
    const activityID = ActivityID.make(identifier("act"))
    const prompt = { text: joined(between(50, 400)) }
    return [
      draft("session.next.prompt.admitted", { messageID, prompt, delivery: "steer" }),
      draft("session.next.prompt.promoted", { messageID, prompt, timeCreated: 1_750_000_000_000 }),
      draft("session.next.activity.started", { activityID, trigger: "steer" }),
      ...Array.from({ length: between(1, 6) }, () => step((id) => called(id, next()), "tool-calls")).flat(),
      ...step(() => [], "stop"),
      draft("session.next.activity.settled", { activityID, outcome: "completed" })
    ]
  }
  /** A new session: returns its turns, one after another. */
  return () => {
    const next = calls(corpus, choose)
    return () => turn(next)
  }
}
