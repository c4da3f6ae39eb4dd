/**
 * What waits for a session and becomes visible at a safe boundary: which input opens an activity, which steers join it,
 * and the events that show them. Spec: EX-D3, EX-D4 (TU-3, PR-2..PR-6, IN-12).
 */
import { Effect, Option, Struct } from "effect"
import { draft, type Draft } from "../events/SessionEvents.ts"
import type { SessionID } from "../Identifiers.ts"
import { EventLog } from "../log/EventLog.ts"
import type { Input } from "../session/Message.ts"
import type { Delivery } from "../session/Schemas.ts"
import { SessionStore } from "../session/SessionStore.ts"

/** What an activity begins with. */
export type Trigger = "steer" | "queue" | "resume"

/** What the prompt came to is in its admission, once. */
export const promotion = ({ createdAt, id, prompt }: Input): Draft =>
  draft("session.next.prompt.promoted", {
    messageID: id,
    prompt: Struct.omit(prompt, "expansion"),
    timeCreated: createdAt
  })

export const make = Effect.fnUntraced(function* (steerBatchLimit: number) {
  const log = yield* EventLog
  const store = yield* SessionStore

  const waits = (sessionID: SessionID, delivery: Delivery) =>
    Effect.map(store.waiting(sessionID, { delivery, limit: 1 }), (inputs) => inputs.length > 0)

  return {
    waits,
    /** Whether one of them was taken back meanwhile. */
    withdrawn: (inputs: ReadonlyArray<Input>) =>
      Effect.exists(inputs, ({ id }) => Effect.map(store.input(id), (input) => input?.withdrawnSeq !== undefined)),
    /** In queue mode the oldest queued input, then steers up to the cutoff (PR-2). */
    eligible: Effect.fnUntraced(function* (sessionID: SessionID, mode: Trigger) {
      const cutoff = yield* log.latest(sessionID)
      const queued = mode === "queue" ? yield* store.waiting(sessionID, { delivery: "queue", limit: 1 }) : []
      const steers = yield* store.waiting(sessionID, { delivery: "steer", through: cutoff, limit: steerBatchLimit })
      return [...queued, ...steers]
    }),
    /** A waiting steer comes before an older queued input (PR-5). */
    pick: Effect.fnUntraced(function* (sessionID: SessionID) {
      if (yield* waits(sessionID, "steer")) return Option.some<Trigger>("steer")
      return (yield* waits(sessionID, "queue")) ? Option.some<Trigger>("queue") : Option.none<Trigger>()
    })
  }
})
