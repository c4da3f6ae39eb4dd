/**
 * Wakes tails after commits. Each tail owns one signal that holds at most one ring: a commit rings it and the tail
 * reads again.
 * While a session has tails, its latest events are kept decoded, so that a thousand tails cost one decode. Tails that
 * are further behind, and rows of other processes, are read from the database. Signals carry no data and may be
 * spurious; rows are the truth. State exists only while there are tails (TL-2, TL-3). Spec: LG-8..LG-10, LG-33.
 */
import { Effect, type Scope } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { SessionEvent } from "../events/SessionEvents.ts"

/** Decoded events kept per followed session or feed. */
const recentLimit = 512

/**
 * Rings that arrive while no one waits merge into one. A callback instead of a queue, because a thousand tails wake at
 * every commit.
 */
class Signal {
  private dirty = false
  private waiting: (() => void) | undefined

  ring(): void {
    const { waiting } = this
    this.waiting = undefined
    if (waiting === undefined) this.dirty = true
    else waiting()
  }

  readonly wake = Effect.async<void>((resume) => {
    if (this.dirty) {
      this.dirty = false
      return resume(Effect.void)
    }
    this.waiting = () => resume(Effect.void)
    return Effect.sync(() => (this.waiting = undefined))
  })
}

/** The events of one append and the incarnation of their session. */
export interface Commit {
  readonly incarnation: number
  readonly events: NonEmptyReadonlyArray<SessionEvent>
}

type Followed = {
  readonly signals: Set<Signal>
  /** Contiguous by `at` and of one incarnation; the last one is this process's newest commit. */
  recent: Array<SessionEvent>
  /** The session's incarnation; undefined for the feed. */
  incarnation: number | undefined
  readonly at: (event: SessionEvent) => number
}

export interface Tail {
  /** Waits until there may be new events. */
  readonly wake: Effect.Effect<void>
  /** The kept events of this incarnation directly after the cursor; undefined if the database must be read. */
  readonly recent: (after: number, incarnation: number | undefined) => ReadonlyArray<SessionEvent> | undefined
}

export interface Tails {
  /**
   * Registers a signal for one session, or for all sessions (`undefined`), until the scope closes. Call it before
   * reading.
   */
  readonly follow: (sessionID: string | undefined) => Effect.Effect<Tail, never, Scope.Scope>
  /** Keeps the committed events for their tails and rings them. */
  readonly announce: (commits: ReadonlyArray<Commit>) => void
  /** Rings the tails of a removed session and drops its kept events. */
  readonly reset: (sessionID: string) => void
  /** Drops all kept events and rings every tail: another process committed. */
  readonly ringAll: () => void
  /** Waits while nothing is tailed. */
  readonly tailed: Effect.Effect<void>
  /** Sessions that have tails, with the feed as `*`; for tests and metrics. */
  readonly followed: () => ReadonlyArray<string>
}

/** The key of the feed over all sessions; not a valid session id. */
const feedKey = "*"

const keep = (followed: Followed, event: SessionEvent, incarnation?: number): void => {
  const last = followed.recent.at(-1)
  const joins = last === undefined || followed.at(last) + 1 === followed.at(event)
  if (!joins || followed.incarnation !== incarnation) followed.recent = []
  followed.incarnation = incarnation
  followed.recent.push(event)
  // Truncated in halves, not event by event, so that the cost per commit stays constant.
  if (followed.recent.length > 2 * recentLimit) followed.recent = followed.recent.slice(-recentLimit)
}

/** Creates the registry, without tails. */
export const make = (): Tails => {
  const all = new Map<string, Followed>()
  const latch = Effect.unsafeMakeLatch(false)

  const ring = (followed: Followed): void => {
    for (const signal of followed.signals) signal.ring()
  }

  const follow = (sessionID: string | undefined) =>
    Effect.gen(function* () {
      const key = sessionID ?? feedKey
      const signal = new Signal()
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          const followed = all.get(key)
          if (followed === undefined) {
            const at = (event: SessionEvent) => (sessionID === undefined ? event.position : event.seq)
            all.set(key, { signals: new Set([signal]), recent: [], incarnation: undefined, at })
          } else followed.signals.add(signal)
          latch.unsafeOpen()
        }),
        () =>
          Effect.sync(() => {
            const followed = all.get(key)
            followed?.signals.delete(signal)
            if (followed?.signals.size === 0) all.delete(key)
            if (all.size === 0) latch.unsafeClose()
          })
      )
      return {
        wake: signal.wake,
        recent: (after, incarnation) => {
          const followed = all.get(key)
          const first = followed?.recent[0]
          if (followed === undefined || first === undefined || followed.incarnation !== incarnation) return undefined
          const from = after + 1 - followed.at(first)
          return from < 0 || from >= followed.recent.length ? undefined : followed.recent.slice(from)
        }
      } satisfies Tail
    })

  return {
    follow,
    announce: (commits) => {
      const feed = all.get(feedKey)
      const rung = new Set<Followed>()
      for (const { events, incarnation } of commits) {
        const followed = all.get(events[0].sessionID)
        if (followed !== undefined) rung.add(followed)
        for (const event of events) {
          if (followed !== undefined) keep(followed, event, incarnation)
          if (feed !== undefined) keep(feed, event)
        }
      }
      rung.forEach(ring)
      if (feed !== undefined) ring(feed)
    },
    reset: (sessionID) => {
      for (const followed of [all.get(sessionID), all.get(feedKey)]) {
        if (followed === undefined) continue
        followed.recent = []
        ring(followed)
      }
    },
    ringAll: () => {
      for (const followed of all.values()) {
        // A ring for our own commit may be pending too, and the kept events would hide the other process's rows.
        followed.recent = []
        ring(followed)
      }
    },
    tailed: latch.await,
    followed: () => [...all.keys()]
  }
}
