/** The event log on SQL. Contract: `EventLog.ts`; group commit: `Writer.ts`; reads: `Reader.ts`. Spec: LG-45, LG-46. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Array as Arr, Clock, Context, Effect, Either, type Fiber, Layer, Schedule, Stream } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { SessionID } from "../domain/Identifiers.ts"
import * as Registry from "../events/Registry.ts"
import type { Draft, SessionEvent } from "../events/SessionEvents.ts"
import { ReadSql } from "../storage/Database.ts"
import { probe } from "../storage/UnusedBytes.ts"
import { immediately, insideOwnTransaction, isInTransactionOf, retryBusy } from "../storage/Transaction.ts"
import * as EventLoop from "../support/EventLoop.ts"
import { isTraced, spanned, withSpan } from "../support/Spans.ts"
import { commit, type EncodedDraft, HookFailed, type Projector } from "./Appends.ts"
import { type AppendError, type AppendOptions, EventLog, InvalidDurableEvent, type LogUnavailable } from "./EventLog.ts"
import * as EventRow from "./EventRow.ts"
import { selectByID, selectIdentity, unavailable } from "./EventRow.ts"
import { makeFollow } from "./Follow.ts"
import * as LiveEvents from "./LiveEvents.ts"
import * as Reader from "./Reader.ts"
import * as Removals from "./Removals.ts"
import { removeSession, selectRemovals } from "./Removals.ts"
import * as Replay from "./Replay.ts"
import * as Tails from "./Tails.ts"
import * as Writer from "./Writer.ts"

// Calls this process's listeners after each commit, and isolates a listener's defect.

type Listener = (events: ReadonlyArray<SessionEvent>) => Effect.Effect<void>

const failed = (defect: unknown) => Effect.logError("an event listener failed", defect)

/** What the listener does. One that has done it already returns `Effect.void`: each append calls all of them. */
const call = (listener: Listener, events: ReadonlyArray<SessionEvent>): Effect.Effect<void> => {
  try {
    const called = listener(events)
    return called === Effect.void ? called : Effect.catchAllDefect(called, failed)
  } catch (defect) {
    return failed(defect)
  }
}

const makeListeners = () => {
  const listeners = new Set<Listener>()
  return {
    listen: (listener: Listener) =>
      Effect.acquireRelease(
        Effect.sync(() => void listeners.add(listener)),
        () => Effect.sync(() => listeners.delete(listener))
      ),
    notify: (events: ReadonlyArray<SessionEvent>) => {
      let notified: Effect.Effect<void> = Effect.void
      for (const listener of listeners) {
        const called = call(listener, events)
        if (called === Effect.void) continue
        notified = notified === Effect.void ? called : Effect.zipRight(notified, called)
      }
      return notified
    }
  }
}

export interface Options {
  /** Read models of other packages. They run in each append's transaction after the core projections. */
  readonly projectors?: ReadonlyArray<Projector>
}

const encodeDrafts = (
  drafts: NonEmptyReadonlyArray<Draft>
): Either.Either<NonEmptyReadonlyArray<EncodedDraft>, InvalidDurableEvent> => {
  const encoded: Array<EncodedDraft> = []
  for (const draft of drafts) {
    const result = Registry.encode(draft)
    if (Either.isLeft(result)) {
      return Either.left(new InvalidDurableEvent({ type: draft.type, details: result.left.message }))
    }
    encoded.push({ type: draft.type, encoded: result.right })
  }
  return Arr.isNonEmptyArray(encoded)
    ? Either.right(encoded)
    : Either.left(new InvalidDurableEvent({ type: "none", details: "an append needs at least one event" }))
}

/** The clock of other processes: they commit in the machine's time, whatever clock this one uses. */
export class OutsideClock extends Context.Reference<OutsideClock>()("@daybook/log/OutsideClock", {
  defaultValue: Clock.make
}) {}

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
    Effect.withClock(yield* OutsideClock),
    Effect.forkScoped
  )
})

/** The greatest time that an event's id can hold: twelve hexadecimal digits of milliseconds. */
const latestTime = 0xffff_ffff_ffff

/** Why these are not the times of the drafts; undefined if they are. */
const wrongTimes = (
  drafts: NonEmptyReadonlyArray<Draft>,
  times: ReadonlyArray<number>
): InvalidDurableEvent | undefined => {
  const at = drafts.findIndex((_, index) => {
    const time = times[index]
    return time === undefined || !Number.isInteger(time) || time < 0 || time > latestTime
  })
  if (at === -1) return undefined
  const details = `its time must be an integer from 0 to ${latestTime}, not ${times[at]}`
  return new InvalidDurableEvent({ type: (drafts[at] ?? drafts[0]).type, details })
}

/**
 * Appends through the writer; `appended` runs after the commit and before the append returns. The fiber is asked once for
 * its transaction, tracer and clock: behind a sync to disk, each step of an effect costs several times what it costs in
 * a loop.
 */
const makeAppend = (
  sql: SqlClient.SqlClient,
  { submit }: Writer.Writer,
  appended: (events: NonEmptyReadonlyArray<SessionEvent>) => Effect.Effect<void>
): (typeof EventLog.Service)["append"] => {
  const write = <E>(
    fiber: Fiber.RuntimeFiber<unknown, unknown>,
    sessionID: SessionID,
    drafts: NonEmptyReadonlyArray<Draft>,
    { commit, expectedSeq, owner, times }: AppendOptions<E>
  ): Effect.Effect<NonEmptyReadonlyArray<SessionEvent>, AppendError | E> => {
    const encoded = encodeDrafts(drafts)
    if (Either.isLeft(encoded)) return Effect.fail(encoded.left)
    const wrong = times === undefined ? undefined : wrongTimes(drafts, times)
    if (wrong !== undefined) return Effect.fail(wrong)
    const created = Context.get(fiber.currentDefaultServices, Clock.Clock).unsafeCurrentTimeMillis()
    const submitted = submit({ sessionID, drafts: encoded.right, created, times, expectedSeq, owner, commit })
    return Effect.uninterruptible(
      Effect.matchEffect(submitted, {
        // The writer passes the hook's failure through unchanged, so it has the caller's type E.
        // A caller that is refused again and again leaves the writer to the others.
        onFailure: (error) =>
          Effect.zipRight(EventLoop.refused, Effect.fail(error instanceof HookFailed ? (error.error as E) : error)),
        onSuccess: (events) => {
          const rest = appended(events)
          return rest === Effect.void ? Effect.succeed(events) : Effect.as(rest, events)
        }
      })
    )
  }
  return <E = never>(
    sessionID: SessionID,
    drafts: NonEmptyReadonlyArray<Draft>,
    options: AppendOptions<E> = {}
  ): Effect.Effect<NonEmptyReadonlyArray<SessionEvent>, AppendError | E> =>
    Effect.withFiberRuntime<NonEmptyReadonlyArray<SessionEvent>, AppendError | E>((fiber) => {
      if (isInTransactionOf(sql, fiber)) return insideOwnTransaction
      return isTraced(fiber)
        ? Effect.suspend(() => write(fiber, sessionID, drafts, options)).pipe(withSpan("EventLog.append"))
        : write(fiber, sessionID, drafts, options)
    })
}

type Reads =
  "read" | "tail" | "pull" | "tailMarked" | "feed" | "readFeed" | "removals" | "placeOf" | "head" | "latest" | "tailing"

/** The reads, over the reading connection. */
const makeReads = (sql: SqlClient.SqlClient, tails: Tails.Tails) =>
  EventLoop.sharingAll<Pick<typeof EventLog.Service, Reads>>({
    read: Reader.read(sql),
    tail: Reader.tail(sql, tails, Reader.noMarker),
    pull: Reader.pull(sql, tails),
    tailMarked: Reader.tail(sql, tails, Reader.marker),
    feed: Reader.feed(sql, tails),
    readFeed: Reader.readFeed(sql),
    tailing: Reader.tailing(sql, tails),
    removals: Effect.fn("EventLog.removals")(({ after = 0 } = {}) => selectRemovals(sql, after)),
    placeOf: Effect.fn("EventLog.placeOf")((sessionID, eventID) =>
      retryBusy(selectByID(sql, eventID)).pipe(
        Effect.mapError(unavailable("read")),
        Effect.map((row) => (row?.session_id === sessionID ? row.seq : undefined))
      )
    ),
    head: Effect.fn("EventLog.head")((sessionID) =>
      Effect.map(Reader.head(sql, sessionID), ({ incarnation, seq }) => ({ seq, incarnation }))
    ),
    latest: spanned("EventLog.latest", (sessionID) =>
      Reader.head(sql, sessionID).pipe(
        Effect.map(({ seq }) => seq),
        Effect.catchTag("SessionNotFound", () => Effect.succeed(-1))
      )
    )
  })

/** Copies events of other logs. */
const makeReplay = (
  target: Replay.ReplayTarget,
  tails: Tails.Tails
): Pick<typeof EventLog.Service, "replay" | "claimReplay"> => ({
  replay: Effect.fn("EventLog.replay")(function* (events, replayOptions = {}) {
    const checked = yield* Replay.check(events)
    if (!Arr.isNonEmptyReadonlyArray(checked)) return
    const fresh = yield* retryBusy(immediately(target.sql)(Replay.replay(target)(checked, replayOptions))).pipe(
      Effect.mapError((error) => Replay.toReplayError(error, checked[0][0].sessionID))
    )
    if (replayOptions.notify === true && fresh !== undefined) tails.announce([fresh])
  }),
  claimReplay: Effect.fn("EventLog.claimReplay")((sessionID, ownerID) =>
    retryBusy(
      target.sql`INSERT INTO event_sequence (session_id, seq, replay_owner) VALUES (${sessionID}, -1, ${ownerID})
        ON CONFLICT (session_id) DO UPDATE SET replay_owner = excluded.replay_owner`
    ).pipe(Effect.mapError(unavailable("claim")), Effect.asVoid)
  )
})

/** What the log of one kind of database does in its own way. */
export interface Store {
  readonly sql: SqlClient.SqlClient
  readonly readSql: SqlClient.SqlClient
  readonly identity: string
  readonly tails: Tails.Tails
  readonly writer: Writer.Writer
  readonly replay: Replay.ReplayTarget
  /** Follows a removal: tells others, and erases what is left. */
  readonly removed: (sessionID: SessionID) => Effect.Effect<void>
  readonly probe: Effect.Effect<void, LogUnavailable>
}

export const over = ({ identity, probe, readSql, removed, replay, sql, tails, writer }: Store) => {
  const openTexts = LiveEvents.makeOpenTexts()
  const { hear, publish, relay, subscribe } = LiveEvents.make(openTexts)
  const { listen, notify } = makeListeners()

  const append = makeAppend(sql, writer, (events) => {
    openTexts.appended(events)
    return notify(events)
  })

  const reads = makeReads(readSql, tails)
  return EventLog.of({
    identity,
    append,
    ...reads,
    follow: makeFollow({ hear, tailMarked: reads.tailMarked }),
    ...makeReplay(replay, tails),
    live: (liveOptions) => Stream.unwrapScoped(Effect.map(subscribe(liveOptions), ({ live }) => live)),
    subscribe,
    hear,
    changes: (sessionID) =>
      Effect.map(
        Effect.acquireRelease(
          Effect.sync(() => tails.follow(sessionID)),
          (tail) => Effect.sync(tail.close)
        ),
        ({ changed }) => changed
      ),
    publishLive: (event) => Effect.sync(() => publish(event)),
    sendLive: publish,
    relayLive: relay,
    remove: Effect.fn("EventLog.remove")(function* (sessionID) {
      const existed = yield* Effect.uninterruptible(
        Effect.tap(removeSession(sql, sessionID), () => {
          tails.reset(sessionID)
          openTexts.forget(sessionID)
        })
      )
      yield* removed(sessionID)
      return existed
    }),
    probe,
    listen
  })
}

const make = Effect.fnUntraced(function* (options: Options) {
  const sql = yield* SqlClient.SqlClient
  const readSql = yield* ReadSql
  const identity = yield* selectIdentity(sql)
  const target = {
    sql,
    projectors: options.projectors ?? [],
    types: EventRow.makeEventTypes(),
    idAt: EventRow.makeEventIds(identity)
  }
  const tails = Tails.make()
  const writer = yield* Writer.make(commit(target), tails.announce)
  yield* watchOtherProcesses(sql, tails)
  const sweeper = yield* Removals.makeSweeping(sql)

  return over({
    sql,
    readSql,
    identity,
    tails,
    writer,
    replay: Replay.targetOf(target),
    removed: () => sweeper.sweep,
    probe: Effect.mapError(probe(sql), unavailable("be written"))
  })
})

export const layer = (options: Options = {}) => Layer.scoped(EventLog, make(options))
