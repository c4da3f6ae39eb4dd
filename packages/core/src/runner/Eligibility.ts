/**
 * Selects waiting inputs at a safe boundary: the input that opens an activity, the steers that join it, and the events
 * that promote them. Spec: EX-D3, EX-D4 (TU-3, PR-2..PR-6, IN-12).
 */
import { Effect, Struct } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Input } from "@daybook/log/domain/Message"
import type { Delivery } from "@daybook/log/domain/Values"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import { Inbox } from "@daybook/log/store/Inbox"
import type { Standing } from "@daybook/log/store/SessionStore"

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

export const make = Effect.fnUntraced(function* (steerBatchLimit: number) {
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

export type Eligibility = Effect.Effect.Success<ReturnType<typeof make>>
