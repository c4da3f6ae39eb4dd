/** Pages of the events of live shells, of one session or of all, for viewers in a terminal and a browser. Spec: SL-113..SL-116. */
import { Effect, type Scope } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import {
  type CursorAhead,
  type CursorExpired,
  EventLog,
  type EventUnreadable,
  type LogUnavailable,
  type SessionNotFound
} from "@daybook/log/log/EventLog"
import { isShellEvent, type ShellEvent } from "@daybook/shell/record/ShellList"

export type ShellFeedError = CursorAhead | CursorExpired | EventUnreadable | LogUnavailable | SessionNotFound

/** A page. Events of other types move the cursor. */
export interface ShellPage {
  readonly events: ReadonlyArray<ShellEvent>
  /** The start of the next page. */
  readonly cursor: number
  readonly hasMore: boolean
}

export interface ShellFeed {
  /** The events after a cursor, without pruned ones; -1 is the beginning. */
  readonly page: (after: number) => Effect.Effect<ShellPage, ShellFeedError>
  /** The cursor behind an event: its `seq` in a session, else its position. */
  readonly cursorOf: (event: ShellEvent) => number
  /** Registers for changes, before the first page is read; the inner effect waits for one. */
  readonly changes: Effect.Effect<Effect.Effect<void>, never, Scope.Scope>
}

/** Rows of a page. A row has at most 64 KiB, or is alone in its page. */
const limit = 256

/** One session, from its floor on if older events were pruned. */
export const ofSession = (sessionID: SessionID) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const { incarnation } = yield* log.head(sessionID)
    const read = (after: number) => log.read({ sessionID, after, incarnation, limit })
    const feed: ShellFeed = {
      changes: log.changes(sessionID),
      cursorOf: ({ seq }) => seq,
      page: (after) =>
        Effect.map(
          Effect.catchTag(read(after), "CursorExpired", ({ floor }) => read(floor)),
          ({ cursor, events, hasMore }) => ({ events: events.filter(isShellEvent), cursor, hasMore })
        )
    }
    return feed
  })

/** All sessions. */
export const ofAll = Effect.map(EventLog, (log): ShellFeed => ({
  changes: log.changes(),
  cursorOf: ({ position }) => position,
  page: (after) =>
    Effect.map(log.readFeed({ after, gaps: true, limit }), ({ events, hasMore, position }) => ({
      events: events.filter(isShellEvent),
      cursor: position,
      hasMore
    }))
}))
