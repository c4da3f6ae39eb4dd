/**
 * Serialises the writers of the process's one terminal. A question waits until earlier output is written, and removes the
 * live lines until it is answered. Spec: CL-35, CL-45 in specs/cli.md.
 */
import { Effect } from "effect"

/** The live lines on the terminal. */
export interface Moving {
  /** Returns when all output so far has been written. */
  readonly caughtUp: Effect.Effect<void>
  /** Removes the live lines. */
  readonly clear: Effect.Effect<void>
}

const still: Moving = { caughtUp: Effect.void, clear: Effect.void }
let moving = still

/** Registers the live lines; `undefined` if there are none. */
export const shown = (now: Moving | undefined): void => {
  moving = now ?? still
}

const one = Effect.unsafeMakeSemaphore(1)

/** Runs an effect as the only writer. */
export const turn = one.withPermits(1)

/** How long a question waits for earlier output. */
const patience = "1 second"

/** Gives the terminal to a question, without live lines. */
export const alone = <A, E, R>(question: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const { caughtUp, clear } = moving
    return Effect.zipRight(Effect.ignore(Effect.timeout(caughtUp, patience)), turn(Effect.zipRight(clear, question)))
  })
