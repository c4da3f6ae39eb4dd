/** Counts open things, such as connections or answers, and waits until there are none. */
import { Deferred, Effect } from "effect"

export interface Count {
  readonly begin: () => void
  readonly end: () => void
  readonly now: () => number
  /** Waits until the count is zero. */
  readonly none: Effect.Effect<void>
}

export const make = (): Count => {
  let open = 0
  const waiting = new Set<Deferred.Deferred<void>>()
  return {
    begin: () => void (open += 1),
    end: () => {
      open -= 1
      if (open > 0) return
      for (const each of waiting) Deferred.unsafeDone(each, Effect.void)
      waiting.clear()
    },
    now: () => open,
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
