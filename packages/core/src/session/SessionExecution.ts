/**
 * Runs a session, given only its id: coordinator, ownership, then the runner of the session's Location when its drain
 * starts (CO-9). Process-global; an idle session enters no Location and owns nothing. Spec: EX-E1..EX-E8.
 */
import {
  Array as Arr,
  Cause,
  Clock,
  Context,
  Data,
  Deferred,
  type Duration,
  Effect,
  FiberId,
  FiberRef,
  HashMap,
  Layer,
  LayerMap,
  Metric,
  Option,
  Schema,
  type Scope,
  Stream
} from "effect"
import { Moves } from "@daybook/log/coordination/Moves"
import { type Ownership, type SessionBusy, SessionOwner } from "@daybook/log/coordination/SessionOwner"
import type { ActivityID, SessionID } from "@daybook/log/domain/Identifiers"
import { unfinished } from "@daybook/log/domain/Imported"
import type { Draft } from "@daybook/log/events/SessionEvents"
import type { Session } from "@daybook/log/domain/Message"
import { CurrentLocation, type Location } from "@daybook/log/domain/Values"
import {
  type AppendError,
  EventLog,
  type LogUnavailable,
  type OwnerLost,
  type OwnerToken,
  type ReadError,
  type SessionNotFound
} from "@daybook/log/log/EventLog"
import { Inbox } from "@daybook/log/store/Inbox"
import { SessionStore, type Standing } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
import { scoped } from "@daybook/log/support/Closing"
import { loggedOnce } from "@daybook/log/support/LoggedOnce"
import * as Metrics from "@daybook/log/support/Metrics"
import { withSpan } from "@daybook/log/support/Spans"
import * as RunCoordinator from "../coordination/RunCoordinator.ts"
import type { ShownRequest } from "../request/Recorded.ts"
import type { RunError } from "../runner/RunError.ts"
import { makeRecovery, SessionRunner } from "../runner/SessionRunner.ts"
import { InitializationBlocked } from "../domain/RunFailure.ts"
import { isHere, Workspaces } from "../workspace/Workspaces.ts"
import { firstOf } from "../support/Race.ts"
import { Naming } from "./Naming.ts"

/** How long an unused Location keeps its services. */
const idleLocation = "10 minutes"

/** The process cannot become a node, and nothing of the runtime began. */
export class PlacementFailed extends Schema.TaggedError<PlacementFailed>("@daybook/core/PlacementFailed")(
  "PlacementFailed",
  {
    /** Its address. */
    node: Schema.String,
    /** `in-use`: another process listens there. `denied`: the user may not. `address`: it is another machine's. */
    reason: Schema.Literal("in-use", "denied", "address", "other"),
    details: Schema.String
  }
) {
  override get message() {
    return `the node ${this.node} cannot listen: ${this.details}`
  }
}

/** What `SessionExecution` offers. */
export interface Service {
  /** Sessions that run in this process. */
  readonly active: Effect.Effect<ReadonlyArray<SessionID>>
  /** An explicit run: joins the active one, or starts one with at least one provider turn. */
  readonly resume: (sessionID: SessionID) => Effect.Effect<void, RunError>
  /** Looks for new inputs. Returns immediately. */
  readonly wake: (sessionID: SessionID) => Effect.Effect<void>
  /**
   * Ends the session's work here, or asks the process that owns it, and waits for settlement. Idle: no-op. With an
   * activity, ends only that one, and waiting inputs continue after it; no-op if it does not run.
   */
  readonly interrupt: (sessionID: SessionID, activityID?: ActivityID) => Effect.Effect<void, LogUnavailable>
  /** Ends the work of this process, on these sessions or on all, and waits for settlement. Work of others goes on (CU-54). */
  readonly stop: (sessions?: ReadonlyArray<SessionID>) => Effect.Effect<void>
  /**
   * Owns the session, settles what a dead process left, and then does this. Nothing of the session runs meanwhile. Fails
   * with `SessionBusy` if it runs, here or in another process.
   */
  readonly atRest: <A, E>(
    sessionID: SessionID,
    work: (owner: OwnerToken) => Effect.Effect<A, E>
  ) => Effect.Effect<A, E | SessionBusy | SessionNotFound | StoreError | AppendError>
  /** Settles what a dead process left, and runs nothing; true if there was something to settle. */
  readonly settle: (sessionID: SessionID) => Effect.Effect<boolean, SessionNotFound | StoreError | AppendError>
  /**
   * From now on no activity begins here, and those that run are handed over at their next safe boundary, for another
   * process to go on with. Returns at once (EX-820, EX-823).
   */
  readonly leave: (atMost: Duration.DurationInput) => Effect.Effect<void>
  /** After `leave`: waits until no activity runs here, or its time is over. */
  readonly left: Effect.Effect<void>
  /** Calls `goOn` with the sessions that other processes handed over, as they appear. */
  readonly takeUp: (goOn: (sessionID: SessionID) => Effect.Effect<void>) => Effect.Effect<never>
  /** Waits until nothing runs for the session in this process. */
  readonly settled: (sessionID: SessionID) => Effect.Effect<void>
  /** From now on until the scope closes: why the session's last drain failed, unless it succeeded or still runs. */
  readonly lastFailure: (sessionID: SessionID) => Effect.Effect<() => RunError | undefined, never, Scope.Scope>
  /** The request that a turn would start with now. */
  readonly preview: (sessionID: SessionID) => Effect.Effect<ShownRequest, RunError | ReadError>
}

/**
 * Runs sessions in this process. Hosts use `Sessions`.
 *
 * @example
 * ```ts
 * import { SessionExecution } from "@daybook/core"
 * import { Effect } from "effect"
 *
 * // The sessions that run in this process.
 * export const running = Effect.flatMap(SessionExecution.SessionExecution, (execution) => execution.active)
 * ```
 */
export class SessionExecution extends Context.Tag("@daybook/core/SessionExecution")<SessionExecution, Service>() {}

/** The layer built once per Location: the runner and its services there. */
export type LocationLayer<E, R> = Layer.Layer<SessionRunner, E, R | CurrentLocation>

const makeLocations = <R>(location: LocationLayer<never, R>) =>
  LayerMap.make(
    // Fresh: the layers of two Locations are the same values and must not be shared.
    (key: Location) => Layer.fresh(Layer.provide(location, Layer.succeed(CurrentLocation, key))),
    { idleTimeToLive: idleLocation }
  )

/** The runner at a Location, which the scope holds. */
type RunnerAt = (location: Location) => Effect.Effect<typeof SessionRunner.Service, never, Scope.Scope>

/** The current activity of each session's drain: written by its fiber, read in the step that stops it. */
type Running = Map<SessionID, ActivityID>

const countHandOver = (direction: "given" | "taken") =>
  Effect.zipRight(
    Metric.increment(Metrics.handOvers(direction)),
    Effect.flatMap(Clock.currentTimeMillis, (now) => Metric.set(Metrics.handOverAt, now))
  )

const lookForHandedOver = "250 millis"

/** The end of this process's work. */
const makeDeparture = (running: Running, scope: Scope.Scope) => {
  /** Done when no activity runs. Undefined: the process does not leave. */
  let empty: Deferred.Deferred<void> | undefined
  let over: Deferred.Deferred<void> | undefined
  const left = Effect.suspend(() => (over === undefined ? Effect.void : Deferred.await(over)))
  return {
    isLeaving: () => over !== undefined,
    /** A child works for a call of its parent, which cannot end before it. */
    leaving: ({ id, parentID }: Pick<Session, "id" | "parentID">) =>
      over !== undefined && !(parentID !== undefined && id !== parentID && running.has(parentID)),
    ended: (sessionID: SessionID) => {
      running.delete(sessionID)
      if (empty !== undefined && running.size === 0) Deferred.unsafeDone(empty, Effect.void)
    },
    leave: (atMost: Duration.DurationInput) =>
      Effect.suspend(() => {
        if (over !== undefined) return Effect.void
        const [all, end] = [Deferred.unsafeMake<void>(FiberId.none), Deferred.unsafeMake<void>(FiberId.none)]
        empty = all
        over = end
        if (running.size === 0) Deferred.unsafeDone(all, Effect.void)
        return Effect.timeoutOption(Deferred.await(all), atMost).pipe(
          Effect.ensuring(Deferred.succeed(end, undefined)),
          Effect.forkIn(scope),
          Effect.asVoid
        )
      }),
    left
  }
}

type Departure = ReturnType<typeof makeDeparture>

/** Runs a session where it is, and again where it moved to. */
const makeWork = Effect.fnUntraced(function* (runnerAt: RunnerAt, running: Running, departure: Departure) {
  const store = yield* SessionStore
  const naming = yield* Naming
  const workspaces = yield* Workspaces

  return Effect.fnUntraced(function* (sessionID: SessionID, ownership: Ownership, force: boolean) {
    const { begun, handOver, handed, kept, token: owner } = ownership
    let forced = force
    let read = kept
    if (handed !== undefined) yield* countHandOver("taken")
    for (;;) {
      const standing: Standing = read ?? (yield* store.standing(sessionID))
      read = undefined
      const refused = unfinished(sessionID, standing.session.imported)
      if (refused !== undefined) return yield* refused
      const { location } = standing.session
      // Its prompts wait for a process that has the workspace.
      if (!isHere(workspaces, location)) {
        return yield* new InitializationBlocked({ keys: [`workspace ${location.workspaceID}`] })
      }
      const runner = yield* runnerAt(location)
      const result = yield* runner.run({
        sessionID,
        owner,
        standing,
        clean: kept !== undefined,
        force: forced,
        handed,
        handOver: (next) => Effect.zipLeft(handOver(next), countHandOver("given")),
        leaving: () => departure.leaving(standing.session),
        began: (activityID) => {
          begun()
          running.set(sessionID, activityID)
          naming.expect(standing.session)
        },
        ended: (how) =>
          Effect.zipRight(
            Effect.sync(() => departure.ended(sessionID)),
            naming.begin(sessionID, how)
          )
      })
      if (result._tag === "Drained") return
      // Callers of this run must not take it for done.
      if (result._tag === "Left") return yield* Effect.interrupt
      // The session moved while it ran: unfinished work continues in the new Location (TU-11).
      forced = result.unfinished
    }
  })
})

interface Stops {
  readonly all: (sessionID: SessionID) => Effect.Effect<void>
  /** Stops this activity and no other; false if it does not run here. */
  readonly only: (sessionID: SessionID, activityID: string) => Effect.Effect<boolean>
}

/** Logs a failure, also if callers receive it. A busy session is the refusal of a request. */
const logFailure = (cause: Cause.Cause<RunError>): Effect.Effect<void> => {
  const isBusy = Option.exists(Cause.failureOption(cause), ({ _tag }) => _tag === "SessionBusy")
  if (isBusy || Cause.isInterruptedOnly(cause)) return Effect.void
  return (Cause.isDie(cause) ? Effect.logError : Effect.logWarning)("the work of a session failed", cause)
}

/** Names the session in what this fiber logs from now on. */
const named = (sessionID: SessionID) =>
  FiberRef.update(FiberRef.currentLogAnnotations, HashMap.set<string, unknown>("sessionID", sessionID))

/** Owns a session and runs its work, until it is done or another process requests a stop. */
const makeDrain = Effect.fnUntraced(function* (runnerAt: RunnerAt, running: Running, departure: Departure) {
  const inbox = yield* Inbox
  const owners = yield* SessionOwner
  const work = yield* makeWork(runnerAt, running, departure)

  return (stops: Stops, sessionID: SessionID, force: boolean): Effect.Effect<void, RunError> =>
    Effect.gen(function* () {
      // A wake without work costs one read and takes no ownership (TU-1).
      if (!force && !(yield* inbox.hasWork(sessionID))) return
      // It waits for another process already: a claim of one that leaves would make that one wait (EX-829).
      if (departure.isLeaving() && (yield* owners.handedOver).includes(sessionID)) return yield* Effect.interrupt
      const ownership = yield* force ? owners.acquireUnlessBusy(sessionID) : owners.acquire(sessionID)
      // Another process's interrupt acts like a local one: it drops queued reruns here too (CO-6). A request may name an activity
      // that is no longer the current one: then the next request is awaited.
      const heeding: Effect.Effect<void, OwnerLost> = Effect.flatMap(ownership.stopRequested, (activityID) => {
        ownership.begun()
        if (activityID === undefined) return stops.all(sessionID)
        return Effect.flatMap(stops.only(sessionID, activityID), (stopped) => (stopped ? Effect.void : heeding))
      })
      yield* firstOf(
        Effect.catchTag(work(sessionID, ownership, force), "ToolDeclined", () => Effect.interrupt),
        heeding
      )
    }).pipe(
      // Before the session is given back: a process that ends meanwhile would not log it.
      Effect.tapErrorCause(logFailure),
      scoped,
      // The fiber is the drain's own: nothing takes the annotation back, which would wait in its stack.
      (drain) => Effect.zipRight(named(sessionID), drain),
      withSpan("SessionExecution.drain", { sessionID, force })
    )
})

/** Keeps, for each session that callers wait for, why its last drain failed. */
const makeWaiters = () => {
  const waiting = new Map<SessionID, { callers: number; failure: RunError | undefined }>()
  const watch = (sessionID: SessionID) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        const known = waiting.get(sessionID) ?? { callers: 0, failure: undefined }
        known.callers += 1
        waiting.set(sessionID, known)
        return known
      }),
      (known) => Effect.sync(() => void ((known.callers -= 1) === 0 && waiting.delete(sessionID)))
    )
  const note = (sessionID: SessionID, failure: RunError | undefined) =>
    Effect.sync(() => {
      const known = waiting.get(sessionID)
      if (known !== undefined) known.failure = failure
    })
  return {
    lastFailure: (sessionID: SessionID) => Effect.map(watch(sessionID), (known) => () => known.failure),
    /** A drain. A new drain forgets the failure of the drain before. */
    noting: <A, R>(sessionID: SessionID, drain: Effect.Effect<A, RunError, R>) =>
      Effect.zipRight(
        note(sessionID, undefined),
        Effect.tapError(drain, (error) => note(sessionID, error))
      )
  }
}

/** Work under the session's ownership while nothing runs. */
const makeResting = Effect.fnUntraced(function* (continues: boolean) {
  const store = yield* SessionStore
  const owners = yield* SessionOwner
  const log = yield* EventLog
  const [settling, leaving] = [yield* makeRecovery(false), yield* makeRecovery(continues)]

  const append = (sessionID: SessionID, drafts: ReadonlyArray<Draft>, owner: OwnerToken) =>
    Arr.isNonEmptyReadonlyArray(drafts) ? log.append(sessionID, drafts, { owner }) : Effect.void

  const atRest: Service["atRest"] = Effect.fn("SessionExecution.atRest")(function* (sessionID, work) {
    yield* store.get(sessionID)
    const { begun, token } = yield* owners.acquireUnlessBusy(sessionID)
    begun()
    const { drafts } = yield* settling(yield* store.get(sessionID))
    yield* append(sessionID, drafts, token)
    return yield* work(token)
  }, Effect.scoped)

  const settle = Effect.fn("SessionExecution.settle")(
    function* (sessionID: SessionID) {
      // Usually there is nothing to settle: then nothing is written.
      if ((yield* settling(yield* store.get(sessionID))).drafts.length === 0) return false
      if ((yield* owners.handedOver).includes(sessionID)) return false
      // Waits once until it is known whether the owner lives: a lease, if it died on another machine.
      const { handOver, handed, token } = yield* owners.acquireUnlessBusy(sessionID)
      // Race: an owner handed it over since that look.
      if (handed !== undefined) return yield* Effect.as(handOver(handed), false)
      const { drafts, goesOn } = yield* leaving(yield* store.get(sessionID))
      yield* append(sessionID, drafts, token)
      if (goesOn === undefined) return drafts.length > 0
      // As if its owner had handed it over (EX-824).
      return yield* Effect.as(handOver(goesOn), false)
    },
    Effect.scoped,
    // A live process owns the session.
    Effect.catchTag("SessionBusy", () => Effect.succeed(false))
  )

  return { atRest, settle }
})

const make = Effect.fnUntraced(function* <R>(
  location: LocationLayer<never, R>,
  continues: boolean
): Effect.fn.Return<
  Context.Tag.Service<typeof SessionExecution>,
  never,
  SessionStore | Inbox | Naming | SessionOwner | EventLog | Scope.Scope | Exclude<R, CurrentLocation>
> {
  const store = yield* SessionStore
  const owners = yield* SessionOwner
  const moves = yield* Moves
  const locations = yield* makeLocations(location)
  const runnerAt: RunnerAt = (at) =>
    Effect.map(locations.runtime(Data.struct(at)), ({ context }) => Context.get(context, SessionRunner))
  const running: Running = new Map()
  const waiters = makeWaiters()
  const departure = makeDeparture(running, yield* Effect.scope)
  const drain = yield* makeDrain(runnerAt, running, departure)

  const stops: Stops = {
    all: (sessionID) => coordinator.interrupt(sessionID),
    only: (sessionID, activityID) => coordinator.cut(sessionID, () => running.get(sessionID) === activityID)
  }

  const coordinator: RunCoordinator.RunCoordinator<SessionID, void, RunError> = yield* RunCoordinator.make({
    drain: (sessionID: SessionID, force: boolean) => waiters.noting(sessionID, drain(stops, sessionID, force)),
    // The drain logs its failures.
    report: () => Effect.void
  })

  const resting = yield* makeResting(continues)

  const logged = loggedOnce("sessions that were handed over could not be found")
  const look = logged(
    Effect.suspend(() => (departure.isLeaving() ? Effect.succeed([]) : owners.handedOver)),
    []
  )
  /** Looks for those who listen together. A hint that comes during a look causes one more look. */
  const handedOver = yield* Stream.merge(Stream.tick(lookForHandedOver), moves.told).pipe(
    Stream.buffer({ capacity: 1, strategy: "sliding" }),
    Stream.mapEffect(() => look),
    Stream.share({ capacity: 1, strategy: "sliding" })
  )

  /** Between two owners, an activity is stopped where it was left. */
  const stopHandedOver = Effect.fnUntraced(function* (sessionID: SessionID, activityID: ActivityID | undefined) {
    if (!(yield* owners.handedOver).includes(sessionID)) return
    const current = Effect.map(store.get(sessionID), ({ activity }) => activity?.id)
    yield* current.pipe(
      Effect.flatMap((id) =>
        activityID === undefined || id === activityID ? resting.atRest(sessionID, () => Effect.void) : Effect.void
      ),
      // Its next owner was faster: that one is asked.
      Effect.catchTag("SessionBusy", () => Effect.void),
      Effect.ignoreLogged
    )
    if (activityID !== undefined) yield* coordinator.wake(sessionID)
  })

  return SessionExecution.of({
    active: coordinator.active,
    resume: coordinator.run,
    wake: coordinator.wake,
    interrupt: Effect.fn("SessionExecution.interrupt")(function* (sessionID, activityID) {
      if (activityID === undefined) yield* stops.all(sessionID)
      else if (yield* stops.only(sessionID, activityID)) return
      if (!departure.isLeaving()) yield* stopHandedOver(sessionID, activityID)
      const elsewhere = yield* owners.foreign(sessionID)
      if (Option.isSome(elsewhere)) yield* owners.requestStop(sessionID, elsewhere.value, activityID)
    }),
    stop: (sessions) =>
      Effect.flatMap(
        sessions === undefined ? coordinator.active : Effect.succeed(sessions),
        Effect.forEach(stops.all, { concurrency: "unbounded", discard: true })
      ),
    leave: departure.leave,
    left: departure.left,
    takeUp: (goOn) =>
      Effect.zipRight(Stream.runForEach(handedOver, Effect.forEach(goOn, { discard: true })), Effect.never),
    ...resting,
    settled: coordinator.settled,
    lastFailure: waiters.lastFailure,
    preview: Effect.fn("SessionExecution.preview")(function* (sessionID) {
      const { location } = yield* store.get(sessionID)
      const runner = yield* runnerAt(location)
      return yield* runner.preview(sessionID)
    }, Effect.scoped)
  })
})

/** `continues`: what a dead process left goes on when it is settled (EX-E13). */
export const layer = <R>(location: LocationLayer<never, R>, continues: boolean) =>
  Layer.scoped(SessionExecution, make(location, continues))
