/**
 * The runtime in which the sessions behind a socket are: one on disk, whose files an exporter keeps, and one in memory for
 * sessions that need not outlive their clients. Everything else here works with either.
 */
import {
  EventLog,
  SessionExecution,
  Sessions,
  SessionStore,
  type ReadError,
  type SessionEvent,
  type SessionID
} from "@daybook/core"
import { Cause, Context, Effect } from "effect"
import * as Count from "./Count.ts"

/** What is needed of a runtime. */
export type BackendServices = Sessions | SessionExecution | SessionStore | EventLog

export interface Backend {
  readonly sessions: Context.Tag.Service<typeof Sessions>
  readonly execution: Context.Tag.Service<typeof SessionExecution>
  readonly store: Context.Tag.Service<typeof SessionStore>
  readonly log: Context.Tag.Service<typeof EventLog>
  /** Waits until the files tell of the event at this position. */
  readonly reached: (position: number) => Effect.Effect<void>
  /** Runs whose end a client is still to be told. */
  readonly answers: Count.Count
}

/** The runtime of the context; without files there is nothing to wait for. */
export const fromContext = (
  context: Context.Context<BackendServices>,
  reached: Backend["reached"] = () => Effect.void
): Backend => ({
  sessions: Context.get(context, Sessions),
  execution: Context.get(context, SessionExecution),
  store: Context.get(context, SessionStore),
  log: Context.get(context, EventLog),
  // What fails to keep files does not keep anybody from being told.
  reached: (position) =>
    Effect.catchAllCause(reached(position), (cause) =>
      Cause.isInterruptedOnly(cause) ? Effect.failCause(cause) : Effect.logError("the files are not kept", cause)
    ),
  answers: Count.make()
})

/** Events that are read backwards at a time: an activity begins a few events before its first text. */
const firstWindow = 64
const window = 512

/**
 * The place of the last event up to `seq` that fits, looked for backwards, or undefined. It costs what lies between, however
 * long the session is.
 */
export const lastBefore = Effect.fnUntraced(function* (
  { log }: Backend,
  sessionID: SessionID,
  seq: number,
  fits: (event: SessionEvent) => boolean
): Effect.fn.Return<SessionEvent | undefined, ReadError> {
  let end = seq
  let size = firstWindow
  while (end >= 0) {
    const after = Math.max(-1, end - size)
    let found: SessionEvent | undefined
    for (let cursor = after; cursor < end;) {
      const page = yield* log.read({ sessionID, after: cursor, limit: end - cursor })
      found = page.events.findLast((event) => event.seq <= end && fits(event)) ?? found
      if (page.cursor === cursor) break
      cursor = page.cursor
    }
    if (found !== undefined) return found
    end = after
    size = window
  }
  return undefined
})

/** The start of the activity that the event at `seq` belongs to, or of the last one before it. */
export const activityStart = (backend: Backend, sessionID: SessionID, seq: number) =>
  lastBefore(backend, sessionID, seq, ({ type }) => type === "session.next.activity.started")
