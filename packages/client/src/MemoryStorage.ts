/**
 * Keeps the cursors of consumers as long as the process, for state that is lost with it too. Spec: HT-67 in specs/http.md.
 *
 * @module @daybook/client/MemoryStorage
 */
import { Effect } from "effect"
import type { Storage } from "./Consumer.ts"

/** A storage of its own. */
export const make: Effect.Effect<Storage> = Effect.sync(() => {
  const cursors = new Map<string, string>()
  return {
    load: (name) => Effect.sync(() => cursors.get(name)),
    store: (name, cursor) => Effect.sync(() => void cursors.set(name, cursor))
  }
})
