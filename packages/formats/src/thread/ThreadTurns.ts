/**
 * Runs the turns of one thread one after the other. A turn that arrives meanwhile waits; the queue is bounded, and
 * interrupting a waiting turn removes it. Spec: FM-115 (seed 003, 7.6; TH-14).
 */
import { Effect, Schema } from "effect"
import { ThreadID } from "./ThreadID.ts"

/** Too many messages wait for this thread. Nothing was appended; send the message again later. */
export class ThreadBusy extends Schema.TaggedError<ThreadBusy>("@daybook/formats/ThreadBusy")("ThreadBusy", {
  id: ThreadID,
  waiting: Schema.NonNegativeInt
}) {
  override get message() {
    return `${this.waiting} messages wait for thread ${this.id} already; send this one again later`
  }
}

/** Turns that may wait while one runs. */
export const maxWaiting = 16

export interface ThreadTurns {
  /** Runs the turn when those before it have ended. */
  readonly run: <A, E, R>(turn: Effect.Effect<A, E, R>) => Effect.Effect<A, E | ThreadBusy, R>
}

/** The turns of one thread. */
export const make = (id: ThreadID, most: number = maxWaiting): ThreadTurns => {
  const mutex = Effect.unsafeMakeSemaphore(1)
  let turns = 0
  return {
    run: (turn) =>
      Effect.acquireUseRelease(
        Effect.suspend(() => {
          if (turns > most) return new ThreadBusy({ id, waiting: turns - 1 })
          turns += 1
          return Effect.void
        }),
        () => mutex.withPermits(1)(turn),
        () => Effect.sync(() => void (turns -= 1))
      )
  }
}
