/** Races two waits also where the fiber cannot be interrupted: there, a plain race would wait for its loser for ever. */
import { Deferred, Effect, Fiber } from "effect"

/**
 * Returns what ends first. The other side is interrupted and has ended. The sides are daemons: a fiber passes each interruption
 * on to its children, also where it cannot be interrupted itself.
 */
export const firstOf = <A, E, R, B, E2, R2>(
  one: Effect.Effect<A, E, R>,
  other: Effect.Effect<B, E2, R2>
): Effect.Effect<A | B, E | E2, R | R2> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const first = yield* Deferred.make<A | B, E | E2>()
      const sides = [
        yield* Effect.forkDaemon(Effect.intoDeferred(Effect.interruptible(one), first)),
        yield* Effect.forkDaemon(Effect.intoDeferred(Effect.interruptible(other), first))
      ]
      return yield* Effect.ensuring(restore(Deferred.await(first)), Fiber.interruptAll(sides))
    })
  )
