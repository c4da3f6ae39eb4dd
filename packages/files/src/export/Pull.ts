/** Exports the feed batch by batch, and follows removals. Spec: FI-69, FI-82, FI-97 in specs/files.md. */
import { Array as Arr, Effect, Schema } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import type { ExportError } from "../layout/Errors.ts"
import type { Cursor } from "../record/Records.ts"
import * as Remains from "./Remains.ts"
import { attempt, finish, flush, tell, type Work, writeIndexes } from "./Work.ts"

/** Pages of the feed that are read before values, context and indexes are written. */
const pagesAtOnce = 16

const isID = Schema.is(SessionID)

/** The result of one pull from the log. */
export interface Pulled {
  readonly position: number
  readonly hasMore: boolean
  readonly sessions: ReadonlyArray<string>
}

/** Removes files of removed sessions that a lost record left behind; returns whether there were any. */
export const removeRemains = (work: Work) =>
  Effect.gen(function* () {
    if (work.looked) return false
    const found = yield* Remains.find(work.tracker, work.log)
    for (const { id } of found.remains) yield* attempt(work, id, work.writer.drop(id))
    work.foundIndexes = found.indexes
    work.looked = true
    return found.remains.length > 0
  })

/** Applies the removals since the cursor, and returns the events that they leave of this page. */
export const followRemovals = (work: Work, cursor: Cursor, events: ReadonlyArray<SessionEvent>) =>
  Effect.gen(function* () {
    const removed = new Map<string, number>()
    let after = cursor.removals
    while (true) {
      const page = yield* work.log.removals({ after })
      // Pending rows of a removed session are handled like written ones.
      if (page.length > 0) yield* flush(work)
      for (const { number, position, sessionID } of page) {
        removed.set(sessionID, position)
        const record = yield* work.tracker.ledger.session(sessionID)
        if (record !== undefined && record.position <= position)
          yield* attempt(work, sessionID, work.writer.drop(sessionID))
        after = number
      }
      if (page.length < 512) break
    }
    return {
      removals: after,
      events: events.filter(({ position, sessionID }) => position > (removed.get(sessionID) ?? 0))
    }
  })

/** Reads the next page of the feed without pruned events. An unreadable event gives an empty page; its session waits there. */
const nextPage = (work: Work, after: number) =>
  Effect.catchTag(work.log.readFeed({ after, gaps: true }), "EventUnreadable", (error) => {
    const { position, sessionID } = error
    if (position === undefined) return error
    const page = { events: [], position, hasMore: true }
    // The session id is unreadable too.
    if (!isID(sessionID))
      return Effect.as(tell(work, { kind: "behind", path: "", sessionID, details: error.message }), page)
    const leave = Effect.flatMap(work.writer.leave(sessionID), (path) =>
      tell(work, { kind: "behind", path, sessionID, details: error.message })
    )
    return Effect.as(attempt(work, sessionID, leave), page)
  })

/** Exports the next batch: logs, then values, context and indexes, then the cursor. */
export const pull = (work: Work): Effect.Effect<Pulled, ExportError> =>
  Effect.gen(function* () {
    yield* removeRemains(work)
    let cursor = yield* work.tracker.ledger.cursor
    const before = cursor
    const touched = new Set<string>()
    let hasMore = true
    for (let pages = 0; hasMore && pages < pagesAtOnce; pages++) {
      const page = yield* nextPage(work, cursor.position)
      // Read after the page, so every removal before an event of the page is included.
      const { events, removals } = yield* followRemovals(work, cursor, page.events)
      for (const [id, portion] of Object.entries(Arr.groupBy(events, ({ sessionID }) => sessionID))) {
        touched.add(id)
        yield* attempt(work, id, work.writer.append(id, portion))
      }
      if (work.writer.isFull()) yield* flush(work)
      const last = page.events.at(-1)
      const known = last?.position === page.position ? { eventID: last.id, sessionID: last.sessionID } : undefined
      cursor = {
        position: page.position,
        removals,
        ...(page.position === cursor.position
          ? { eventID: cursor.eventID, sessionID: cursor.sessionID }
          : (known ?? { eventID: null, sessionID: null }))
      }
      hasMore = page.hasMore
    }
    yield* finish(work, touched, !hasMore)
    work.caught ||= !hasMore
    // Until then the sessions of an existing index are not all known.
    if (work.caught) {
      yield* writeIndexes(work, [...work.writer.dueIndexes(), ...work.foundIndexes])
      work.foundIndexes = []
    }
    if (cursor.position !== before.position || cursor.removals !== before.removals)
      yield* work.tracker.ledger.setCursor(cursor)
    return { position: cursor.position, hasMore, sessions: [...touched] }
  }).pipe(
    // The cursor did not move: the next pull reads these events again.
    Effect.onError(() => Effect.sync(() => work.writer.waiting().forEach(work.writer.forget)))
  )

/** Exports the feed to its end. */
export const pullAll = (work: Work) =>
  Effect.gen(function* () {
    const sessions = new Set<string>()
    while (true) {
      const pulled = yield* pull(work)
      for (const id of pulled.sessions) sessions.add(id)
      if (!pulled.hasMore) return { position: pulled.position, sessions }
    }
  })
