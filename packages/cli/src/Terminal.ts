/**
 * The one terminal of the process: one writer at a time. A question waits until what was said before it is there, and
 * keeps what moves away until it is answered. Spec: CL-35, CL-45 in specs/cli.md.
 */
import { Effect } from "effect"

/** What is drawn on the terminal and moves. */
export interface Moving {
  /** Returns when what was said by now has been written. */
  readonly caughtUp: Effect.Effect<void>
  /** Takes the lines that move away. */
  readonly clear: Effect.Effect<void>
}

const still: Moving = { caughtUp: Effect.void, clear: Effect.void }
let moving = still

/** Says what moves from now on; nothing without an argument. */
export const shown = (now: Moving | undefined): void => {
  moving = now ?? still
}

const one = Effect.unsafeMakeSemaphore(1)

/** Writes when nobody else does. */
export const turn = one.withPermits(1)

/** How long a question waits for what was said before it. */
const patience = "1 second"

/** Gives the terminal to a question. */
export const alone = <A, E, R>(question: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const { caughtUp, clear } = moving
    return Effect.zipRight(Effect.ignore(Effect.timeout(caughtUp, patience)), turn(Effect.zipRight(clear, question)))
  })
