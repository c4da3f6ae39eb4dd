/**
 * Slows admission down while the event loop is late, so that running sessions are served before new work begins. No
 * prompt is refused, and none overtakes another. Spec: LM-41..LM-43 in specs/limits.md.
 */
import { Context, Deferred, Effect, Exit, FiberId, Layer } from "effect"
import { LoopLag, watch } from "../support/LoopLag.ts"

/** Lag in milliseconds above which prompts wait, unless the host sets another limit. */
export const defaultLimit = 200

/** Pauses that one prompt waits at most, as the first in line. */
const longest = 5

/** Lets prompts through. */
export class AdmissionGate extends Context.Tag("@daybook/core/AdmissionGate")<
  AdmissionGate,
  {
    /** Returns at once while the loop is on time. Otherwise waits in line until it is, or a second as the first in line. */
    readonly enter: Effect.Effect<void>
  }
>() {}

/** A gate over any lag, in milliseconds. */
export const make = (limit: number, lag: () => number, pause: Effect.Effect<void>): AdmissionGate["Type"] => {
  const isLate = () => lag() > limit
  /** Done when the last prompt in line has passed. */
  let last: Deferred.Deferred<void> | undefined
  const wait = Effect.suspend(() => (isLate() ? pause : Effect.void)).pipe(
    Effect.repeat({ times: longest - 1, while: isLate }),
    Effect.asVoid
  )
  const queue = Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      const before = last === undefined ? Effect.void : Deferred.await(last)
      const passed = Deferred.unsafeMake<void>(FiberId.none)
      last = passed
      const leave = Effect.sync(() => {
        if (last === passed) last = undefined
        Deferred.unsafeDone(passed, Effect.void)
      })
      return Effect.flatMap(Effect.exit(restore(before)), (turn) => {
        if (Exit.isSuccess(turn)) return Effect.ensuring(restore(wait), leave)
        // Interrupted in line: the next one waits for those before.
        Deferred.unsafeDone(passed, before)
        return turn
      })
    })
  )
  const enter = Effect.suspend(() => (last === undefined && !isLate() ? Effect.void : queue))
  return { enter }
}

/** The gate of a runtime. `limit` in milliseconds. */
export const layer = (limit: number = defaultLimit) =>
  Layer.scoped(
    AdmissionGate,
    Effect.map(Effect.all([watch, LoopLag]), ([lag, { pause }]) => make(limit, () => lag().p50, pause))
  )
