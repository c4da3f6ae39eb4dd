/**
 * The runtime behind a socket: one on disk, whose files an exporter keeps, or one in memory for temp sessions. All
 * other modules work with either.
 */
import { Cause, Context, Effect } from "effect"
import { SessionExecution } from "@daybook/core/session/SessionExecution"
import { Sessions } from "@daybook/core/session/Sessions"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import { CursorExpired, EventLog, type ReadError } from "@daybook/log/log/EventLog"
import { Inbox } from "@daybook/log/store/Inbox"
import { SessionStore } from "@daybook/log/store/SessionStore"
import * as Count from "../support/Count.ts"

/** The services of a runtime. */
export type BackendServices = Sessions | SessionExecution | SessionStore | Inbox | EventLog

/** A runtime as the operations of a socket use it. */
export interface Backend {
  readonly sessions: Context.Tag.Service<typeof Sessions>
  readonly execution: Context.Tag.Service<typeof SessionExecution>
  readonly store: Context.Tag.Service<typeof SessionStore>
  readonly inbox: Context.Tag.Service<typeof Inbox>
  readonly log: Context.Tag.Service<typeof EventLog>
  /** Waits until the files reflect the event at this position. */
  readonly reached: (position: number) => Effect.Effect<void>
  /** Counts answers whose client must still see the end of a run. */
  readonly answers: Count.Count
}

/** The runtime in the context; without files, `reached` returns immediately. */
export const fromContext = (
  context: Context.Context<BackendServices>,
  reached: Backend["reached"] = () => Effect.void
): Backend => ({
  sessions: Context.get(context, Sessions),
  execution: Context.get(context, SessionExecution),
  store: Context.get(context, SessionStore),
  inbox: Context.get(context, Inbox),
  log: Context.get(context, EventLog),
  // A failure of the files does not hold back clients.
  reached: (position) =>
    Effect.catchAllCause(reached(position), (cause) =>
      Cause.isInterruptedOnly(cause)
        ? Effect.failCause(cause)
        : Effect.logError("the session files could not be brought up to date", cause)
    ),
  answers: Count.make()
})

/** Events per backward read; the first read is small, because an activity begins a few events before its first text. */
const firstWindow = 64
const window = 512

/**
 * The last matching event up to `seq` that retention did not remove, or undefined. Searches backwards, so the cost is the
 * distance, not the length of the session.
 */
export const lastBefore = Effect.fnUntraced(function* (
  { log }: Backend,
  sessionID: SessionID,
  seq: number,
  fits: (event: SessionEvent) => boolean
): Effect.fn.Return<SessionEvent | undefined, ReadError> {
  const lastWithin = Effect.fnUntraced(function* (after: number, end: number) {
    let found: SessionEvent | undefined
    for (let cursor = after; cursor < end;) {
      const page = yield* log.read({ sessionID, after: cursor, limit: end - cursor })
      found = page.events.findLast((event) => event.seq <= end && fits(event)) ?? found
      if (page.cursor === cursor) break
      cursor = page.cursor
    }
    return found
  })
  let [end, size, floor] = [seq, firstWindow, -1]
  while (end > floor) {
    const after = Math.max(floor, end - size)
    const found = yield* Effect.catchTag(lastWithin(after, end), "CursorExpired", (error) => Effect.succeed(error))
    if (found instanceof CursorExpired) {
      // Retention removed the events below.
      floor = found.floor
      continue
    }
    if (found !== undefined) return found
    end = after
    size = window
  }
  return undefined
})

/** The sequence number of the first event that retention did not remove. */
export const firstKept = ({ log }: Backend, sessionID: SessionID): Effect.Effect<number, ReadError> =>
  log.read({ sessionID, limit: 1 }).pipe(
    Effect.as(0),
    Effect.catchTag("CursorExpired", ({ floor }) => Effect.succeed(floor + 1))
  )

/** The start of the activity that contains the event at `seq`, or of the last one before it. */
export const activityStart = (backend: Backend, sessionID: SessionID, seq: number) =>
  lastBefore(backend, sessionID, seq, ({ type }) => type === "session.next.activity.started")
