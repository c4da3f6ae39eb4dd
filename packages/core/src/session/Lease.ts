/**
 * How a process judges the lease of another one. Clocks of two processes are never compared: the owner changes its row
 * with every renewal, and an observer that saw the row unchanged for a whole lease, by its own monotonic clock, knows
 * that the owner is silent. Time in which the observer itself stood still proves nothing: each look counts for two
 * intervals between looks at most. Pure. Spec: EX-O2.
 */

/** Lease lengths are brought into these bounds, wherever they come from, in milliseconds. */
const [shortest, longest] = [1_000, 60_000]

/** The lease of an owner that asks for no other, in milliseconds. */
export const standardMs = 15_000

/** How often an observer looks, in milliseconds. */
export const lookMs = 100

/** The most that one look adds to an owner's silence: the observer was stopped in a longer gap, and perhaps not alone. */
const mostPerLookMs = 2 * lookMs

/** A usable length of a lease. */
export const clamp = (leaseMs: number): number =>
  Number.isNaN(leaseMs) ? standardMs : Math.max(shortest, Math.min(Math.trunc(leaseMs), longest))

/** How often an owner renews a lease of this length. */
export const heartbeatMs = (leaseMs: number): number => leaseMs / 15

/** What an observer has seen of one owner so far. */
export interface Sighting {
  /** What the owner changes with each renewal, and a new owner too. */
  readonly sign: string
  /** The monotonic time of the last look, in nanoseconds. */
  readonly at: bigint
  /** How long the sign is known to stand still. */
  readonly silentMs: number
  /** Whether the sign changed under observation. */
  readonly renewed: boolean
}

/** One more look. */
export const observe = (before: Sighting | undefined, sign: string, at: bigint): Sighting => {
  if (before === undefined) return { sign, at, silentMs: 0, renewed: false }
  if (before.sign !== sign) return { sign, at, silentMs: 0, renewed: true }
  const gapMs = Number(at - before.at) / 1e6
  return { ...before, at, silentMs: before.silentMs + Math.max(0, Math.min(gapMs, mostPerLookMs)) }
}
