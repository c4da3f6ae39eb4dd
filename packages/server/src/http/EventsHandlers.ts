/** Answers requests for events: pages, and streams of a session or of all. Spec: HT-40..HT-51 in specs/http.md. */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Array as Arr, Effect, Schema } from "effect"
import { Api } from "@daybook/api"
import * as Access from "@daybook/api/wire/Access"
import * as Cursor from "@daybook/api/wire/Cursor"
import type { EndReason } from "@daybook/api/wire/EventFrames"
import { failures } from "@daybook/api/wire/Failure"
import { Sessions } from "@daybook/core/session/Sessions"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { DurableType, SessionEvent } from "@daybook/log/events/SessionEvents"
import {
  CursorAhead,
  CursorExpired,
  EventLog,
  EventUnreadable,
  LogUnavailable,
  SessionNotFound
} from "@daybook/log/log/EventLog"
import { type SessionSnapshot, SessionStore } from "@daybook/log/store/SessionStore"
import { Hubs } from "./Hubs.ts"
import { Streams } from "./Streams.ts"

// Tells a reader whose events were pruned where to restart.

/** Adds the floor as a cursor, and the path of a snapshot. */
const restarting =
  (at: (position: number) => string, snapshot: string) =>
  ({ cursor, floor }: CursorExpired): Cursor.Expired =>
    new Cursor.Expired({ cursor, floor, floorCursor: at(floor), snapshot })

const snapshotOf = (sessionID: SessionID): string => `/sessions/${sessionID}/snapshot`

export const expiring =
  ({ head, identity }: typeof EventLog.Service, sessionID: SessionID) =>
  <A, E, R>(work: Effect.Effect<A, E | CursorExpired, R>) =>
    Effect.catchIf(
      work,
      (error): error is CursorExpired => error instanceof CursorExpired,
      (expired) =>
        Effect.flatMap(head(sessionID), ({ incarnation }) => {
          const at = (position: number) => Cursor.format({ database: identity, incarnation, position })
          return restarting(at, snapshotOf(sessionID))(expired)
        })
    )

const StreamError = Schema.Union(SessionNotFound, CursorAhead, Cursor.Expired, EventUnreadable, LogUnavailable)
type StreamError = typeof StreamError.Type

const encodeError = Schema.encodeSync(failures(StreamError))

const reasonOf = ({ _tag }: StreamError): EndReason =>
  _tag === "SessionNotFound" ? "removed" : _tag === "CursorExpired" ? "expired" : "failed"

const failed = (error: StreamError) => ({ reason: reasonOf(error), error: encodeError(error) })

/** Selects events by their types, if there are any. */
const among = (types: ReadonlyArray<DurableType> | undefined) => {
  if (types === undefined) return undefined
  const wanted = new Set<string>(types)
  return ({ type }: SessionEvent) => wanted.has(type)
}

/** An error of a hub for its reader. */
const lostTo =
  (restart: (expired: CursorExpired) => Cursor.Expired) =>
  <E extends Exclude<StreamError, Cursor.Expired>>(error: E | CursorExpired): E | Cursor.Expired =>
    error instanceof CursorExpired ? restart(error) : error

/** The stream has been written. */
const written = HttpServerResponse.empty()

const responseOf = (request: HttpServerRequest.HttpServerRequest) => NodeHttpServerRequest.toServerResponse(request)

/** Where a request begins, in a life of the session. */
const placeIn = Effect.fnUntraced(function* (
  log: typeof EventLog.Service,
  sessionID: SessionID,
  text: string | undefined,
  of: number | undefined
) {
  const given = text === undefined ? {} : yield* Cursor.parse(text, { database: log.identity, kind: "session" })
  const { position: after = -1, incarnation } = { position: undefined, incarnation: of, ...given }
  const life = incarnation ?? (yield* log.head(sessionID)).incarnation
  const at = (position: number) => Cursor.format({ database: log.identity, incarnation: life, position })
  const restart = restarting(at, snapshotOf(sessionID))
  return { from: { sessionID, after, incarnation: life }, at, restart }
})

/** Events of sessions and of the feed. */
export const layer = HttpApiBuilder.group(Api, "events", (handlers) =>
  Effect.gen(function* () {
    const [log, sessions, store] = [yield* EventLog, yield* Sessions, yield* SessionStore]
    const [hubs, streams] = [yield* Hubs, yield* Streams]
    const stateOf = ({ floor, incarnation, session, sessionID }: SessionSnapshot) => ({
      sessionID,
      ...(session === undefined ? {} : { session }),
      cursor: Cursor.format({ database: log.identity, incarnation, position: floor })
    })
    return handlers
      .handle("history", ({ path, urlParams }) =>
        Effect.gen(function* () {
          const { at, from, restart } = yield* placeIn(log, path.sessionID, urlParams.after, urlParams.incarnation)
          const page = sessions.history({ ...from, limit: urlParams.limit })
          const { cursor, events, hasMore } = yield* Effect.catchTag(page, "CursorExpired", (expired) =>
            restart(expired)
          )
          return { events, cursor: at(cursor), hasMore }
        })
      )
      .handle("head", ({ path }) =>
        Effect.map(log.head(path.sessionID), ({ incarnation, seq }) => ({
          seq,
          cursor: Cursor.format({ database: log.identity, incarnation, position: seq })
        }))
      )
      .handle("feedHead", () =>
        Effect.map(hubs.latest, (position) => ({ cursor: Cursor.format({ database: log.identity, position }) }))
      )
      .handleRaw("events", ({ headers, path, request, urlParams }) =>
        Effect.gen(function* () {
          const { at, from, restart } = yield* placeIn(
            log,
            path.sessionID,
            urlParams.after ?? headers["last-event-id"],
            urlParams.incarnation
          )
          yield* streams.serve(responseOf(request), request.headers["accept"], {
            start: from.after,
            page: (after) =>
              log.read({ ...from, after }).pipe(
                Effect.map(({ cursor, events, hasMore }) => ({ events, position: cursor, hasMore })),
                Effect.catchTag("CursorExpired", restart)
              ),
            hub: hubs.session(from),
            lost: lostTo(restart),
            wanted: among(urlParams.type),
            live: urlParams.live === "1" ? path.sessionID : undefined,
            positionOf: ({ seq }) => seq,
            cursorAt: at,
            expires: (yield* Access.CurrentCaller).expires,
            follow: urlParams.follow !== "0",
            failed
          })
          return written
        })
      )
      .handleRaw("feed", ({ headers, request, urlParams }) =>
        Effect.gen(function* () {
          const text = urlParams.after ?? headers["last-event-id"]
          const database = log.identity
          const after = text === undefined ? 0 : (yield* Cursor.parse(text, { database, kind: "feed" })).position
          const at = (position: number) => Cursor.format({ database, position })
          const restart = restarting(at, "/snapshots")
          yield* streams.serve(responseOf(request), request.headers["accept"], {
            start: after,
            page: (position) => Effect.catchTag(log.readFeed({ after: position }), "CursorExpired", restart),
            hub: hubs.feed,
            lost: lostTo(restart),
            wanted: among(urlParams.type),
            positionOf: ({ position }) => position,
            cursorAt: at,
            expires: (yield* Access.CurrentCaller).expires,
            follow: urlParams.follow !== "0",
            failed
          })
          return written
        })
      )
      .handle("snapshot", ({ path }) => Effect.map(store.snapshot(path.sessionID), stateOf))
      .handle("snapshots", ({ urlParams }) => Effect.map(store.snapshots(urlParams.after), Arr.map(stateOf)))
  })
)
