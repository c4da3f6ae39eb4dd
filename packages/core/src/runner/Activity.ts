/**
 * The state of a running activity and its transitions. Pure. `SessionRunner.ts` keeps it in a `Ref`; the turn loop and
 * the safe boundary advance it. Spec: EX-D3, EX-D4 (TU-3, PR-2..PR-6, IN-12).
 */
import { Effect, Struct } from "effect"
import { type AnswerProblem, problemOfMessage } from "@daybook/log/domain/AnswerProblem"
import type { ActivityID, SessionID } from "@daybook/log/domain/Identifiers"
import type { Input, Message } from "@daybook/log/domain/Message"
import { type Delivery, join, type Wishes } from "@daybook/log/domain/Values"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import type { OwnerToken } from "@daybook/log/log/EventLog"
import { type Continued, nothingContinued } from "@daybook/log/store/ActivityRows"
import { Inbox } from "@daybook/log/store/Inbox"
import type { Standing } from "@daybook/log/store/SessionStore"
import type { Agent } from "../domain/Agent.ts"
import { noOutput, type OutputState } from "../request/StructuredOutput.ts"

// Selects waiting inputs at a safe boundary: the input that opens an activity, the steers that join it, and the events
// that promote them.

/** What opens an activity. */
export type Trigger = "steer" | "queue" | "resume"

/** The promotion event. It omits the expansion, which the admission event already stores. */
export const promotion = ({ createdAt, id, prompt }: Input): Draft =>
  draft("session.next.prompt.promoted", {
    messageID: id,
    prompt: Struct.omit(prompt, "expansion"),
    timeCreated: createdAt
  })

/** A waiting steer precedes an older queued input (PR-5). */
export const pick = ({ queued, steers }: Pick<Standing, "queued" | "steers">): Trigger | undefined =>
  steers > 0 ? "steer" : queued > 0 ? "queue" : undefined

export const makeEligibility = Effect.fnUntraced(function* (steerBatchLimit: number) {
  const inbox = yield* Inbox

  const waits = (sessionID: SessionID, delivery: Delivery) =>
    Effect.map(inbox.waiting(sessionID, { delivery, limit: 1 }), (inputs) => inputs.length > 0)

  return {
    waits,
    /** Whether any of these inputs was withdrawn in the meantime. */
    withdrawn: (inputs: ReadonlyArray<Input>) =>
      Effect.exists(inputs, ({ id }) => Effect.map(inbox.get(id), (input) => input?.withdrawnSeq !== undefined)),
    /** In queue mode, the oldest queued input; then the steers admitted so far (PR-2). */
    eligible: Effect.fnUntraced(function* (sessionID: SessionID, mode: Trigger) {
      const queued = mode === "queue" ? yield* inbox.waiting(sessionID, { delivery: "queue", limit: 1 }) : []
      // One read is the cutoff: it sees the inputs of one moment.
      const steers = yield* inbox.waiting(sessionID, { delivery: "steer", limit: steerBatchLimit })
      return [...queued, ...steers]
    })
  }
})

export type Eligibility = Effect.Effect.Success<ReturnType<typeof makeEligibility>>

/** Provider turns per activity when the agent sets no limit (TU-4). */
const defaultTurnLimit = 25

/** A session and the token of its ownership. */
export interface Owned {
  readonly sessionID: SessionID
  readonly owner: OwnerToken
}

/** Whether this process ends, so that the session goes on in another at its next safe boundary (EX-820). */
export type Leaving = () => boolean

/** `opening` holds the prompts that opened the work, `wishes` the request options of its prompts. */
export interface Activity extends Continued {
  readonly id: ActivityID
  readonly trigger: Trigger
  /** Its start is in the log. */
  readonly started: boolean
  /** Its end is in the log. */
  readonly ended: boolean
  /** The session just before that end, if nothing waited for another activity. */
  readonly rest: Standing | undefined
  readonly turns: number
  readonly turnLimit: number
  /** What its last answer lacks, once it is done. */
  readonly problem: AnswerProblem | undefined
  /** Progress of the structured answer; the tool that takes the answer changes it. */
  readonly output: OutputState
}

/** An activity that is not in the log yet. */
export const begin = (id: ActivityID, trigger: Trigger): Activity => ({
  id,
  trigger,
  started: false,
  ended: false,
  rest: undefined,
  turns: 0,
  turnLimit: defaultTurnLimit,
  problem: undefined,
  ...nothingContinued,
  output: noOutput()
})

/** An activity that its last owner handed over. */
export const goOn = (id: ActivityID, turns: number, before: Continued): Activity => ({
  ...begin(id, "steer"),
  ...before,
  started: true,
  turns
})

/** Applies the agent's turn limit. An agent may change between turns. */
export const withAgent = (activity: Activity, { turnLimit = defaultTurnLimit }: Agent): Activity => ({
  ...activity,
  turnLimit
})

/** Adds promoted inputs to the work before them. */
export const withInputs = (activity: Activity, before: Continued, inputs: ReadonlyArray<Input>): Activity => ({
  ...activity,
  started: true,
  wishes: inputs.reduce<Wishes>((wishes, { prompt }) => join(wishes, prompt), before.wishes),
  opening: before.opening.length > 0 ? before.opening : inputs.map(({ id }) => id),
  output: inputs.length > 0 ? noOutput() : activity.output
})

/** Notes that its end is in the log, and the session just before. */
export const withEnd = (activity: Activity, standing: Standing): Activity => ({
  ...activity,
  ended: true,
  rest: standing.queued === 0 && standing.session.compaction?.state !== "requested" ? standing : undefined
})

/** Counts a completed turn. */
export const withTurn = (activity: Activity): Activity => ({ ...activity, turns: activity.turns + 1 })

/** Notes what the last answer lacks. */
export const withProblem = (activity: Activity, problem: AnswerProblem | undefined): Activity => ({
  ...activity,
  problem
})

/**
 * Whether an empty answer to these messages is asked again: once since the last prompt, by the log alone, and only if
 * the limit allows another turn (EX-T44).
 */
export const mayAskAgain = ({ turnLimit, turns }: Activity, messages: ReadonlyArray<Message>): boolean => {
  if (turns + 1 >= turnLimit) return false
  for (const message of messages.toReversed()) {
    if (message.type === "user") return true
    if (message.type === "assistant" && problemOfMessage(message)?.type === "answer.empty") return false
  }
  return true
}

/** Whether the next turn is the last one that the limit allows. */
export const isLastTurn = ({ turnLimit, turns }: Activity): boolean => turns > 0 && turns === turnLimit - 1
