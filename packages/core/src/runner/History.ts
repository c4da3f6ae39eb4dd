/**
 * What the model is shown of a session, kept decoded between turns. The first turn reads the projected rows from the
 * last compaction on; later turns fold only the events that are new, with the same fold that writes the rows. So a turn
 * costs what is new and what is shown, not what is stored. A bounded number of sessions is kept, the last used.
 * Spec: EX-R9 (EP-10).
 */
import { Effect, Either } from "effect"
import type { SessionEvent } from "../events/SessionEvents.ts"
import type { SessionID } from "../Identifiers.ts"
import { EventLog, type ReadError } from "../log/EventLog.ts"
import * as MemoryTables from "../projection/MemoryTables.ts"
import { project } from "../projection/Projection.ts"
import type { Message } from "../session/Message.ts"
import { assemble, SessionStore } from "../session/SessionStore.ts"
import type { StoreError } from "../session/StoreError.ts"

/** Sessions whose history is kept. */
const keptSessions = 64

type Kept = {
  readonly tables: MemoryTables.MemoryTables
  readonly baselineSeq: number
  readonly cursor: number
  /** The event at the cursor, if this build knows its type. */
  readonly last: string | undefined
}

export interface History {
  /** The messages to show, in order. `baselineSeq` tells which System messages the baseline contains. */
  readonly load: (
    sessionID: SessionID,
    baselineSeq: number
  ) => Effect.Effect<ReadonlyArray<Message>, ReadError | StoreError>
}

/** A completed compaction moves the start of what is shown. */
const startsAnew = (event: SessionEvent): boolean => event.type === "session.next.compaction.ended"

export const make = Effect.gen(function* () {
  const log = yield* EventLog
  const store = yield* SessionStore
  const kept = new Map<string, Kept>()

  const fromRows = Effect.fnUntraced(function* (sessionID: SessionID, baselineSeq: number) {
    const rows = yield* store.contextRows(sessionID, baselineSeq)
    const tables = MemoryTables.make()
    for (const row of rows.inputs) tables.load("session_input", row)
    for (const row of rows.messages) tables.load("session_message", row)
    for (const row of rows.parts) tables.load("session_part", row)
    return { tables, baselineSeq, cursor: rows.cursor, last: rows.last } satisfies Kept
  })

  /** Whether the log still holds what was folded: a session may have been removed and made again under its id. */
  const isSameLog = ({ cursor, last }: Kept, sessionID: SessionID) =>
    log.read({ sessionID, after: cursor - 1, limit: 1 }).pipe(
      Effect.map(({ events }) => last !== undefined && events[0]?.id === last),
      Effect.catchTags({ CursorAhead: () => Effect.succeed(false), CursorExpired: () => Effect.succeed(false) })
    )

  /** Folds the new events on; undefined when only the rows can tell. */
  const foldOn = Effect.fnUntraced(function* (sessionID: SessionID, from: Kept) {
    if (!(yield* isSameLog(from, sessionID))) return undefined
    let { cursor, last } = from
    for (;;) {
      const page = yield* log.read({ sessionID, after: cursor })
      for (const event of page.events) {
        if (startsAnew(event)) return undefined
        const changes = project(event).filter(({ table }) => table !== "session")
        if (Either.isLeft(from.tables.apply(changes))) return undefined
      }
      if (page.cursor > cursor) last = page.events.at(-1)?.seq === page.cursor ? page.events.at(-1)?.id : undefined
      cursor = page.cursor
      if (!page.hasMore) return { ...from, cursor, last }
    }
  })

  return {
    load: Effect.fn("History.load")(function* (sessionID: SessionID, baselineSeq: number) {
      const before = kept.get(sessionID)
      kept.delete(sessionID)
      const folded = before?.baselineSeq === baselineSeq ? yield* foldOn(sessionID, before) : undefined
      const now = folded ?? (yield* fromRows(sessionID, baselineSeq))
      kept.set(sessionID, now)
      const oldest = kept.size > keptSessions ? kept.keys().next().value : undefined
      if (oldest !== undefined) kept.delete(oldest)
      const { rows } = now.tables
      return yield* assemble(sessionID, rows("session_message"), rows("session_part"), rows("session_input"))
    })
  } satisfies History
})
