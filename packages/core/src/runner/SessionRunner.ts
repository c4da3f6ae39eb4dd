/**
 * Drains one session at one Location: activities from the inbox, turn after turn, until no input is eligible.
 *
 *   drain:    settle what a dead process left -> pick steer, else queue, else (forced) nothing -> activity -> pick
 * again
 *   activity: turn; continue while the model has results to read or a steer waits; at most `turnLimit` turns
 *   turn:     session -> fence -> requested compaction -> agent -> epoch -> promote -> reconcile -> model -> history
 *             -> tools -> request -> budget -> compaction -> step
 *
 * `Preparation.ts` builds the request, `Turn.ts` runs one provider request per turn.
 * Spec: EX-D1..EX-D8 (TU-1..TU-6, PR-1..PR-6).
 */
import * as Prompt from "@effect/ai/Prompt"
import * as SqlClient from "@effect/sql/SqlClient"
import { Array as Arr, Context, Effect, Either, Layer, Metric, Option, Struct } from "effect"
import { CurrentLocation } from "@daybook/log/domain/CurrentLocation"
import { type ActivityID, Identifiers, type MessageID, type SessionID } from "@daybook/log/domain/Identifiers"
import type { Message, Session } from "@daybook/log/domain/Message"
import { type Budget, locationKey, type ModelRef } from "@daybook/log/domain/Values"
import { join, type Wishes } from "@daybook/log/domain/Wishes"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import {
  type CursorAhead,
  type CursorExpired,
  EventLog,
  type OwnerToken,
  type ReadError
} from "@daybook/log/log/EventLog"
import { unavailable } from "@daybook/log/log/EventRow"
import { nothingContinued } from "@daybook/log/store/ActivityRows"
import { SessionStore } from "@daybook/log/store/SessionStore"
import * as Metrics from "@daybook/log/support/Metrics"
import { Lineage } from "../agent/Lineage.ts"
import { Compaction, type CompactionRequest } from "../compaction/Compaction.ts"
import { ContextEpoch } from "../context/ContextEpoch.ts"
import { ContextRegistry } from "../context/ContextRegistry.ts"
import * as LocationFence from "../context/LocationFence.ts"
import type { Agent, RequestSettings } from "../domain/Agent.ts"
import type { ToolDeclined } from "../domain/ToolError.ts"
import type { ResolvedModel } from "../model/ModelResolver.ts"
import type { ShownRequest } from "../request/Recorded.ts"
import { lastTurn, steered } from "../request/Reminders.ts"
import { promptOf } from "../request/Request.ts"
import {
  correction,
  noOutput,
  outputAttempts,
  type OutputState,
  StructuredOutputFailed
} from "../request/StructuredOutput.ts"
import * as BudgetCheck from "./BudgetCheck.ts"
import * as Frames from "./Frames.ts"
import * as History from "./History.ts"
import * as Inbox from "./Inbox.ts"
import { type ActivityResult, type DrainResult, outcomeOf } from "./Outcome.ts"
import * as Preparation from "./Preparation.ts"
import * as Preview from "./Preview.ts"
import * as Recovery from "./Recovery.ts"
import * as Repeats from "./Repeats.ts"
import { ProviderFailed, type RunError, TurnLimitExceeded } from "./RunError.ts"
import { runTurn } from "./Turn.ts"

/** Provider turns per activity when the agent sets no limit (TU-4). */
const defaultTurnLimit = 25

export interface RunnerOptions {
  /** Maximum steers promoted at one safe boundary; the rest follow at the next (IN-12). */
  readonly steerBatchLimit: number
  /** The host's limit for sessions without a budget. */
  readonly budget: Budget
}

export interface RunInput {
  readonly sessionID: SessionID
  readonly owner: OwnerToken
  /** Run at least one provider turn, even when no input waits (PR-6). */
  readonly force: boolean
  /** Called with the activity's id before its start is logged, and with undefined after its end is logged. */
  readonly running: (activityID: ActivityID | undefined) => void
}

export class SessionRunner extends Context.Tag("@daybook/core/SessionRunner")<
  SessionRunner,
  {
    readonly run: (input: RunInput) => Effect.Effect<DrainResult, RunError | ToolDeclined>
    /** Returns the request that the next turn would send. Writes nothing and calls no provider (RQ-37). */
    readonly preview: (sessionID: SessionID) => Effect.Effect<ShownRequest, RunError | ReadError>
  }
>() {}

/** `pruned`, `compacted`: assemble the turn again. `nothing`: its input was withdrawn. */
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

  /** Appends the events that open a turn, unless the session has moved away (TU-11). */
  const open = (sessionID: SessionID, owner: OwnerToken, drafts: Arr.NonEmptyReadonlyArray<Draft>) =>
    Effect.catchTag(log.append(sessionID, drafts, { owner, commit: () => fence(sessionID) }), "SqlError", (error) =>
      notChecked(error)
    )

  /** Fails what an earlier process left running and marks its activity as interrupted; nothing runs again (TU-2). */
  const recover = Effect.fn("SessionRunner.recover")(function* (session: Session, owner: OwnerToken) {
    const drafts = yield* recovery(session)
    if (Arr.isNonEmptyReadonlyArray(drafts)) yield* log.append(session.id, drafts, { owner })
  })

  type Activity = {
    readonly id: ActivityID
    readonly trigger: Inbox.Trigger
    started: boolean
    agent: Agent | undefined
    /** Completed turns. */
    turns: number
    wishes: Wishes
    /** The prompts that opened the work. */
    opening: ReadonlyArray<MessageID>
    output: OutputState
  }

  const limitOf = ({ agent }: Activity): number => agent?.turnLimit ?? defaultTurnLimit

  const reminder = (text: string) =>
    Effect.map(identifiers.message, (messageID) => draft("session.next.synthetic", { messageID, text }))

  /**
   * Promotes inputs and appends the activity's start and the reminders for the model (RQ-24). Returns false when no
   * input is left to open the activity, because it was withdrawn.
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
        // An input was withdrawn between the read and the append, and nothing was stored: select again (IB-41).
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

  /** The input of a manual compaction. */
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

  /** Runs a requested compaction, at a safe boundary and before any promotion (CP-41). */
  const compactOnRequest = Effect.fnUntraced(function* (input: RunInput, session: Session) {
    if (session.compaction?.state !== "requested") return
    const { id: messageID } = session.compaction
    const request = yield* Effect.either(requested(input, session))
    // Any failure closes the request: an open request would be tried again on every wake.
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
      // The model was resolved before; if it is gone now, use the instance at hand.
      Effect.orElseSucceed(resolve(ref, { ...forSummary(settings), maxOutputTokens }), () => model),
    requestedOutput: settings.maxOutputTokens,
    messages,
    prunedSeq,
    opening,
    tokens
  })

  /** Decides from the structured-output state whether the activity continues. */
  const checkOutput = Effect.fnUntraced(function* (input: RunInput, { output }: Activity, goesOn: boolean) {
    if (output.accepted) return "done" as const
    const wrong = output.wrong
    if (wrong || !goesOn) output.refused += 1
    output.wrong = false
    if (output.refused >= outputAttempts) {
      const details = wrong ? "its answer was invalid twice" : "it did not call the tool that takes the answer"
      return yield* new StructuredOutputFailed({ sessionID: input.sessionID, details })
    }
    if (!goesOn) yield* log.append(input.sessionID, [yield* reminder(correction)], { owner: input.owner })
    return "continue" as const
  })

  /** One turn, from loading the session to settling its calls (TU-5). `again`: why it is assembled again. */
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
    // The context needs the model too; a resolution error fails the turn only at its place in the order (TU-5).
    const resolved = yield* Effect.either(resolve(ref, agent.settings ?? {}))
    const observed = yield* registry.observe({
      sessionID,
      agent,
      model: Either.isRight(resolved) ? resolved.right.info : undefined
    })
    const initial = yield* epochs.prepare(sessionID, observed, { owner, fence })
    // A turn that is assembled again keeps its inputs (CM-9).
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
      // Sends another request only if this one produced nothing and a compaction may help (CM-10, CM-11).
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
      // Never compacts twice without a turn in between; making a request smaller does not count as a turn (TU-4,
      // CM-12).
      again = outcome === "pruned" || outcome === "compacted" ? outcome : undefined
      if (again !== undefined) continue
      activity.turns += 1
      if (outcome === "done") return { _tag: "Drained" } as const
      const limit = limitOf(activity)
      if (activity.turns >= limit) return yield* new TurnLimitExceeded({ sessionID: input.sessionID, limit })
    }
  })

  /** Runs one activity and logs its end, however it ends. */
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
      // A replaced owner must not write: its successor settles this activity.
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

/** The session's settings without stop sequences, which could cut a summary short. */
const forSummary = (settings: RequestSettings): RequestSettings => Struct.omit(settings, "stop")

/** The request was too long and produced nothing. */
const isOverflow = (error: unknown): error is ProviderFailed =>
  error instanceof ProviderFailed && error.overflow && !error.partial

/** While a session is owned and running, its log neither shrinks nor expires: this is a broken invariant. */
const historyMoved = (error: CursorAhead | CursorExpired) => Effect.die(error)

/** The runner for the current Location. */
export const layer = (options: RunnerOptions) => Layer.effect(SessionRunner, make(options))
