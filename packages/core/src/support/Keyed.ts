/** Locks and shares work by key. A key without users takes no memory. */
import { Effect } from "effect"

/** Runs an effect while it holds the key's lock: one holder at a time, others wait in order. */
export const makeKeyedLock = <Key>() => {
  const locks = new Map<Key, { readonly semaphore: Effect.Semaphore; users: number }>()
  return (key: Key) =>
    <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          const lock = locks.get(key) ?? { semaphore: Effect.unsafeMakeSemaphore(1), users: 0 }
          lock.users++
          locks.set(key, lock)
          return lock
        }),
        (lock) => lock.semaphore.withPermits(1)(effect),
        (lock) => Effect.sync(() => --lock.users === 0 && locks.delete(key))
      )
}

/**
 * Shares calls: those with one key that come while a call is under way get the result of the next call, which begins when the
 * current one ends. So the result is never older than the question, and a hundred callers at once make two calls.
 */
export const sharedCalls = <A>(call: (key: string) => Promise<A>): ((key: string) => Promise<A>) => {
  const current = new Map<string, Promise<A>>()
  const next = new Map<string, Promise<A>>()

  const begin = (key: string): Promise<A> => {
    next.delete(key)
    const made = call(key).finally(() => current.delete(key))
    current.set(key, made)
    return made
  }

  return (key) => {
    const known = next.get(key)
    if (known !== undefined) return known
    const running = current.get(key)
    if (running === undefined) return begin(key)
    const again = () => begin(key)
    const made = running.then(again, again)
    next.set(key, made)
    return made
  }
}
