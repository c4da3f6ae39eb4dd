/**
 * Wakes tails after commits. While a session has tails, the events that not all of them have are kept decoded in one place, and
 * a commit resumes each waiting tail once, with the events: a thousand tails cost one decode and one shared result. Tails that
 * are further behind, and rows of other processes, are read from the database. A wake may be spurious: rows are the
 * truth. State exists only while there are tails (TL-2, TL-3). Spec: LG-8..LG-10, LG-33, LG-97.
 */
import { Chunk, Effect, Exit } from "effect"
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

/** Events that all tails at one cursor receive. */
export interface Recent {
  readonly events: Chunk.Chunk<SessionEvent>
  /** The cursor behind them. */
  readonly cursor: number
  /** How often the session was rung when they were taken. */
  readonly rings: number
}

/** A tail that stands still for this many milliseconds no longer counts as a reader. */
const stalledAfter = 600_000

/** The result of a tail that must read the database. */
const nothing: Exit.Exit<undefined> = Exit.succeed(undefined)

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
  /** The tails that have a cursor, and those of them that have all kept events. */
  private readonly readers = new Set<FollowedTail>()
  private readonly served = new Set<FollowedTail>()
  /** The kept events after a cursor, as one result for all tails that are there. */
  private shared: { readonly after: number; readonly recent: Exit.Exit<Recent> } | undefined
  private readonly at: (event: SessionEvent) => number

  constructor(at: (event: SessionEvent) => number) {
    this.at = at
  }

  keep(event: SessionEvent, incarnation?: number): void {
    if (this.readers.size === 0) return
    const last = this.recent.at(-1)
    const joins = last === undefined || this.at(last) + 1 === this.at(event)
    if (!joins || this.incarnation !== incarnation) this.clear()
    this.incarnation = incarnation
    this.shared = undefined
    this.served.clear()
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
    this.served.clear()
  }

  ring(): void {
    this.rings += 1
    for (const tail of this.tails) tail.ring()
  }

  /** Notes where a tail is now. Events that all tails have are for none of them: a new tail begins with the database. */
  moved(tail: FollowedTail, cursor: number, incarnation: number | undefined): void {
    this.readers.add(tail)
    const last = this.recent.at(-1)
    if (last === undefined || this.incarnation !== incarnation || cursor < this.at(last)) return
    this.served.add(tail)
    this.dropServed()
  }

  leave(tail: FollowedTail): void {
    this.tails.delete(tail)
    this.readers.delete(tail)
    this.served.delete(tail)
    this.dropServed()
  }

  private dropServed(): void {
    if (this.served.size === this.readers.size) this.clear()
  }

  /** The kept events directly after the cursor. */
  after(cursor: number, incarnation: number | undefined): Exit.Exit<Recent | undefined> {
    const first = this.recent[0]
    if (first === undefined || this.incarnation !== incarnation) return nothing
    if (this.shared?.after === cursor) return this.shared.recent
    const from = cursor + 1 - this.at(first)
    if (!(from >= 0 && from < this.recent.length)) return nothing
    const events = this.recent.slice(from)
    const last = this.at(first) + this.recent.length - 1
    const recent = Exit.succeed({ events: Chunk.unsafeFromArray(events), cursor: last, rings: this.rings })
    this.shared = { after: cursor, recent }
    return recent
  }
}

/** One tail's place among those that share the kept events. */
export interface Tail {
  /**
   * Waits until the session was rung after this tail last looked, and returns the kept events after its place; undefined
   * if the database must be read. It moves nothing: until `moved` it returns the same events to a caller that was
   * interrupted and asks again.
   */
  readonly next: Effect.Effect<Recent | undefined>
  /** Looks without waiting, before a read of the database: a later commit rings again. */
  readonly look: () => void
  /** Moves the tail to a cursor of this incarnation. With `rings` it has looked when the session was rung that often. */
  readonly moved: (cursor: number, incarnation: number | undefined, rings?: number) => void
  /** Waits for a ring, for a caller that then reads by other means. */
  readonly changed: Effect.Effect<void>
  readonly close: () => void
}

class FollowedTail implements Tail {
  private seen: number
  private cursor = Number.NaN
  private incarnation: number | undefined
  private waiting: ((result: Exit.Exit<Recent | undefined>) => void) | undefined
  /** Where `reading` found the tail, and since when it is there. */
  private found: { readonly cursor: number; readonly since: number } | undefined
  private readonly followed: Followed
  readonly close: () => void

  constructor(followed: Followed, close: (tail: FollowedTail) => void) {
    this.followed = followed
    this.seen = followed.rings
    this.close = () => close(this)
  }

  /** The same result resumes every tail that waits at the same place: a thousand tails wake at every commit. */
  ring(): void {
    const { waiting } = this
    if (waiting === undefined) return
    this.waiting = undefined
    waiting(this.followed.after(this.cursor, this.incarnation))
  }

  // No queue and no canceler, for speed: a callback of an ended fiber does nothing.
  readonly next = Effect.async<Recent | undefined>((resume) => {
    if (this.seen === this.followed.rings) this.waiting = resume
    else resume(this.followed.after(this.cursor, this.incarnation))
  })

  readonly look = (): void => {
    this.seen = this.followed.rings
  }

  readonly changed = Effect.map(this.next, this.look)

  moved(cursor: number, incarnation: number | undefined, rings = this.seen): void {
    this.cursor = cursor
    this.incarnation = incarnation
    this.seen = rings
    this.followed.moved(this, cursor, incarnation)
  }

  /** The cursor of a tail that reads; undefined for one without a cursor, or that has not moved for too long. */
  reading(now: number): number | undefined {
    if (Number.isNaN(this.cursor)) return undefined
    if (this.found?.cursor !== this.cursor) this.found = { cursor: this.cursor, since: now }
    return now - this.found.since > stalledAfter ? undefined : this.cursor
  }
}

export interface Readers {
  readonly session: ReadonlyArray<number>
  /** Positions. */
  readonly feed: ReadonlyArray<number>
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
  /** The tails of a session and of the feed that still read, at a time in milliseconds since the epoch. */
  readonly readers: (sessionID: string, now: number) => Readers
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
      followed.leave(closed)
      if (followed.tails.size === 0 && all.get(key) === followed) all.delete(key)
      if (all.size === 0) latch.unsafeClose()
    })
    followed.tails.add(tail)
    all.set(key, followed)
    latch.unsafeOpen()
    return tail
  }

  const reading = (key: string, now: number) =>
    [...(all.get(key)?.tails ?? [])].flatMap((tail) => tail.reading(now) ?? [])

  return {
    follow,
    readers: (sessionID, now) => ({ session: reading(sessionID, now), feed: reading(feedKey, now) }),
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
