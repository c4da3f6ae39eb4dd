/**
 * Lets one piece of work run at a time, in the order of the calls. A turn that is free costs a third of the steps that a semaphore
 * takes. Spec: SL-22 in specs/shell.md.
 */
import { Effect } from "effect"

/** Waits for its turn. An interruption while it waits gives the turn up. */
export type Turn = <A, E>(work: Effect.Effect<A, E>) => Effect.Effect<A, E>

export const make = (): Turn => {
  let taken = false
  const waiting = new Set<() => void>()
  const leave = () => {
    const [next] = waiting
    if (next === undefined) {
      taken = false
      return
    }
    waiting.delete(next)
    next()
  }
  const enter = Effect.async<void>((resume) => {
    const call = () => resume(Effect.void)
    waiting.add(call)
    return Effect.sync(() => {
      // The turn may have come together with the interruption.
      if (!waiting.delete(call)) leave()
    })
  })
  return (work) =>
    Effect.uninterruptibleMask((restore) => {
      const run = Effect.flatMap(Effect.exit(restore(work)), (exit) => {
        leave()
        return exit
      })
      if (taken) return Effect.zipRight(restore(enter), run)
      taken = true
      return run
    })
}
