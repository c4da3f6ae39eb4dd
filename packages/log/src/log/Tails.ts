/**
 * Wakes tails after commits. While a session has tails, its latest events are kept decoded in one place, and a commit
 * resumes each waiting tail once: a thousand tails cost one decode and one shared chunk. Tails that are further behind,
 * and rows of other processes, are read from the database. A ring carries no data and may be spurious: rows are the
 * truth. State exists only while there are tails (TL-2, TL-3). Spec: LG-8..LG-10, LG-33.
 */
import { Chunk, Effect } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { SessionEvent } from "../events/SessionEvents.ts"

/** Decoded events kept per followed session or feed, and their code units. The newest event is always kept. */
const recentLimit = 512
const recentLength = 1_048_576

/** The code units of all texts in a value. */
const lengthOf = (value: unknown): number => {
  if (typeof value === "string") return value.length
  if (typeof value !== "object" || value === null) return 0
  let length = 0
  for (const part of Object.values(value)) length += lengthOf(part)
  return length
}

/** The events of one append and the incarnation of their session. */
export interface Commit {
  readonly incarnation: number
  readonly events: NonEmptyReadonlyArray<SessionEvent>
}

/** What the tails of one session, or of the feed, share. */
class Followed {
  readonly tails = new Set<FollowedTail>()
  /** Rings so far. A tail that has looked since the last one has nothing to look for. */
  rings = 0
  /** Contiguous by `at` and of one incarnation; the last one is this process's newest commit. */
  private recent: Array<SessionEvent> = []
  /** The code units of the kept events. */
  private length = 0
  /** The session's incarnation; undefined for the feed. */
  private incarnation: number | undefined
  /** The kept events after a cursor, as one chunk for all tails that are there. */
  private shared: { readonly after: number; readonly events: Chunk.Chunk<SessionEvent> } | undefined
  private readonly at: (event: SessionEvent) => number

  constructor(at: (event: SessionEvent) => number) {
    this.at = at
  }

  keep(event: SessionEvent, incarnation?: number): void {
    const last = this.recent.at(-1)
    const joins = last === undefined || this.at(last) + 1 === this.at(event)
    if (!joins || this.incarnation !== incarnation) this.clear()
    this.incarnation = incarnation
    this.shared = undefined
    this.recent.push(event)
    this.length += lengthOf(event.data)
    if (this.recent.length > 2 * recentLimit || this.length > recentLength) this.truncate()
  }

  /** Keeps at most half of each limit, so that the cost per commit stays constant. */
  private truncate(): void {
    let [from, length] = [this.recent.length, 0]
    for (const event of this.recent.slice(-recentLimit).toReversed()) {
      const next = length + lengthOf(event.data)
      if (length > 0 && next > recentLength / 2) break
      length = next
      from -= 1
    }
    this.recent = this.recent.slice(from)
    this.length = length
  }

  clear(): void {
    this.recent = []
    this.length = 0
    this.shared = undefined
  }

  ring(): void {
    this.rings += 1
    for (const tail of this.tails) tail.ring()
  }

  after(cursor: number, incarnation: number | undefined): Chunk.Chunk<SessionEvent> | undefined {
    const [first] = this.recent
    if (first === undefined || this.incarnation !== incarnation) return undefined
    if (this.shared?.after === cursor) return this.shared.events
    const from = cursor + 1 - this.at(first)
    if (from < 0 || from >= this.recent.length) return undefined
    this.shared = { after: cursor, events: Chunk.unsafeFromArray(this.recent.slice(from)) }
    return this.shared.events
  }
}

/** One tail's place among those that share the kept events. */
export interface Tail {
  /**
   * Waits until the session was rung after this tail's last `recent`. The caller then runs `resume`'s effect, unless it
   * is interrupted: a ring that no one followed stays for the next `wake`.
   */
  readonly wake: <A, E>(resume: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** The kept events of this incarnation directly after the cursor; undefined if the database must be read. */
  readonly recent: (cursor: number, incarnation: number | undefined) => Chunk.Chunk<SessionEvent> | undefined
  /** Waits for a ring, for a caller that then reads by other means. */
  readonly changed: Effect.Effect<void>
  readonly close: () => void
}

class FollowedTail implements Tail {
  private seen: number
  private waiting: (() => void) | undefined
  private readonly followed: Followed
  readonly close: () => void

  constructor(followed: Followed, close: (tail: FollowedTail) => void) {
    this.followed = followed
    this.seen = followed.rings
    this.close = () => close(this)
  }

  ring(): void {
    const { waiting } = this
    this.waiting = undefined
    waiting?.()
  }

  // A callback instead of a queue, and no canceler, because a thousand tails wake at every commit.
  wake<A, E>(then: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.async<A, E>((resume) => {
      const proceed = () => resume(then)
      if (this.seen === this.followed.rings) this.waiting = proceed
      else proceed()
    })
  }

  // Before the caller reads, so that a later commit rings again.
  private readonly look = (): void => {
    this.seen = this.followed.rings
  }

  readonly changed = this.wake(Effect.sync(this.look))

  recent(cursor: number, incarnation: number | undefined): Chunk.Chunk<SessionEvent> | undefined {
    this.look()
    return this.followed.after(cursor, incarnation)
  }
}

export interface Tails {
  /** Registers a tail of one session, or of all sessions (`undefined`), until it is closed. Call it before reading. */
  readonly follow: (sessionID: string | undefined) => Tail
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

/** Creates the registry, without tails. */
export const make = (): Tails => {
  const all = new Map<string, Followed>()
  const latch = Effect.unsafeMakeLatch(false)

  const follow = (sessionID: string | undefined): Tail => {
    const key = sessionID ?? feedKey
    const followed =
      all.get(key) ?? new Followed(sessionID === undefined ? ({ position }) => position : ({ seq }) => seq)
    const tail = new FollowedTail(followed, (closed) => {
      followed.tails.delete(closed)
      if (followed.tails.size === 0 && all.get(key) === followed) all.delete(key)
      if (all.size === 0) latch.unsafeClose()
    })
    followed.tails.add(tail)
    all.set(key, followed)
    latch.unsafeOpen()
    return tail
  }

  return {
    follow,
    announce: (commits) => {
      const feed = all.get(feedKey)
      const rung = new Set<Followed>()
      for (const { events, incarnation } of commits) {
        const followed = all.get(events[0].sessionID)
        if (followed !== undefined) rung.add(followed)
        for (const event of events) {
          followed?.keep(event, incarnation)
          feed?.keep(event)
        }
      }
      for (const followed of rung) followed.ring()
      feed?.ring()
    },
    reset: (sessionID) => {
      for (const followed of [all.get(sessionID), all.get(feedKey)]) {
        followed?.clear()
        followed?.ring()
      }
    },
    ringAll: () => {
      for (const followed of all.values()) {
        // A ring for our own commit may be pending too, and the kept events would hide the other process's rows.
        followed.clear()
        followed.ring()
      }
    },
    tailed: latch.await,
    followed: () => [...all.keys()]
  }
}
