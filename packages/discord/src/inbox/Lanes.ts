/** Runs work in the order in which it was added, per key; keys are independent. Spec: DI-31 in specs/discord.md. */
import { Effect, FiberSet, type Scope } from "effect"

export interface Lanes<E, R> {
  readonly add: (key: string, work: Effect.Effect<void, E, R>) => Effect.Effect<void>
  /** Fails with the first failure. */
  readonly failed: Effect.Effect<never, E>
}

/** Lanes until the scope closes, which waits for the work in hand and drops the rest. */
export const make = <E, R>(): Effect.Effect<Lanes<E, R>, never, R | Scope.Scope> =>
  Effect.gen(function* () {
    const fibers = yield* FiberSet.make<void, E>()
    const fork = yield* FiberSet.runtime(fibers)<R>()
    const waiting = new Map<string, Array<Effect.Effect<void, E, R>>>()
    const run = (key: string): Effect.Effect<void, E, R> =>
      Effect.gen(function* () {
        for (;;) {
          const work = waiting.get(key)?.shift()
          if (work === undefined) break
          yield* work
        }
        waiting.delete(key)
      })
    return {
      add: (key, work) =>
        Effect.sync(() => {
          const list = waiting.get(key)
          if (list !== undefined) return void list.push(work)
          waiting.set(key, [work])
          fork(run(key))
        }),
      failed: Effect.zipRight(FiberSet.join(fibers), Effect.never)
    }
  })
