/** Lets the event loop run: Effect's `yieldNow` continues in a microtask, before any socket is read. */
import { Effect } from "effect"

/** Completes when the event loop has run once. */
export const turn: Effect.Effect<void> = Effect.async((resume) => {
  const immediate = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(immediate))
})
