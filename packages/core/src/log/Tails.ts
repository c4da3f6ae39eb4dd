/**
 * Who follows what. Each tail owns one dirty signal, which holds one ring at the most: a commit rings it, the tail looks
 * again.
 * While a session has tails, its latest events are kept decoded, so that a thousand tails cost one decode; a tail that
 * is further behind, or rows of another process, come from the database. Signals carry no data and may be spurious;
 * rows are the truth. State exists only while somebody tails (TL-2, TL-3). Spec: LG-8..LG-10.
 */
import { Effect, type Scope } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { SessionEvent } from "../events/SessionEvents.ts"

/** Decoded events kept per followed session or feed. */
const recentLimit = 512

/** Rings that came while nobody waited are one ring. A callback and no queue: a thousand tails wake at every commit. */
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

/** What one append stored, and the incarnation of its session. */
export interface Commit {
  readonly incarnation: number
  readonly events: NonEmptyReadonlyArray<SessionEvent>
}

type Followed = {
  readonly signals: Set<Signal>
  /** Contiguous in `at`, and of one incarnation; the last one is the newest commit of this process. */
  recent: Array<SessionEvent>
  /** Of a session's events; undefined for the feed. */
  incarnation: number | undefined
  readonly at: (event: SessionEvent) => number
}

export interface Tail {
  /** Waits until something may be new. */
  readonly wake: Effect.Effect<void>
  /** Kept events of the incarnation directly after the cursor; undefined when only the database can tell. */
  readonly recent: (after: number, incarnation: number | undefined) => ReadonlyArray<SessionEvent> | undefined
}

export interface Tails {
  /** Registers a signal for a session, or for all (`undefined`), until the scope closes. Do this before reading. */
  readonly follow: (sessionID: string | undefined) => Effect.Effect<Tail, never, Scope.Scope>
  /** Keeps the committed events for those who follow, and rings them. */
  readonly announce: (commits: ReadonlyArray<Commit>) => void
  /** Rings the session's tails, and forgets what was kept of it: it was removed. */
  readonly reset: (sessionID: string) => void
  /** Rings everybody, and sends them to the database: another process has committed. */
  readonly ringAll: () => void
  /** Waits while nothing is tailed. */
  readonly tailed: Effect.Effect<void>
  /** Sessions with tails, and the feed as `*`; for tests and metrics. */
  readonly followed: () => ReadonlyArray<string>
}

/** The key of the feed over all sessions: no session id looks like it. */
const feedKey = "*"

const keep = (followed: Followed, event: SessionEvent, incarnation?: number): void => {
  const last = followed.recent.at(-1)
  const joins = last === undefined || followed.at(last) + 1 === followed.at(event)
  if (!joins || followed.incarnation !== incarnation) followed.recent = []
  followed.incarnation = incarnation
  followed.recent.push(event)
  // Cut in halves, not one by one: the cost of a commit stays its own.
  if (followed.recent.length > 2 * recentLimit) followed.recent = followed.recent.slice(-recentLimit)
}

/** No tails yet. */
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
        // A ring for a commit of ours may be waiting too: what is kept would answer for both.
        followed.recent = []
        ring(followed)
      }
    },
    tailed: latch.await,
    followed: () => [...all.keys()]
  }
}
