/**
 * Drains one session at one Location: activities from the inbox, turn after turn, until nothing is eligible.
 *
 *   drain:    fail what a dead process left -> pick steer, else queue, else (forced) nothing -> activity -> pick again
 *   activity: turn; go on while the model has results to read or a steer waits; at most `turnLimit` turns
 *   turn:     session -> fence -> agent -> epoch -> promote -> reconcile -> model -> history -> tools -> request
 *
 * One provider request per turn is in `Turn.ts`. Spec: EX-D1..EX-D8 (TU-1..TU-6, PR-1..PR-6).
 */
import { Prompt } from "@effect/ai"
import { SqlClient } from "@effect/sql"
import { Array as Arr, Cause, Context, Effect, Either, Exit, Layer, Match, Metric, Option } from "effect"
import { Agents, type Agent } from "../agent/Agents.ts"
import { Compaction } from "../compaction/Compaction.ts"
import { ContextEpoch } from "../context/ContextEpoch.ts"
import { ContextRegistry } from "../context/ContextRegistry.ts"
import * as LocationFence from "../context/LocationFence.ts"
import { draft, type Draft } from "../events/SessionEvents.ts"
import { Identifiers, type ActivityID, type SessionID } from "../Identifiers.ts"
import { EventLog, type CursorAhead, type CursorExpired, type OwnerToken } from "../log/EventLog.ts"
import { unavailable } from "../log/EventRow.ts"
import * as Metrics from "../Metrics.ts"
import { ModelResolver } from "../model/ModelResolver.ts"
import { CurrentLocation } from "../session/CurrentLocation.ts"
import { locationKey } from "../session/Locations.ts"
import type { Input, Session } from "../session/Message.ts"
import { TurnLimitExceeded, type RunError } from "../session/RunError.ts"
import type { Delivery, StoredError } from "../session/Schemas.ts"
import { SessionStore } from "../session/SessionStore.ts"
import type { ToolDeclined } from "../tool/ToolDefinition.ts"
import { ToolRegistry } from "../tool/ToolRegistry.ts"
import * as History from "./History.ts"
import { lower } from "./Lowering.ts"
import * as Recovery from "./Recovery.ts"
import { runTurn } from "./Turn.ts"

/** Provider turns of one activity, where the agent says nothing else (TU-4). */
const defaultTurnLimit = 25

export interface RunnerOptions {
  /** Steers that become visible at one safe boundary; the rest follow at the next (IN-12). */
  readonly steerBatchLimit: number
}

/** `moved`: the session is at another Location now; `unfinished` says whether its activity was not done. */
export type DrainResult = { readonly _tag: "Drained" } | { readonly _tag: "Moved"; readonly unfinished: boolean }

export interface RunInput {
  readonly sessionID: SessionID
  readonly owner: OwnerToken
  /** At least one provider turn, even when nothing waits (PR-6). */
  readonly force: boolean
}

export class SessionRunner extends Context.Tag("@daybook/core/SessionRunner")<
  SessionRunner,
  { readonly run: (input: RunInput) => Effect.Effect<DrainResult, RunError | ToolDeclined> }
>() {}

type Trigger = "steer" | "queue" | "resume"
type Boundary = "continue" | "done" | "moved" | "compacted"

const make = Effect.fnUntraced(function* ({ steerBatchLimit }: RunnerOptions) {
  const log = yield* EventLog
  const store = yield* SessionStore
  const agents = yield* Agents
  const models = yield* ModelResolver
  const tools = yield* ToolRegistry
  const epochs = yield* ContextEpoch
  const registry = yield* ContextRegistry
  const compaction = yield* Compaction
  const identifiers = yield* Identifiers
  const here = yield* CurrentLocation
  const history = yield* History.make
  const provideLog = Effect.provideService(EventLog, log)

  const recovery = yield* Recovery.make
  const fence = LocationFence.make(yield* SqlClient.SqlClient, here)
  const notChecked = unavailable("check the session's location")

  /** Appends what opens a turn, unless the session has moved away meanwhile (TU-11). */
  const open = (sessionID: SessionID, owner: OwnerToken, drafts: Arr.NonEmptyReadonlyArray<Draft>) =>
    Effect.catchTag(log.append(sessionID, drafts, { owner, commit: () => fence(sessionID) }), "SqlError", (error) =>
      notChecked(error)
    )

  /** What an earlier process left running is failed, never run again (TU-2); its activity was interrupted. */
  const recover = Effect.fn("SessionRunner.recover")(function* (session: Session, owner: OwnerToken) {
    const drafts = yield* recovery(session)
    if (Arr.isNonEmptyReadonlyArray(drafts)) yield* log.append(session.id, drafts, { owner })
  })

  /** What the prompt came to is in its admission, once. */
  const promotion = ({ createdAt, id, prompt: { expansion: _, ...prompt } }: Input): Draft =>
    draft("session.next.prompt.promoted", { messageID: id, prompt, timeCreated: createdAt })

  /** What becomes visible at this boundary: in queue mode the oldest queued input, then steers up to the cutoff (PR-2). */
  const eligible = Effect.fnUntraced(function* (sessionID: SessionID, mode: Trigger) {
    const cutoff = yield* log.latest(sessionID)
    const queued = mode === "queue" ? yield* store.waiting(sessionID, { delivery: "queue", limit: 1 }) : []
    const steers = yield* store.waiting(sessionID, { delivery: "steer", through: cutoff, limit: steerBatchLimit })
    return [...queued, ...steers]
  })

  const waits = (sessionID: SessionID, delivery: Delivery) =>
    Effect.map(store.waiting(sessionID, { delivery, limit: 1 }), (inputs) => inputs.length > 0)

  /** A waiting steer comes before an older queued input (PR-5). */
  const pick = Effect.fnUntraced(function* (sessionID: SessionID) {
    if (yield* waits(sessionID, "steer")) return Option.some<Trigger>("steer")
    return (yield* waits(sessionID, "queue")) ? Option.some<Trigger>("queue") : Option.none<Trigger>()
  })

  type Activity = { readonly id: ActivityID; readonly trigger: Trigger; started: boolean; agent: Agent | undefined }

  /** What opens the activity, and the inputs that become visible with it. */
  const promote = Effect.fnUntraced(function* (input: RunInput, activity: Activity, mode: Trigger) {
    const { owner, sessionID } = input
    const inputs = yield* eligible(sessionID, mode)
    const opening = activity.started
      ? []
      : [draft("session.next.activity.started", { activityID: activity.id, trigger: activity.trigger })]
    const drafts: ReadonlyArray<Draft> = [...opening, ...inputs.map(promotion)]
    if (!Arr.isNonEmptyReadonlyArray(drafts)) return
    yield* Effect.uninterruptible(
      Effect.tap(open(sessionID, owner, drafts), () => Effect.sync(() => (activity.started = true)))
    )
  })

  /** One turn, from loading the session to settling what it called (TU-5). */
  const turn = Effect.fnUntraced(function* (input: RunInput, activity: Activity, mode: Trigger, compacted: boolean) {
    const { owner, sessionID } = input
    const session = yield* store.get(sessionID)
    if (locationKey(session.location) !== locationKey(here)) return yield* new LocationFence.LocationLeft()
    const agent = yield* agents.get(session.agent)
    activity.agent = agent
    // Resolved for the context too, but it fails the turn only where its place is (TU-5).
    const resolved = yield* Effect.either(models.resolve(session.model))
    const observed = yield* registry.observe({
      sessionID,
      agent,
      model: Either.isRight(resolved) ? resolved.right.info : undefined
    })
    const initial = yield* epochs.prepare(sessionID, observed, fence)
    // A turn that is assembled anew goes out with the inputs it had (CM-9).
    if (!compacted) yield* promote(input, activity, mode)
    const epoch = yield* epochs.advance(sessionID, initial, observed, { owner, fence })
    const model = yield* resolved
    const messages = yield* Effect.catchTags(history.load(sessionID, epoch.baselineSeq), {
      CursorAhead: historyMoved,
      CursorExpired: historyMoved
    })
    const materialized = yield* tools.materialize(agent)
    const encoded = lower([agent.prompt ?? "", epoch.baseline], messages, model.info.ref)
    const request = { sessionID, info: model.info, requestChars: () => JSON.stringify(encoded).length }
    if (!compacted && (yield* compaction.compactIfNeeded(request))) return "compacted" as const
    const messageID = yield* identifiers.message
    const step = draft("session.next.step.started", {
      assistantMessageID: messageID,
      agent: agent.name,
      model: model.info.ref
    })
    const result = yield* provideLog(
      runTurn({
        sessionID,
        messageID,
        owner,
        agent,
        location: here,
        model,
        prompt: Prompt.make(encoded),
        tools: materialized,
        open: open(sessionID, owner, [step])
      })
    )
    return result.continue || (yield* waits(sessionID, "steer")) ? ("continue" as const) : ("done" as const)
  })

  const turns = Effect.fnUntraced(function* (input: RunInput, activity: Activity) {
    const moved = () => Effect.succeed("moved" as const)
    let count = 0
    let mode = activity.trigger
    let compacted = false
    for (;;) {
      const outcome: Boundary = yield* Effect.catchTag(turn(input, activity, mode, compacted), "LocationLeft", moved)
      if (outcome === "moved") {
        return { _tag: "Moved", unfinished: activity.started || activity.trigger === "resume" } as const
      }
      mode = "steer"
      // Never twice without a turn in between; a compaction is no turn (TU-4).
      compacted = outcome === "compacted"
      if (compacted) continue
      count += 1
      if (outcome === "done") return { _tag: "Drained" } as const
      const limit = activity.agent?.turnLimit ?? defaultTurnLimit
      if (count >= limit) return yield* new TurnLimitExceeded({ sessionID: input.sessionID, limit })
    }
  })

  /** One activity; however it ends, its end is in the log. */
  const runActivity = Effect.fn("SessionRunner.activity")(function* (input: RunInput, trigger: Trigger) {
    const { owner, sessionID } = input
    const activity: Activity = { id: yield* identifiers.activity, trigger, started: false, agent: undefined }
    return yield* Effect.onExit(turns(input, activity), (exit) => {
      if (!activity.started) return Effect.void
      const settled = draft("session.next.activity.settled", { activityID: activity.id, ...outcomeOf(exit) })
      // An owner that was replaced may write nothing more: its successor settles this activity.
      return Effect.ignoreLogged(log.append(sessionID, [settled], { owner }))
    })
  })

  const run = Effect.fn("SessionRunner.run")(function* (input: RunInput) {
    const session = yield* store.get(input.sessionID)
    yield* recover(session, input.owner)
    let forced = input.force
    for (;;) {
      const next = yield* pick(input.sessionID)
      const trigger = Option.isSome(next) ? next.value : forced ? "resume" : undefined
      if (trigger === undefined) return { _tag: "Drained" } as const
      forced = false
      const result: DrainResult = yield* runActivity(input, trigger)
      if (result._tag === "Moved") return result
      yield* Effect.flatMap(store.waitingCount(input.sessionID), (depth) => Metric.set(Metrics.inboxDepth, depth))
    }
  })

  return SessionRunner.of({ run })
})

/** A session that is owned and running neither shrinks nor forgets: its own history cannot be out of reach. */
const historyMoved = (error: CursorAhead | CursorExpired) => Effect.die(error)

type Outcome = { readonly outcome: "completed" | "failed" | "interrupted"; readonly error?: StoredError }

const outcomeOf = (exit: Exit.Exit<DrainResult, RunError | ToolDeclined>): Outcome => {
  if (Exit.isSuccess(exit)) {
    return exit.value._tag === "Drained"
      ? { outcome: "completed" }
      : { outcome: "interrupted", error: { type: "session.moved", message: "the session moved to another Location" } }
  }
  const failure = Cause.failureOption(exit.cause)
  if (Option.isNone(failure)) {
    return Cause.isInterruptedOnly(exit.cause)
      ? { outcome: "interrupted" }
      : { outcome: "failed", error: { type: "defect", message: "an internal error ended the activity" } }
  }
  return Match.value(failure.value).pipe(
    Match.when({ _tag: "ToolDeclined" }, ({ tool }): Outcome => ({
      outcome: "interrupted",
      error: { type: "declined", message: `a call of ${tool} was declined` }
    })),
    Match.orElse((error): Outcome => ({ outcome: "failed", error: { type: error._tag, message: error.message } }))
  )
}

/** The runner of the current Location. */
export const layer = (options: RunnerOptions) => Layer.effect(SessionRunner, make(options))
