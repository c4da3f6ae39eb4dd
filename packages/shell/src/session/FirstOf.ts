/** Races two waits also where the fiber cannot be interrupted: there, a plain race would wait for its loser for ever. */
import { Effect } from "effect"

/** Returns what ends first. The other side is interrupted. */
export const firstOf = <A, E, R, B, E2, R2>(
  one: Effect.Effect<A, E, R>,
  other: Effect.Effect<B, E2, R2>
): Effect.Effect<A | B, E | E2, R | R2> => Effect.raceFirst(Effect.interruptible(one), Effect.interruptible(other))
