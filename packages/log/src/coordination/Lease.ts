/**
 * Judges the lease of another process. Clocks of two processes are never compared: the owner changes its row with every
 * renewal, and an observer that saw the row unchanged for a whole lease, by its own monotonic clock, knows that the
 * owner is silent. Time in which the observer itself was stopped proves nothing, so each look counts for at most two
 * look intervals. Neither does a look at an owner whose event loop is busy: it cannot renew, and it works. Pure. Spec:
 * EX-O2, EX-402.
 */

/** Bounds of a lease's length, in milliseconds, wherever it comes from. */
const [shortest, longest] = [1_000, 60_000]

/** The default length of a lease, in milliseconds. */
export const standardMs = 15_000

/** How often an observer looks, in milliseconds. */
export const lookMs = 100

/**
 * The maximum that one look adds to an owner's silence: in a longer gap the observer was stopped, and the owner perhaps
 * too.
 */
const mostPerLookMs = 2 * lookMs

/** Clamps a lease to a valid length. */
export const clamp = (leaseMs: number): number =>
  Number.isNaN(leaseMs) ? standardMs : Math.max(shortest, Math.min(Math.trunc(leaseMs), longest))

/** How often an owner renews a lease of this length. */
export const heartbeatMs = (leaseMs: number): number => leaseMs / 15

/** What an observer has seen of one owner. */
export interface Sighting {
  /** Changes with each renewal and with each new owner. */
  readonly sign: string
  /** The monotonic time of the last look, in nanoseconds. */
  readonly at: bigint
  /** How long the sign is known to be unchanged. */
  readonly silentMs: number
  /** Whether the sign changed while observed. */
  readonly renewed: boolean
}

/** One look at an owner. */
export interface Look {
  readonly sign: string
  /** The monotonic time, in nanoseconds. */
  readonly at: bigint
  /** Whether the owner's main thread runs at this moment: then its silence proves nothing. */
  readonly working: boolean
}

/** Adds one look. */
export const observe = (before: Sighting | undefined, { at, sign, working }: Look): Sighting => {
  if (before === undefined) return { sign, at, silentMs: 0, renewed: false }
  if (before.sign !== sign) return { sign, at, silentMs: 0, renewed: true }
  const gapMs = working ? 0 : Number(at - before.at) / 1e6
  return { ...before, at, silentMs: before.silentMs + Math.max(0, Math.min(gapMs, mostPerLookMs)) }
}
