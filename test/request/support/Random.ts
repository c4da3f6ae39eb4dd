/** Random numbers that depend only on the seed. */

export interface Random {
  /** From 0 to below the limit. */
  readonly below: (limit: number) => number
  readonly chance: (probability: number) => boolean
  readonly words: (count: number) => string
}

const vocabulary = [
  "build",
  "manifest",
  "reads",
  "workspace",
  "order",
  "then",
  "café",
  "日本",
  "of",
  "its",
  "references"
]

export const random = (seed: number): Random => {
  let state = seed | 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number): number => Math.floor(next() * limit)
  return {
    below,
    chance: (probability) => next() < probability,
    words: (count) => Array.from({ length: count }, () => vocabulary[below(vocabulary.length)] ?? "").join(" ")
  }
}
