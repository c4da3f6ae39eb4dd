/**
 * `resume`: replays the rows of a session after the client's last row, as the files have them; then follows the current
 * run, with all of its text, to its end. The replay is written before the connection's next request is read; the rest
 * is not. Spec: SO-37, SO-38 in specs/socket.md (IX-6, DC-6, FL-5).
 */
import { Effect } from "effect"
import type { Session } from "@daybook/log/domain/Message"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import * as RunStream from "@daybook/transcript/RunStream"
import { type RunID, runOf } from "@daybook/transcript/row/Rows"
import { activityStart, type Backend, firstKept, Refused, refusedBy, stateAt } from "./Backend.ts"
import type { DrainedBackend } from "./Drainer.ts"
import * as Endpoint from "./Endpoint.ts"
import { askingOf, getSession, runtimeOf } from "./Endpoint.ts"
import * as Follow from "./Follow.ts"
import { type AskOptions, follow, type Write, writer } from "./Follow.ts"
import type { ConnectionClosed } from "./Listener.ts"
import type * as Wire from "./Wire.ts"
import type { Frame } from "./Wire.ts"

type Cursor = { readonly row: string; readonly event: SessionEvent }

const unknownRow = (row: string) =>
  new Refused({ code: "ENOENT", message: `there is no row "${row}" in the events of this session` })

/** Finds the event of a row: the row's id is the event's, followed by the row's number unless it is the first. */
const cursorOf = Effect.fn("Replay.cursor")(function* (backend: Backend, { id }: Session, row: string) {
  const { log } = backend
  const seq = (yield* log.placeOf(id, row)) ?? (yield* log.placeOf(id, row.replace(/\.[1-9]\d*$/, "")))
  if (seq === undefined) return yield* unknownRow(row)
  const [event] = (yield* log.read({ sessionID: id, after: seq - 1, limit: 1 })).events
  return event === undefined ? yield* unknownRow(row) : ({ row, event } satisfies Cursor)
})

export interface ReplayOptions extends DrainedBackend {
  readonly session: Session
  /** The id of the client's last row; all rows by default. */
  readonly after: string | undefined
  readonly write: Write
  readonly asking: AskOptions
  /** Runs when the client is shown the current run. */
  readonly onStart: () => void
}

/** The current or next run, and the effect that follows it to its end. */
export interface Live {
  readonly run: RunID
  readonly rest: Effect.Effect<void, Refused | ConnectionClosed>
}

/** Writes the existing rows; returns the rest, to be run, if a run is active or waits. */
const replay = Effect.fn("Replay.replay")(function* (options: ReplayOptions) {
  const { after, backend, session, write } = options
  const { inbox, log, store } = backend
  const sessionID = session.id
  const cursor = after === undefined ? undefined : yield* Effect.mapError(cursorOf(backend, session, after), refusedBy)
  const start =
    cursor === undefined
      ? undefined
      : yield* Effect.mapError(activityStart(backend, sessionID, cursor.event.seq), refusedBy)
  const from = start?.seq ?? (yield* Effect.mapError(firstKept(backend, sessionID), refusedBy))
  let state = RunStream.make(yield* Effect.mapError(stateAt(backend, sessionID, from), refusedBy))
  let told = cursor === undefined
  let read = from - 1
  const out = writer({ backend, write })

  const take = Effect.fnUntraced(function* (event: SessionEvent) {
    const [next, items] = Follow.step(state, event)
    state = next
    for (const item of items) {
      // The text of an ended run is in its message; that of the current run follows its rows.
      if (item.type !== "frame") continue
      if (told) yield* out.tell(item)
      else if ("seq" in item.frame && item.frame.id === cursor?.row) told = true
    }
    // The event exists but has no such row.
    if (!told && event.seq === cursor?.event.seq) return yield* unknownRow(cursor.row)
  })
  const takeAll = Effect.gen(function* () {
    for (let more = true; more;) {
      const page = yield* Effect.mapError(log.read({ sessionID, after: read }), refusedBy)
      for (const event of page.events) yield* take(event)
      read = page.cursor
      more = page.hasMore
    }
    yield* out.flush
  })

  for (;;) {
    yield* takeAll
    const target = yield* Effect.mapError(
      Effect.gen(function* () {
        const { activity } = yield* store.get(sessionID)
        const [head] = yield* inbox.waiting(sessionID, { limit: 1 })
        const latest = yield* log.latest(sessionID)
        const open = state.fold.run?.id
        if (latest > read && (open === undefined || activity?.state !== "running")) return "again" as const
        return open ?? (head === undefined ? undefined : runOf(sessionID, head.id))
      }),
      refusedBy
    )
    if (target === "again") continue
    return target === undefined ? undefined : { run: target, rest: live(options, state, read, target) }
  }
})

/** Follows the run to its end: its text so far, then everything that comes. */
const live = Effect.fnUntraced(function* (
  { asking, backend, drainer, onStart, session, write }: ReplayOptions,
  replayed: RunStream.State,
  read: number,
  target: RunID
) {
  const { log, sessions } = backend
  const sessionID = session.id
  // Settles a run that a dead process left; that is then its end.
  yield* Effect.mapError(sessions.settle(sessionID), refusedBy)
  let state = replayed
  if (replayed.current !== undefined) {
    const start = yield* Effect.mapError(activityStart(backend, sessionID, read), refusedBy)
    const from = start?.seq ?? (yield* Effect.mapError(firstKept(backend, sessionID), refusedBy))
    state = RunStream.make(yield* Effect.mapError(stateAt(backend, sessionID, from), refusedBy))
    const out = writer({ backend, write })
    for (let cursor = from - 1; cursor < read;) {
      const page = yield* Effect.mapError(log.read({ sessionID, after: cursor, limit: read - cursor }), refusedBy)
      for (const event of page.events) {
        const [next, items] = Follow.step(state, event)
        state = next
        for (const item of items) if (item.type !== "frame") yield* out.tell(item)
      }
      if (page.cursor === cursor) break
      cursor = page.cursor
    }
    yield* out.flush
  }
  yield* drainer.wake(sessionID)
  yield* follow({
    backend,
    sessionID,
    after: read,
    state,
    write,
    asking,
    onStart,
    isLast: (frame: Frame) => frame.type === "done" && frame.run === target,
    stuck: drainer.stuck(sessionID)
  })
})

export const resume = Effect.fn("Served.resume")(function* (
  endpoint: Endpoint.Endpoint,
  client: Endpoint.Client,
  request: Wire.Resume
) {
  const runtime = yield* runtimeOf(endpoint, request)
  const session = yield* getSession(endpoint, runtime, request)
  if (session.address?.scope === "temp") endpoint.temps.use(client.connection.id, session.address)
  const about: Endpoint.About = { id: undefined }
  const live = yield* replay({
    ...runtime,
    session,
    after: request.after,
    write: client.connection.write,
    asking: askingOf(endpoint, client),
    onStart: Endpoint.showing(runtime.backend, about)
  })
  if (live === undefined) return
  about.run = live.run
  yield* Endpoint.answerBeside(client, endpoint.stopping, about, Endpoint.following(client, live.run, live.rest))
})
