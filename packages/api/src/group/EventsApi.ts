/** Events: of one session, or of all of them. Spec: HT-40..HT-52 in specs/http.md. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { durableTypes } from "@daybook/log/events/SessionEvents"
import { CursorAhead, EventUnreadable, LogUnavailable, SessionNotFound } from "@daybook/log/log/EventLog"
import { Following } from "../wire/Access.ts"
import { StoreError } from "@daybook/log/store/StoreError"
import { Expired, ForeignCursor } from "../wire/Cursor.ts"
import { mediaTypes, Session, SessionEvent } from "../wire/EventFrames.ts"
import { failures } from "../wire/Failure.ts"
import { bySession, count, EventsFailure, flag, gets, reads, strict, text } from "./Shared.ts"

const stream = HttpApiSchema.Text({ contentType: mediaTypes.sse })

/** Where a stream begins, if not with the first event; `after` counts before the header. */
const from = Schema.Struct({ "last-event-id": Schema.optional(Schema.String) })

/** A page of events, with the cursor of the next one. */
export const EventsPage = Schema.Struct({
  events: Schema.Array(SessionEvent),
  cursor: Schema.String,
  hasMore: Schema.Boolean
})
export type EventsPage = typeof EventsPage.Type

/** Where a log ends: to follow from now on, begin with the cursor. */
export const SessionHead = Schema.Struct({ seq: Schema.Int, cursor: Schema.String })
export type SessionHead = typeof SessionHead.Type

const reading = Schema.Union(failures(ForeignCursor), EventsFailure)
const readingHead = failures(Schema.Union(SessionNotFound, LogUnavailable))
const readingFeedHead = failures(Schema.Union(EventUnreadable, LogUnavailable))
const readingFeed = failures(Schema.Union(ForeignCursor, CursorAhead, Expired, EventUnreadable, LogUnavailable))

/** The names of types of events, with commas between them. Events of other types are left out; cursors pass them. */
export const EventTypes = Schema.split(",").pipe(
  Schema.compose(Schema.Array(Schema.Literal(...durableTypes))),
  Schema.annotations({ identifier: "EventTypes" })
)

const types = Schema.optional(EventTypes)

/** The state of a session at its floor: where a reader starts whose events were pruned (RT-13). */
export const Snapshot = Schema.Struct({
  sessionID: SessionID,
  /** Absent if nothing was removed. */
  session: Schema.optionalWith(Session, { exact: true }),
  /** Continue behind this cursor. */
  cursor: Schema.String
}).annotations({ identifier: "Snapshot" })
export type Snapshot = typeof Snapshot.Type

/** The life of the session that a sequence number belongs to; a cursor names it itself. */
const incarnation = count

/** Streams and pages of events. */
export const EventsApi = HttpApiGroup.make("events")
  .annotate(OpenApi.Description, "Replay events after a cursor, then follow.")
  .add(
    HttpApiEndpoint.get("events", "/sessions/:sessionID/events")
      .setPath(bySession)
      .setHeaders(from)
      .setUrlParams(strict(Schema.Struct({ after: text, incarnation, live: flag, follow: flag, type: types })))
      .addSuccess(stream)
      .addError(reading)
      .middleware(Following)
  )
  .add(
    gets("history", "/sessions/:sessionID/history", EventsPage, reading)
      .setPath(bySession)
      .setUrlParams(strict(Schema.Struct({ after: text, incarnation, limit: count })))
  )
  .add(gets("head", "/sessions/:sessionID/head", SessionHead, readingHead).setPath(bySession))
  .add(gets("feedHead", "/head", Schema.Struct({ cursor: Schema.String }), readingFeedHead))
  .add(
    HttpApiEndpoint.get("feed", "/events")
      .setHeaders(from)
      .setUrlParams(strict(Schema.Struct({ after: text, follow: flag, type: types })))
      .addSuccess(stream)
      .addError(readingFeed)
      .middleware(Following)
  )
  .add(reads("snapshot", "/sessions/:sessionID/snapshot", Snapshot))
  .add(
    gets("snapshots", "/snapshots", Schema.Array(Snapshot), failures(StoreError)).setUrlParams(
      strict(Schema.Struct({ after: Schema.optional(SessionID) }))
    )
  )
