/**
 * Selects waiting inputs at a safe boundary: the input that opens an activity, the steers that join it, and the events
 * that promote them. Spec: EX-D3, EX-D4 (TU-3, PR-2..PR-6, IN-12).
 */
import { Effect, Option, Struct } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Input } from "@daybook/log/domain/Message"
import type { Delivery } from "@daybook/log/domain/Values"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { Inbox } from "@daybook/log/store/Inbox"

/** What opens an activity. */
export type Trigger = "steer" | "queue" | "resume"

/** The promotion event. It omits the expansion, which the admission event already stores. */
export const promotion = ({ createdAt, id, prompt }: Input): Draft =>
  draft("session.next.prompt.promoted", {
    messageID: id,
    prompt: Struct.omit(prompt, "expansion"),
    timeCreated: createdAt
  })

export const make = Effect.fnUntraced(function* (steerBatchLimit: number) {
  const log = yield* EventLog
  const inbox = yield* Inbox

  const waits = (sessionID: SessionID, delivery: Delivery) =>
    Effect.map(inbox.waiting(sessionID, { delivery, limit: 1 }), (inputs) => inputs.length > 0)

  return {
    waits,
    /** Whether any of these inputs was withdrawn in the meantime. */
    withdrawn: (inputs: ReadonlyArray<Input>) =>
      Effect.exists(inputs, ({ id }) => Effect.map(inbox.get(id), (input) => input?.withdrawnSeq !== undefined)),
    /** In queue mode, the oldest queued input; then the steers admitted up to the cutoff (PR-2). */
    eligible: Effect.fnUntraced(function* (sessionID: SessionID, mode: Trigger) {
      const cutoff = yield* log.latest(sessionID)
      const queued = mode === "queue" ? yield* inbox.waiting(sessionID, { delivery: "queue", limit: 1 }) : []
      const steers = yield* inbox.waiting(sessionID, { delivery: "steer", through: cutoff, limit: steerBatchLimit })
      return [...queued, ...steers]
    }),
    /** A waiting steer precedes an older queued input (PR-5). */
    pick: Effect.fnUntraced(function* (sessionID: SessionID) {
      if (yield* waits(sessionID, "steer")) return Option.some<Trigger>("steer")
      return (yield* waits(sessionID, "queue")) ? Option.some<Trigger>("queue") : Option.none<Trigger>()
    })
  }
})

export type Eligibility = Effect.Effect.Success<ReturnType<typeof make>>
