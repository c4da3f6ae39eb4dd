/**
 * Execution from a session's id alone: coordinator, ownership, then the runner of the Location where the session is
 * when its drain starts (CO-9). Process-global; no Location is entered, and nothing owned, while a session is idle.
 * Spec: EX-E1..EX-E8.
 */
import { Array as Arr, Context, Data, Effect, Layer, LayerMap, Option, type Scope } from "effect"
import type { ActivityID, SessionID } from "../Identifiers.ts"
import {
  EventLog,
  type AppendError,
  type LogUnavailable,
  type OwnerToken,
  type ReadError,
  type SessionNotFound
} from "../log/EventLog.ts"
import type { ShownRequest } from "../request/Recorded.ts"
import * as Recovery from "../runner/Recovery.ts"
import { SessionRunner } from "../runner/SessionRunner.ts"
import { ReadSql } from "../storage/Database.ts"
import { CurrentLocation } from "./CurrentLocation.ts"
import { firstOf } from "../Race.ts"
import * as RunCoordinator from "./RunCoordinator.ts"
import type { RunError } from "./RunError.ts"
import type { Location } from "./Schemas.ts"
import { SessionOwner } from "./SessionOwner.ts"
import { SessionStore } from "./SessionStore.ts"
import type { StoreError } from "./StoreError.ts"

/** How long a Location's services stay when nobody works there. */
const idleLocation = "10 minutes"

/** Who works on what in this process. `Sessions` is the way to it for hosts. */
export class SessionExecution extends Context.Tag("@daybook/core/SessionExecution")<
  SessionExecution,
  {
    readonly active: Effect.Effect<ReadonlyArray<SessionID>>
    /** An explicit run: joins the active one, or starts one with at least one provider turn. */
    readonly resume: (sessionID: SessionID) => Effect.Effect<void, RunError>
    /** Inputs were recorded: look again. Returns at once. */
    readonly wake: (sessionID: SessionID) => Effect.Effect<void>
    /**
     * Ends the session's work here, or asks the process that does it; waits for settlement. Idle: no-op. With an
     * activity, only that one is ended, and what waits goes on after it; when it does not run: no-op.
     */
    readonly interrupt: (sessionID: SessionID, activityID?: ActivityID) => Effect.Effect<void, LogUnavailable>
    /** Settles what a dead process left, and runs nothing; true if there was something. */
    readonly settle: (sessionID: SessionID) => Effect.Effect<boolean, SessionNotFound | StoreError | AppendError>
    readonly settled: (sessionID: SessionID) => Effect.Effect<void>
    /** The request that a turn would begin with now. */
    readonly preview: (sessionID: SessionID) => Effect.Effect<ShownRequest, RunError | ReadError>
  }
>() {}

/** What is built once per Location: the runner, and what it works with there. */
export type LocationLayer<E, R> = Layer.Layer<SessionRunner, E, R | CurrentLocation>

const make = Effect.fnUntraced(function* <R>(
  location: LocationLayer<never, R>
): Effect.fn.Return<
  Context.Tag.Service<typeof SessionExecution>,
  never,
  SessionStore | SessionOwner | EventLog | ReadSql | Scope.Scope | Exclude<R, CurrentLocation>
> {
  const store = yield* SessionStore
  const owners = yield* SessionOwner
  const log = yield* EventLog
  const recovery = yield* Recovery.make
  const locations = yield* LayerMap.make(
    // Fresh: the layers of two Locations are the same values and must not be shared.
    (key: Location) => Layer.fresh(Layer.provide(location, Layer.succeed(CurrentLocation, key))),
    { idleTimeToLive: idleLocation }
  )

  /** What each session's drain is at: written by its fiber, read in the step that stops it. */
  const running = new Map<SessionID, ActivityID>()

  /** How many wait for each session to settle. */
  const waiting = new Map<SessionID, number>()
  const count = (sessionID: SessionID, by: number) =>
    Effect.sync(() => {
      const now = (waiting.get(sessionID) ?? 0) + by
      if (now === 0) waiting.delete(sessionID)
      else waiting.set(sessionID, now)
    })

  /** Stops this activity and no other, where it runs here. */
  const cut = (sessionID: SessionID, activityID: string): Effect.Effect<boolean> =>
    coordinator.cut(sessionID, () => running.get(sessionID) === activityID)

  const work = Effect.fnUntraced(function* (sessionID: SessionID, owner: OwnerToken, force: boolean) {
    let forced = force
    for (;;) {
      const session = yield* store.get(sessionID)
      const result = yield* Effect.provide(
        Effect.flatMap(SessionRunner, (runner) =>
          runner.run({
            sessionID,
            owner,
            force: forced,
            running: (activityID) =>
              void (activityID === undefined ? running.delete(sessionID) : running.set(sessionID, activityID))
          })
        ),
        locations.get(Data.struct(session.location))
      )
      if (result._tag === "Drained") return
      // It moved while it ran: what was not done goes on where it is now (TU-11).
      forced = result.unfinished
    }
  })

  const drain = (sessionID: SessionID, force: boolean): Effect.Effect<void, RunError> =>
    Effect.gen(function* () {
      // A wake that finds nothing costs one read, and takes no ownership (TU-1).
      if (!force && !(yield* store.hasWork(sessionID))) return
      if (force) yield* store.get(sessionID)
      const ownership = yield* force ? owners.acquireUnlessBusy(sessionID) : owners.acquire(sessionID)
      yield* firstOf(
        Effect.catchTag(work(sessionID, ownership.token, force), "ToolDeclined", () => Effect.interrupt),
        // Another process's interrupt is one of ours: it drops the reruns that are queued here as well (CO-6).
        Effect.repeat(
          Effect.flatMap(ownership.stopRequested, (activityID) =>
            activityID === undefined ? Effect.as(coordinator.interrupt(sessionID), true) : cut(sessionID, activityID)
          ),
          { until: (stopped) => stopped }
        )
      )
    }).pipe(
      Effect.scoped,
      Effect.annotateLogs("sessionID", sessionID),
      Effect.withSpan("SessionExecution.drain", { attributes: { sessionID, force } })
    )

  const coordinator: RunCoordinator.RunCoordinator<SessionID, void, RunError> = yield* RunCoordinator.make<
    SessionID,
    void,
    RunError
  >({
    drain,
    // Who waits for the session looks at what came of it.
    report: (sessionID, cause) =>
      waiting.has(sessionID) ? Effect.void : RunCoordinator.unseen("sessionID", sessionID, cause)
  })

  return SessionExecution.of({
    active: coordinator.active,
    resume: coordinator.run,
    wake: coordinator.wake,
    interrupt: Effect.fn("SessionExecution.interrupt")(function* (sessionID, activityID) {
      if (activityID === undefined) yield* coordinator.interrupt(sessionID)
      else if (yield* cut(sessionID, activityID)) return
      const elsewhere = yield* owners.foreign(sessionID)
      if (Option.isSome(elsewhere)) yield* owners.requestStop(sessionID, elsewhere.value, activityID)
    }),
    settle: Effect.fn("SessionExecution.settle")(
      function* (sessionID) {
        // Most often there is nothing, and nothing is written for it.
        if ((yield* recovery(yield* store.get(sessionID))).length === 0) return false
        const { token } = yield* owners.acquireUnlessBusy(sessionID)
        const drafts = yield* recovery(yield* store.get(sessionID))
        if (!Arr.isNonEmptyReadonlyArray(drafts)) return false
        yield* log.append(sessionID, drafts, { owner: token })
        return true
      },
      Effect.scoped,
      // Somebody lives and works on it.
      Effect.catchTag("SessionBusy", () => Effect.succeed(false))
    ),
    settled: (sessionID) =>
      Effect.acquireUseRelease(
        count(sessionID, 1),
        () => coordinator.settled(sessionID),
        () => count(sessionID, -1)
      ),
    preview: Effect.fn("SessionExecution.preview")(function* (sessionID) {
      const { location } = yield* store.get(sessionID)
      return yield* Effect.provide(
        Effect.flatMap(SessionRunner, (runner) => runner.preview(sessionID)),
        locations.get(Data.struct(location))
      )
    })
  })
})

/** Execution with the given services per Location. */
export const layer = <R>(location: LocationLayer<never, R>) => Layer.scoped(SessionExecution, make(location))
