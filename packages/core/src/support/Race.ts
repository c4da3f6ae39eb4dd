/**
 * Races two effects and leaves neither running. `Effect.raceFirst` does not wait for its sides when its fiber is
 * interrupted, so later code, finalizers included, would run beside them.
 */
import { Effect, Fiber } from "effect"

/** Returns the exit of the side that ends first and interrupts the other. Both have ended then. */
export const firstOf = <A, E, R, A2, E2, R2>(
  one: Effect.Effect<A, E, R>,
  other: Effect.Effect<A2, E2, R2>
): Effect.Effect<A | A2, E | E2, R | R2> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.zipWith(Effect.fork(restore(one)), Effect.fork(restore(other)), (...sides) => sides).pipe(
      Effect.flatMap((sides) => {
        // Observed: a deferred would be five frames in the stack of each side, which may last as long as an answer.
        const first = Effect.async<A | A2, E | E2>((resume) => {
          for (const side of sides) side.addObserver(resume)
        })
        return Effect.ensuring(restore(first), Fiber.interruptAll(sides))
      })
    )
  )
