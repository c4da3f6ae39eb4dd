/** Bounds what is remembered: a map or a set keeps its newest keys. */

/** Forgets the oldest keys until at most so many are left. */
export const keepNewest = <Key>(all: Set<Key> | Map<Key, unknown>, most: number): void => {
  for (const oldest of all.keys()) {
    if (all.size <= most) return
    all.delete(oldest)
  }
}

/** Puts a key as the newest one, and forgets the oldest ones beyond `most`. */
export const putNewest = <Key, Value>(all: Map<Key, Value>, key: Key, value: Value, most: number): void => {
  all.delete(key)
  all.set(key, value)
  keepNewest(all, most)
}
