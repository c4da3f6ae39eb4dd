/** Implements the event log on SQL. Contract: `EventLog.ts`; group commit: `Writer.ts`; reads: `Reader.ts`. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Array as Arr, Clock, Effect, Either, Exit, Layer, Mailbox, Schedule, Stream } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { type EventID, Identifiers, SessionID } from "../domain/Identifiers.ts"
import * as Registry from "../events/Registry.ts"
import type { Draft, LiveEvent, SessionEvent } from "../events/SessionEvents.ts"
import { immediately, ReadSql, retryBusy } from "../storage/Database.ts"
import { withSpan } from "../support/Spans.ts"
import { type EncodedDraft, HookFailed, type Projector } from "./Appends.ts"
import {
  type AppendOptions,
  EventLog,
  InvalidDurableEvent,
  type LiveSubscription,
  SubscriberOverflow
} from "./EventLog.ts"
import { pageSize, unavailable } from "./EventRow.ts"
import * as OpenTexts from "./OpenTexts.ts"
import * as Reader from "./Reader.ts"
import * as Replay from "./Replay.ts"
import * as Tails from "./Tails.ts"
import * as Writer from "./Writer.ts"

export interface Options {
  /**
   * Read models of other packages. They run in each append's transaction, in this order, after the core projections.
   */
  readonly projectors?: ReadonlyArray<Projector>
}

type Subscriber = { readonly mailbox: Mailbox.Mailbox<LiveEvent, SubscriberOverflow>; readonly capacity: number }

/** Default number of events that a live subscriber may fall behind. */
const liveCapacity = 4096
const mostCapacity = 65_536

/** Clamps the requested capacity to a valid integer, so that publishing never fails on it. */
const bufferOf = (asked: number | undefined): number =>
  asked === undefined || Number.isNaN(asked) ? liveCapacity : Math.max(1, Math.min(Math.trunc(asked), mostCapacity))

const encodeDrafts = (
  drafts: NonEmptyReadonlyArray<Draft>,
  ids: ReadonlyArray<EventID>
): Either.Either<NonEmptyReadonlyArray<EncodedDraft>, InvalidDurableEvent> => {
  const encoded: Array<EncodedDraft> = []
  for (const [index, draft] of drafts.entries()) {
    const result = Registry.encode(draft)
    const id = ids[index]
    if (Either.isLeft(result) || id === undefined) {
      const details = Either.isLeft(result) ? result.left.message : "no id"
      return Either.left(new InvalidDurableEvent({ type: draft.type, details }))
    }
    encoded.push({ type: draft.type, encoded: result.right, id })
  }
  return Arr.isNonEmptyArray(encoded)
    ? Either.right(encoded)
    : Either.left(new InvalidDurableEvent({ type: "none", details: "an append needs at least one event" }))
}

/** Wakes tails for commits of other processes. Queries the database only while a tail is open (TL-8, LG-12). */
const watchOtherProcesses = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, tails: Tails.Tails) {
  // On the writing connection `data_version` changes only for commits of other connections.
  const version = Effect.map(
    sql<{ readonly data_version: number }>`PRAGMA data_version`,
    ([row]) => row?.data_version ?? 0
  )
  let seen = yield* Effect.mapError(version, unavailable("look for other processes"))
  const look = Effect.gen(function* () {
    const now = yield* version
    if (now === seen) return
    seen = now
    tails.ringAll()
  })
  yield* Effect.zipRight(tails.tailed, look).pipe(
    Effect.catchAllCause((cause) => Effect.logDebug("looking for other processes' commits failed", cause)),
    Effect.repeat(Schedule.spaced("50 millis")),
    Effect.forkScoped
  )
})

const make = Effect.fnUntraced(function* (options: Options) {
  const sql = yield* SqlClient.SqlClient
  const readSql = yield* ReadSql
  const identifiers = yield* Identifiers
  const projectors = (options.projectors ?? []).map(({ name, project }) => ({
    name,
    project: (events: ReadonlyArray<SessionEvent>) =>
      Effect.provideService(
        Effect.suspend(() => project(events)),
        SqlClient.SqlClient,
        sql
      )
  }))
  const tails = Tails.make()
  const writer = yield* Writer.make(sql, projectors, tails.announce)
  yield* watchOtherProcesses(sql, tails)

  const listeners = new Set<(events: ReadonlyArray<SessionEvent>) => Effect.Effect<void>>()
  const subscribers = new Map<string, Set<Subscriber>>()
  const openTexts = OpenTexts.make()

  const notify = (events: ReadonlyArray<SessionEvent>) =>
    Effect.forEach(
      listeners,
      (listener) =>
        Effect.catchAllDefect(
          Effect.suspend(() => listener(events)),
          (defect) => Effect.logError("an event listener failed", defect)
        ),
      { discard: true }
    )

  const append = Effect.fnUntraced(
    function* <E = never>(
      sessionID: SessionID,
      drafts: NonEmptyReadonlyArray<Draft>,
      appendOptions?: AppendOptions<E>
    ) {
      const ids: Array<EventID> = []
      while (ids.length < drafts.length) ids.push(yield* identifiers.event)
      const encoded = yield* encodeDrafts(drafts, ids)
      const created = yield* Clock.currentTimeMillis
      const events = yield* Effect.mapError(
        writer.submit({
          sessionID,
          drafts: encoded,
          created,
          expectedSeq: appendOptions?.expectedSeq,
          owner: appendOptions?.owner,
          commit: appendOptions?.commit
        }),
        // The writer passes the hook's failure through unchanged, so it has the caller's type E.
        (error) => (error instanceof HookFailed ? (error.error as E) : error)
      )
      openTexts.appended(events)
      if (listeners.size > 0) yield* notify(events)
      return events
    },
    Effect.uninterruptible,
    withSpan("EventLog.append")
  )

  const subscribe = Effect.fnUntraced(function* (sessionID: SessionID, capacity: number) {
    const mailbox = yield* Mailbox.make<LiveEvent, SubscriberOverflow>({ capacity, strategy: "dropping" })
    const subscriber: Subscriber = { mailbox, capacity }
    const soFar = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const set = subscribers.get(sessionID)
        if (set === undefined) subscribers.set(sessionID, new Set([subscriber]))
        else set.add(subscriber)
        // Read in the same step as the registration, so that the next live event follows `soFar`.
        return openTexts.of(sessionID)
      }),
      () => Effect.sync(() => unsubscribe(sessionID, subscriber))
    )
    return { live: Mailbox.toStream(mailbox), soFar } satisfies LiveSubscription
  })

  const unsubscribe = (sessionID: SessionID, subscriber: Subscriber) => {
    const set = subscribers.get(sessionID)
    set?.delete(subscriber)
    if (set?.size === 0) subscribers.delete(sessionID)
  }

  const publishLive = (event: LiveEvent) => {
    openTexts.published(event)
    for (const subscriber of subscribers.get(event.sessionID) ?? []) {
      const { capacity, mailbox } = subscriber
      if (mailbox.unsafeOffer(event)) continue
      // Only this subscriber ends; the others continue (TL-10).
      mailbox.unsafeDone(Exit.fail(new SubscriberOverflow({ sessionID: event.sessionID, capacity })))
      unsubscribe(event.sessionID, subscriber)
    }
  }

  return EventLog.of({
    append,
    read: Reader.read(readSql),
    tail: Reader.tail(readSql, tails, Reader.noMarker),
    tailMarked: Reader.tail(readSql, tails, Reader.marker),
    feed: Reader.feed(readSql, tails),
    readFeed: Reader.readFeed(readSql),
    removals: Effect.fn("EventLog.removals")(({ after = 0 } = {}) =>
      readSql<{ readonly number: number; readonly session_id: string; readonly position: number }>`SELECT number,
        session_id, position FROM session_removal WHERE number > ${after} ORDER BY number LIMIT ${pageSize}`.pipe(
        retryBusy,
        Effect.mapError(unavailable("read")),
        Effect.map((rows) =>
          rows.map(({ number, position, session_id }) => ({
            number,
            sessionID: SessionID.make(session_id, { disableValidation: true }),
            position
          }))
        )
      )
    ),
    live: ({ capacity, sessionID }) =>
      Stream.unwrapScoped(Effect.map(subscribe(sessionID, bufferOf(capacity)), ({ live }) => live)),
    subscribe: ({ capacity, sessionID }) => subscribe(sessionID, bufferOf(capacity)),
    publishLive: (event) => Effect.sync(() => publishLive(event)),
    placeOf: Effect.fn("EventLog.placeOf")((sessionID, eventID) =>
      retryBusy(
        readSql<{ readonly seq: number }>`SELECT seq FROM event WHERE id = ${eventID} AND session_id = ${sessionID}`
      ).pipe(
        Effect.mapError(unavailable("read")),
        Effect.map(([row]) => row?.seq)
      )
    ),
    head: Effect.fn("EventLog.head")((sessionID) =>
      Effect.map(Reader.head(readSql, sessionID), ({ incarnation, seq }) => ({ seq, incarnation }))
    ),
    latest: Effect.fn("EventLog.latest")((sessionID) =>
      Reader.head(readSql, sessionID).pipe(
        Effect.map(({ seq }) => seq),
        Effect.catchTag("SessionNotFound", () => Effect.succeed(-1))
      )
    ),
    replay: Effect.fn("EventLog.replay")(function* (events, replayOptions = {}) {
      const checked = yield* Replay.check(events)
      if (!Arr.isNonEmptyReadonlyArray(checked)) return
      const fresh = yield* retryBusy(immediately(sql)(Replay.replay(sql, projectors)(checked, replayOptions))).pipe(
        Effect.mapError((error) => Replay.toReplayError(error, checked[0][0].sessionID))
      )
      if (replayOptions.notify === true && fresh !== undefined) tails.announce([fresh])
    }),
    claimReplay: Effect.fn("EventLog.claimReplay")((sessionID, ownerID) =>
      retryBusy(
        sql`INSERT INTO event_sequence (session_id, seq, replay_owner) VALUES (${sessionID}, -1, ${ownerID})
          ON CONFLICT (session_id) DO UPDATE SET replay_owner = excluded.replay_owner`
      ).pipe(Effect.mapError(unavailable("claim")), Effect.asVoid)
    ),
    remove: Effect.fn("EventLog.remove")(function* (sessionID) {
      const rows = yield* retryBusy(
        immediately(sql)(
          Effect.tap(
            sql<{ readonly seq: number }>`DELETE FROM event_sequence WHERE session_id = ${sessionID} RETURNING seq`,
            ([row]) =>
              // A session that was only claimed for replay had no events, so there is nothing to record.
              row === undefined || row.seq < 0
                ? Effect.void
                : sql`INSERT INTO session_removal (session_id, position)
                    SELECT ${sessionID}, seq FROM sqlite_sequence WHERE name = 'event'`
          )
        )
      ).pipe(Effect.mapError(unavailable("remove")))
      tails.reset(sessionID)
      openTexts.forget(sessionID)
      return rows.some(({ seq }) => seq >= 0)
    }),
    listen: (listener) =>
      Effect.acquireRelease(
        Effect.sync(() => listeners.add(listener)),
        () => Effect.sync(() => listeners.delete(listener))
      )
  })
})

/** The event log over the database in the context. */
export const layer = (options: Options = {}) => Layer.scoped(EventLog, make(options))
