/** Runs whose end some client is still to be told: what a server that stops waits for, for a moment. */
import { Deferred, Effect } from "effect"

export interface Answers {
  readonly begin: Effect.Effect<void>
  readonly end: Effect.Effect<void>
  /** Waits until there is none. */
  readonly none: Effect.Effect<void>
}

export const make = (): Answers => {
  let open = 0
  const waiting = new Set<Deferred.Deferred<void>>()
  return {
    begin: Effect.sync(() => void (open += 1)),
    end: Effect.sync(() => {
      open -= 1
      if (open > 0) return
      for (const each of waiting) Deferred.unsafeDone(each, Effect.void)
      waiting.clear()
    }),
    none: Effect.flatMap(Deferred.make<void>(), (each) => {
      if (open === 0) return Effect.void
      waiting.add(each)
      return Effect.ensuring(
        Deferred.await(each),
        Effect.sync(() => waiting.delete(each))
      )
    })
  }
}
