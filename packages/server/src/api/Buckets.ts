/**
 * A token bucket for each key: it holds requests up to a number, fills steadily, and a request takes one out. Holds state, but
 * no clock. Spec: HT-29 in specs/http.md.
 */

export interface Buckets {
  /** Takes one request out of the key's bucket; from an empty one it takes none, and returns the seconds until there is one. */
  readonly take: (key: string, now: number) => number | undefined
}

/** Keys that are remembered. A forgotten one has a full bucket again. */
const remembered = 4_096

/** Buckets of `size` requests that gain `perSecond`. Times are in milliseconds. */
export const make = ({ perSecond, size }: { readonly perSecond: number; readonly size: number }): Buckets => {
  const buckets = new Map<string, { readonly level: number; readonly at: number }>()
  return {
    take: (key, now) => {
      const { at, level: before } = buckets.get(key) ?? { at: now, level: size }
      // A clock that goes back fills nothing.
      const level = Math.min(size, before + (Math.max(0, now - at) / 1_000) * perSecond)
      buckets.delete(key)
      buckets.set(key, { level: level < 1 ? level : level - 1, at: now })
      for (const oldest of buckets.keys()) {
        if (buckets.size <= remembered) break
        buckets.delete(oldest)
      }
      return level < 1 ? Math.max(1, Math.ceil((1 - level) / perSecond)) : undefined
    }
  }
}
