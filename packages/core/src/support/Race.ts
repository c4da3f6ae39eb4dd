/**
 * Races two effects and leaves neither running. `Effect.raceFirst` does not wait for its sides when its fiber is
 * interrupted, so later code, finalizers included, would run beside them.
 */
import { Deferred, Effect, Fiber } from "effect"

/** Returns the exit of the side that ends first and interrupts the other. Both have ended then. */
export const firstOf = <A, E, R, A2, E2, R2>(one: Effect.Effect<A, E, R>, other: Effect.Effect<A2, E2, R2>) =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const first = yield* Deferred.make<A | A2, E | E2>()
      const sides = [
        yield* Effect.fork(Effect.intoDeferred(restore(one), first)),
        yield* Effect.fork(Effect.intoDeferred(restore(other), first))
      ]
      return yield* Effect.ensuring(restore(Deferred.await(first)), Fiber.interruptAll(sides))
    })
  )
