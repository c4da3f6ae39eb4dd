/**
 * Lets one piece of work run at a time, in the order of the calls. Effect's semaphore does not keep the order: a fiber
 * that releases its permit and takes it again overtakes those that wait. Spec: ST-400 in specs/storage.md, SL-22 in
 * specs/shell.md.
 */
import { Deferred, Effect, FiberId } from "effect"

export interface FairLock {
  /** Whether work holds the lock, or waits for it. */
  readonly isTaken: () => boolean
  /**
   * Takes the lock, after all that wait for it. Only the waiting can be interrupted, if `restore` makes it interruptible.
   * The caller must not be interruptible before it has made sure that it will `leave`.
   */
  readonly enter: (restore: (waiting: Effect.Effect<void>) => Effect.Effect<void>) => Effect.Effect<void>
  /** Hands the lock to the first that waits. */
  readonly leave: () => void
  readonly run: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

export const make = (): FairLock => {
  let taken = false
  const waiting = new Set<() => void>()
  const leave = () => {
    const [next] = waiting
    if (next === undefined) {
      taken = false
      return
    }
    // It stays taken: nothing comes between this holder and the next.
    waiting.delete(next)
    next()
  }

  const enter: FairLock["enter"] = (restore) =>
    Effect.uninterruptible(
      Effect.suspend(() => {
        if (!taken) {
          taken = true
          return Effect.void
        }
        const turn = Deferred.unsafeMake<void>(FiberId.none)
        const call = () => Deferred.unsafeDone(turn, Effect.void)
        waiting.add(call)
        return Effect.onError(restore(Deferred.await(turn)), () =>
          Effect.sync(() => {
            // The lock may have been handed over together with the interruption.
            if (!waiting.delete(call)) leave()
          })
        )
      })
    )

  return {
    isTaken: () => taken,
    enter,
    leave,
    run: (work) =>
      Effect.uninterruptibleMask((restore) => {
        const run = Effect.flatMap(Effect.exit(restore(work)), (exit) => {
          leave()
          return exit
        })
        if (taken) return Effect.zipRight(enter(restore), run)
        taken = true
        return run
      })
  }
}
