/**
 * Drains one session at one Location: activities from the inbox, turn after turn, until nothing is eligible.
 *
 *   drain:    fail what a dead process left -> pick steer, else queue, else (forced) nothing -> activity -> pick again
 *   activity: turn; go on while the model has results to read or a steer waits; at most `turnLimit` turns
 *   turn:     session -> fence -> compaction asked for -> agent -> epoch -> promote -> reconcile -> model -> history
 *             -> tools -> request -> budget -> compaction -> step
 *
 * What the request is made of is in `Preparation.ts`, one provider request per turn in `Turn.ts`.
 * Spec: EX-D1..EX-D8 (TU-1..TU-6, PR-1..PR-6).
 */
import { SqlClient } from "@effect/sql"
import { Prompt } from "@effect/ai"
import { Array as Arr, Context, Effect, Either, Layer, Metric, Option, Struct } from "effect"
import type { Agent } from "../agent/Agents.ts"
import { Compaction, type CompactionRequest } from "../compaction/Compaction.ts"
import { ContextEpoch } from "../context/ContextEpoch.ts"
import { ContextRegistry } from "../context/ContextRegistry.ts"
import * as LocationFence from "../context/LocationFence.ts"
import { draft, type Draft } from "../events/SessionEvents.ts"
import { Identifiers, type ActivityID, type MessageID, type SessionID } from "../Identifiers.ts"
import { EventLog, type CursorAhead, type CursorExpired, type OwnerToken, type ReadError } from "../log/EventLog.ts"
import { unavailable } from "../log/EventRow.ts"
import * as Metrics from "../Metrics.ts"
import type { RequestSettings, ResolvedModel } from "../model/ModelResolver.ts"
import { lastTurn, steered } from "../request/Reminders.ts"
import type { ShownRequest } from "../request/Recorded.ts"
import { promptOf } from "../request/Request.ts"
import {
  correction,
  noOutput,
  outputAttempts,
  StructuredOutputFailed,
  type OutputState
} from "../request/StructuredOutput.ts"
import { join, type Wishes } from "../request/Wishes.ts"
import { nothingContinued } from "../session/ActivityRows.ts"
import { CurrentLocation } from "../session/CurrentLocation.ts"
import { Lineage } from "../session/Lineage.ts"
import { locationKey } from "../session/Locations.ts"
import type { Message, Session } from "../session/Message.ts"
import { ProviderFailed, TurnLimitExceeded, type RunError } from "../session/RunError.ts"
import type { Budget, ModelRef } from "../session/Schemas.ts"
import { SessionStore } from "../session/SessionStore.ts"
import type { ToolDeclined } from "../tool/ToolDefinition.ts"
import * as BudgetCheck from "./BudgetCheck.ts"
import * as Frames from "./Frames.ts"
import * as History from "./History.ts"
import * as Inbox from "./Inbox.ts"
import { outcomeOf, type ActivityResult, type DrainResult } from "./Outcome.ts"
import * as Preparation from "./Preparation.ts"
import * as Preview from "./Preview.ts"
import * as Recovery from "./Recovery.ts"
import * as Repeats from "./Repeats.ts"
import { runTurn } from "./Turn.ts"

/** Provider turns of one activity, where the agent says nothing else (TU-4). */
const defaultTurnLimit = 25

export interface RunnerOptions {
  /** Steers that become visible at one safe boundary; the rest follow at the next (IN-12). */
  readonly steerBatchLimit: number
  /** The host's limit for sessions that have none of their own. */
  readonly budget: Budget
}

export interface RunInput {
  readonly sessionID: SessionID
  readonly owner: OwnerToken
  /** At least one provider turn, even when nothing waits (PR-6). */
  readonly force: boolean
  /** Told which activity runs, from before its start is in the log until its end is. */
  readonly running: (activityID: ActivityID | undefined) => void
}

export class SessionRunner extends Context.Tag("@daybook/core/SessionRunner")<
  SessionRunner,
  {
    readonly run: (input: RunInput) => Effect.Effect<DrainResult, RunError | ToolDeclined>
    /** The request that a turn would begin with now; nothing is written, and no provider asked (RQ-37). */
    readonly preview: (sessionID: SessionID) => Effect.Effect<ShownRequest, RunError | ReadError>
  }
>() {}

/** `pruned`, `compacted`: the turn is to be assembled anew. `nothing`: what it was for was taken back. */
type Boundary = "continue" | "done" | "moved" | "pruned" | "compacted" | "nothing"

const make = Effect.fnUntraced(function* ({ budget: fallbackBudget, steerBatchLimit }: RunnerOptions) {
  const log = yield* EventLog
  const store = yield* SessionStore
  const lineage = yield* Lineage
  const epochs = yield* ContextEpoch
  const registry = yield* ContextRegistry
  const compaction = yield* Compaction
  const identifiers = yield* Identifiers
  const here = yield* CurrentLocation
  const history = yield* History.make
  const preparation = yield* Preparation.make
  const { prepare, resolve } = preparation
  const frameChange = Frames.make()
  const inbox = yield* Inbox.make(steerBatchLimit)
  const { eligible, pick, waits, withdrawn } = inbox
  const preview = yield* Preview.make({ history, preparation, inbox })
  const budget = BudgetCheck.make(store, fallbackBudget)
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

  type Activity = {
    readonly id: ActivityID
    readonly trigger: Inbox.Trigger
    started: boolean
    agent: Agent | undefined
    /** Turns so far. */
    turns: number
    wishes: Wishes
    /** The prompts that the work began with. */
    opening: ReadonlyArray<MessageID>
    output: OutputState
  }

  const limitOf = ({ agent }: Activity): number => agent?.turnLimit ?? defaultTurnLimit

  const reminder = (text: string) =>
    Effect.map(identifiers.message, (messageID) => draft("session.next.synthetic", { messageID, text }))

  /**
   * What opens the activity, the inputs that become visible with it, and what the model is reminded of (RQ-24). False
   * when nothing opens it any more: what it was for was taken back.
   */
  const promote = Effect.fnUntraced(function* (input: RunInput, activity: Activity, mode: Inbox.Trigger) {
    const { owner, sessionID } = input
    for (;;) {
      const inputs = yield* eligible(sessionID, mode)
      if (!activity.started && activity.trigger !== "resume" && inputs.length === 0) return false
      const [{ admittedSeq } = { admittedSeq: undefined }] = inputs
      const before = activity.started
        ? activity
        : yield* store.continued(sessionID, { trigger: activity.trigger, admittedSeq })
      activity.wishes = inputs.reduce<Wishes>((wishes, { prompt }) => join(wishes, prompt), before.wishes)
      activity.opening = before.opening.length > 0 ? before.opening : inputs.map(({ id }) => id)
      if (inputs.length > 0) activity.output = noOutput()
      const opening = activity.started
        ? []
        : [draft("session.next.activity.started", { activityID: activity.id, trigger: activity.trigger })]
      const reminders = [
        ...(activity.turns > 0 && inputs.length > 0 ? [steered(inputs.length)] : []),
        ...(activity.turns > 0 && activity.turns === limitOf(activity) - 1 ? [lastTurn] : [])
      ]
      const drafts: ReadonlyArray<Draft> = [
        ...opening,
        ...inputs.map(Inbox.promotion),
        ...(yield* Effect.forEach(reminders, reminder))
      ]
      if (!Arr.isNonEmptyReadonlyArray(drafts)) return true
      const opened = yield* open(sessionID, owner, drafts).pipe(
        Effect.map(() => (activity.started = true)),
        // One of them was taken back between the look and the append, which stored nothing: look again (IB-41).
        Effect.catchTag("EventRefused", (refused) =>
          Effect.flatMap(withdrawn(inputs), (any) => (any ? Effect.succeed(false) : refused))
        ),
        Effect.uninterruptible
      )
      if (opened) return true
    }
  })

  const loadHistory = (sessionID: SessionID, baselineSeq: number) =>
    Effect.catchTags(history.load(sessionID, baselineSeq), { CursorAhead: historyMoved, CursorExpired: historyMoved })

  /** What there would be to compact, when somebody asks for it. */
  const requested = Effect.fnUntraced(function* (input: RunInput, session: Session) {
    const agent = yield* lineage.agentOf(session)
    const ref = Preparation.modelOf(session, agent)
    const { info } = yield* resolve(ref, agent.settings ?? {})
    const epoch = yield* epochs.get(session.id)
    const messages = yield* loadHistory(session.id, epoch?.baselineSeq ?? -1)
    const work = yield* store.continued(session.id, { trigger: "resume", admittedSeq: undefined })
    const { model, request, settings } = yield* prepare({
      session,
      agent,
      info,
      baseline: epoch?.baseline ?? "",
      baselineSeq: epoch?.baselineSeq ?? -1,
      messages,
      wishes: work.wishes,
      output: noOutput()
    })
    yield* budget(session, info)
    const { state = "completed" } = session.activity ?? {}
    const opening = state === "completed" ? [] : work.opening
    return compactionRequest(input, session, model, settings, messages, request.tokens, ref, opening)
  })

  /** A compaction that was asked for, at a safe boundary and before anything is promoted (CP-41). */
  const compactOnRequest = Effect.fnUntraced(function* (input: RunInput, session: Session) {
    if (session.compaction?.state !== "requested") return
    const { id: messageID } = session.compaction
    const request = yield* Effect.either(requested(input, session))
    // Whatever stands in the way, the request does not stay open: it would be tried again with every wake.
    if (Either.isRight(request)) return yield* compaction.compactManually(request.right, messageID)
    const { _tag, message } = request.left
    return yield* compaction.refuse(input, messageID, { type: _tag, message })
  })

  const compactionRequest = (
    { owner, sessionID }: RunInput,
    { prunedSeq }: Session,
    model: ResolvedModel,
    settings: RequestSettings,
    messages: ReadonlyArray<Message>,
    tokens: number,
    ref: ModelRef | undefined,
    opening: ReadonlyArray<MessageID>
  ): CompactionRequest => ({
    sessionID,
    owner,
    model,
    summarizer: (maxOutputTokens) =>
      // The model was resolved a moment ago; should it be gone now, the one in hand serves.
      Effect.orElseSucceed(resolve(ref, { ...forSummary(settings), maxOutputTokens }), () => model),
    requestedOutput: settings.maxOutputTokens,
    messages,
    prunedSeq,
    opening,
    tokens
  })

  /** What the model's answer means for the form that the prompt asks for. */
  const checkOutput = Effect.fnUntraced(function* (input: RunInput, { output }: Activity, goesOn: boolean) {
    if (output.accepted) return "done" as const
    const wrong = output.wrong
    if (wrong || !goesOn) output.refused += 1
    output.wrong = false
    if (output.refused >= outputAttempts) {
      const details = wrong ? "its answer did not fit twice" : "it did not call the tool that takes the answer"
      return yield* new StructuredOutputFailed({ sessionID: input.sessionID, details })
    }
    if (!goesOn) yield* log.append(input.sessionID, [yield* reminder(correction)], { owner: input.owner })
    return "continue" as const
  })

  /** One turn, from loading the session to settling what it called (TU-5). `again`: how it was assembled anew. */
  const turn = Effect.fnUntraced(function* (
    input: RunInput,
    activity: Activity,
    mode: Inbox.Trigger,
    again: "pruned" | "compacted" | undefined
  ) {
    const { owner, sessionID } = input
    const session = yield* store.get(sessionID)
    if (locationKey(session.location) !== locationKey(here)) return yield* new LocationFence.LocationLeft()
    yield* compactOnRequest(input, session)
    const agent = yield* lineage.agentOf(session)
    activity.agent = agent
    const ref = Preparation.modelOf(session, agent)
    // Resolved for the context too, but it fails the turn only where its place is (TU-5).
    const resolved = yield* Effect.either(resolve(ref, agent.settings ?? {}))
    const observed = yield* registry.observe({
      sessionID,
      agent,
      model: Either.isRight(resolved) ? resolved.right.info : undefined
    })
    const initial = yield* epochs.prepare(sessionID, observed, { owner, fence })
    // A turn that is assembled anew goes out with the inputs it had (CM-9).
    if (again === undefined && !(yield* promote(input, activity, mode))) return "nothing"
    const epoch = yield* epochs.advance(sessionID, initial, observed, { owner, fence })
    const { info } = yield* resolved
    const messages = yield* loadHistory(sessionID, epoch.baselineSeq)
    const { wishes } = activity
    const { model, request, settings, tools } = yield* prepare({
      session,
      agent,
      info,
      baseline: epoch.baseline,
      baselineSeq: epoch.baselineSeq,
      messages,
      wishes,
      output: activity.output,
      prunedSince: again === "pruned"
    })
    yield* budget(session, info)
    const shrinkable = compactionRequest(
      input,
      session,
      model,
      settings,
      messages,
      request.tokens,
      ref,
      activity.opening
    )
    if (again === undefined) {
      const compacted = yield* compaction.compactIfNeeded(shrinkable)
      if (compacted !== "unchanged") return compacted
    }
    const messageID = yield* identifiers.message
    const step = draft("session.next.step.started", {
      assistantMessageID: messageID,
      agent: agent.name,
      model: model.info.ref,
      inputEstimate: Math.ceil(request.tokens),
      ...(model.info.price === undefined ? {} : { price: model.info.price })
    })
    const result = yield* provideLog(
      runTurn({
        sessionID,
        messageID,
        owner,
        agent,
        location: here,
        model,
        prompt: Prompt.make(promptOf(request)),
        tools,
        repeats: Repeats.make(messages),
        inputEstimate: Math.ceil(request.tokens),
        toolChoice: wishes.output === undefined ? "auto" : "required",
        open: Effect.suspend(() => open(sessionID, owner, Arr.append(frameChange(session, request.frame), step)))
      })
    ).pipe(
      // Another request goes out only where nothing came of this one, and a compaction may help (CM-10, CM-11).
      Effect.catchIf(isOverflow, (error) =>
        again === "compacted"
          ? Effect.fail(error)
          : Effect.flatMap(
              Effect.zipRight(budget(session, info), compaction.compactAfterOverflow(shrinkable)),
              (compacted) => (compacted ? Effect.succeed("compacted" as const) : Effect.fail(error))
            )
      )
    )
    if (result === "compacted") return result
    const output = wishes.output === undefined ? undefined : yield* checkOutput(input, activity, result.continue)
    const goesOn = output === undefined ? result.continue : output === "continue"
    return goesOn || (yield* waits(sessionID, "steer")) ? ("continue" as const) : ("done" as const)
  })

  const turns = Effect.fnUntraced(function* (input: RunInput, activity: Activity) {
    const moved = () => Effect.succeed("moved" as const)
    let mode = activity.trigger
    let again: "pruned" | "compacted" | undefined
    for (;;) {
      const outcome: Boundary = yield* Effect.catchTag(turn(input, activity, mode, again), "LocationLeft", moved)
      if (outcome === "moved") {
        return { _tag: "Moved", unfinished: activity.started || activity.trigger === "resume" } as const
      }
      if (outcome === "nothing") return { _tag: "Nothing" } as const
      mode = "steer"
      // Never twice without a turn in between; what makes a request smaller is no turn (TU-4, CM-12).
      again = outcome === "pruned" || outcome === "compacted" ? outcome : undefined
      if (again !== undefined) continue
      activity.turns += 1
      if (outcome === "done") return { _tag: "Drained" } as const
      const limit = limitOf(activity)
      if (activity.turns >= limit) return yield* new TurnLimitExceeded({ sessionID: input.sessionID, limit })
    }
  })

  /** One activity; however it ends, its end is in the log. */
  const runActivity = Effect.fn("SessionRunner.activity")(function* (input: RunInput, trigger: Inbox.Trigger) {
    const { owner, sessionID } = input
    const activity: Activity = {
      id: yield* identifiers.activity,
      trigger,
      started: false,
      agent: undefined,
      turns: 0,
      ...nothingContinued,
      output: noOutput()
    }
    const work = Effect.suspend(() => {
      input.running(activity.id)
      return turns(input, activity)
    })
    return yield* Effect.onExit(work, (exit) => {
      const ended = Effect.sync(() => input.running(undefined))
      if (!activity.started) return ended
      const settled = draft("session.next.activity.settled", { activityID: activity.id, ...outcomeOf(exit) })
      // An owner that was replaced may write nothing more: its successor settles this activity.
      return Effect.ensuring(Effect.ignoreLogged(log.append(sessionID, [settled], { owner })), ended)
    })
  })

  const run = Effect.fn("SessionRunner.run")(function* (input: RunInput) {
    const session = yield* store.get(input.sessionID)
    yield* recover(session, input.owner)
    let forced = input.force
    for (;;) {
      const next = yield* pick(input.sessionID)
      const trigger = Option.isSome(next) ? next.value : forced ? "resume" : undefined
      if (trigger === undefined) {
        yield* compactOnRequest(input, yield* store.get(input.sessionID))
        return { _tag: "Drained" } as const
      }
      const result: ActivityResult = yield* runActivity(input, trigger)
      if (result._tag === "Nothing") continue
      forced = false
      if (result._tag === "Moved") return result
      yield* Effect.flatMap(store.waitingCount(input.sessionID), (depth) => Metric.set(Metrics.inboxDepth, depth))
    }
  })

  return SessionRunner.of({ run, preview })
})

/** The session's settings, but for what would cut a summary short. */
const forSummary = (settings: RequestSettings): RequestSettings => Struct.omit(settings, "stop")

/** The request was too long, and nothing came of it. */
const isOverflow = (error: unknown): error is ProviderFailed =>
  error instanceof ProviderFailed && error.overflow && !error.partial

/** A session that is owned and running neither shrinks nor forgets: its own history cannot be out of reach. */
const historyMoved = (error: CursorAhead | CursorExpired) => Effect.die(error)

/** The runner of the current Location. */
export const layer = (options: RunnerOptions) => Layer.effect(SessionRunner, make(options))
