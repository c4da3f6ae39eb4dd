/** Locks by key: one holder at a time. Keys without a holder or waiter use no memory. */
import { Effect } from "effect"

/** Runs an effect while it holds the key's lock; others wait in order. */
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
