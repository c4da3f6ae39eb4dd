/**
 * Runs an activity's turns: boundary, request, and again while the model has results to read or a steer waits, at most
 * `turnLimit` times. Spec: EX-D5, EX-D7, EX-D8 in specs/execution.md, RQ-644..RQ-648 in specs/context.md (TU-3..TU-6,
 * CM-9..CM-12, RQ-40..RQ-44).
 */
import { Array as Arr, Cause, Data, Effect, Exit, Option, Ref } from "effect"
import type { AnswerProblem } from "@daybook/log/domain/AnswerProblem"
import { Identifiers } from "@daybook/log/domain/Identifiers"
import { CurrentLocation, type StoredError } from "@daybook/log/domain/Values"
import { draft, type Draft } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { SessionStore, type Standing } from "@daybook/log/store/SessionStore"
import { Compaction } from "../compaction/Compaction.ts"
import { described, ProviderFailed, TurnLimitExceeded } from "../domain/RunFailure.ts"
import { ToolDeclined } from "../domain/ToolError.ts"
import { priceAt } from "../model/Usage.ts"
import { answeredNothing } from "../request/Reminders.ts"
import { type Change, type PartRef, repair, type Trial } from "../request/Repair.ts"
import { promptOf, shownFor } from "../request/Request.ts"
import { correction, outputAttempts, type OutputState, StructuredOutputFailed } from "../request/StructuredOutput.ts"
import { Snapshots } from "../snapshot/Snapshots.ts"
import * as Activity from "./Activity.ts"
import type { Eligibility, Trigger } from "./Activity.ts"
import { type Again, type Approach, type CheckBudget, type Ready, reminder } from "./Boundary.ts"
import * as Preparation from "./Preparation.ts"
import * as Publication from "./Publication.ts"
import { runTurn, type TurnInput, type TurnResult } from "./Turn.ts"
import * as Recorder from "./recorder/TurnRecorder.ts"

// Repairs a session whose request was rejected because of its content: stores which parts the model is no longer shown.

type TrialRef = Ref.Ref<Trial | undefined>

interface Rejection {
  readonly owned: Activity.Owned
  readonly activity: Ref.Ref<Activity.Activity>
  readonly ready: Ready
  readonly trial: TrialRef
  readonly error: ProviderFailed
}

const maxReasonChars = 300

const withheld = (reason: string | undefined) => (part: PartRef) =>
  draft("session.next.part.withheld", { ...part, ...(reason === undefined ? {} : { reason }) })

const draftsOf = ({ shown, withheld: parts }: Change, reason: string): ReadonlyArray<Draft> => [
  ...shown.map(withheld(undefined)),
  ...parts.map(withheld(reason.slice(0, maxReasonChars)))
]

/** The failure with what a person can do. */
const withAdvice = ({ details, overflow, partial, providerID, retryable, sessionID }: ProviderFailed): ProviderFailed =>
  new ProviderFailed({
    sessionID,
    providerID,
    retryable,
    overflow,
    partial,
    details: `${details}; take the prompt back with daybook undo, or choose another model with daybook switch`
  })

const makeContentRepair = Effect.gen(function* () {
  const log = yield* EventLog

  /** Succeeds when the turn can be assembled again without the rejected parts; else fails with the error. */
  return Effect.fnUntraced(function* ({ activity, error, owned, ready, trial }: Rejection) {
    const before = yield* Ref.get(trial)
    const { rejected } = error
    if (error.partial || (rejected === undefined && before === undefined)) return yield* error
    const { info, messages, session } = ready
    const { opening } = yield* Ref.get(activity)
    const change: Change =
      rejected === undefined
        ? { shown: before?.trying ?? [], withheld: [], trial: undefined }
        : repair({ messages, shown: shownFor(info, session.prunedSeq), opening, rejected, before })
    const drafts = draftsOf(change, error.details)
    if (Arr.isNonEmptyReadonlyArray(drafts)) yield* log.append(owned.sessionID, drafts, { owner: owned.owner })
    yield* Ref.set(trial, change.trial)
    if (change.trial !== undefined) return
    // Without a reason and without anything to try, content is one guess of many.
    const isAbout = rejected !== undefined && (rejected.kind !== "unknown" || before !== undefined)
    return yield* isAbout ? withAdvice(error) : error
  })
})

// Maps the end of an activity to its outcome in the log.

/**
 * `Moved`: the session is now at another Location; `unfinished` tells whether its activity still had work. `Left`: its
 * next owner goes on.
 */
export type DrainResult =
  { readonly _tag: "Drained" } | { readonly _tag: "Moved"; readonly unfinished: boolean } | { readonly _tag: "Left" }

/** `Nothing`: the input that would have opened the activity was withdrawn before the start. */
export type ActivityResult = DrainResult | { readonly _tag: "Nothing" }

type SettledOutcome = { readonly outcome: "completed" | "failed" | "interrupted"; readonly error?: StoredError }

/** A tagged error, as the log stores it. */
type Failure = { readonly _tag: string; readonly message: string }

/** The outcome of an activity whose last answer lacks nothing, or this. */
const completed = (problem: AnswerProblem | undefined): SettledOutcome => ({
  outcome: "completed",
  ...(problem === undefined ? {} : { error: problem })
})

/** The outcome of an activity that ended with this exit. */
export const outcomeOf = (
  exit: Exit.Exit<ActivityResult, Failure>,
  problem: AnswerProblem | undefined
): SettledOutcome => {
  if (Exit.isSuccess(exit)) {
    return exit.value._tag !== "Moved"
      ? completed(problem)
      : { outcome: "interrupted", error: { type: "session.moved", message: "the session moved to another Location" } }
  }
  const failure = Option.getOrUndefined(Cause.failureOption(exit.cause))
  if (failure === undefined) {
    return Cause.isInterruptedOnly(exit.cause)
      ? { outcome: "interrupted" }
      : {
          outcome: "failed",
          error: { type: "defect", message: described(exit.cause, "an internal error ended the activity") }
        }
  }
  return failure instanceof ToolDeclined
    ? { outcome: "interrupted", error: { type: "declined", message: failure.message } }
    : { outcome: "failed", error: { type: failure._tag, message: failure.message } }
}

export { TurnLimitExceeded } from "../domain/RunFailure.ts"

export interface TurnLoopParts {
  readonly approach: Approach
  readonly budget: CheckBudget
  readonly eligibility: Eligibility
}

type Ending = TurnInput<never>["ending"]

/** Whether an answer that lacks this is asked again. */
type AsksAgain = (problem: AnswerProblem | undefined) => boolean

/**
 * `pruned`, `compacted`, `repaired`: assemble the turn again. `withdrawn`: select its inputs again. `nothing`: the input that would have
 * opened it was withdrawn.
 */
type Outcome = "continue" | "done" | "moved" | "nothing" | "withdrawn" | Again

/** An input was withdrawn before the turn that promotes it began, so nothing of the turn is stored. */
class Withdrawn extends Data.TaggedError("Withdrawn") {}

/** The request was too long and produced nothing. */
const isOverflow = (error: ProviderFailed): boolean => error.overflow && !error.partial

const isProviderFailed = (error: unknown): error is ProviderFailed => error instanceof ProviderFailed

const isAgain = (outcome: Outcome): outcome is Again =>
  outcome === "pruned" || outcome === "compacted" || outcome === "repaired"

/** Sends a ready request as one turn. */
const makeSend = Effect.gen(function* () {
  const log = yield* EventLog
  const identifiers = yield* Identifiers
  const location = yield* CurrentLocation
  const snapshots = yield* Snapshots
  const frameChange = Preparation.makeRequestFrames()

  return Effect.fnUntraced(function* (owned: Activity.Owned, ready: Ready, ending: Ending) {
    const { agent, epoch, messages, prepared, session, wishes } = ready
    const { model, request, tools } = prepared
    const messageID = yield* identifiers.message
    const inputEstimate = Math.ceil(request.tokens)
    const step = draft("session.next.step.started", {
      assistantMessageID: messageID,
      agent: agent.name,
      model: model.info.ref,
      inputEstimate,
      ...(model.info.price === undefined ? {} : { price: priceAt(model.info.price, inputEstimate) })
    })
    return yield* runTurn({
      ...owned,
      log,
      messageID,
      agent,
      location,
      model,
      prompt: promptOf(request),
      tools,
      snapshots,
      repeats: Publication.makeRepeats(messages),
      ending,
      inputEstimate,
      toolChoice: wishes.output === undefined ? "auto" : "required",
      open: Effect.flatMap(
        Effect.suspend(() => ready.open(Arr.append(frameChange(session, request.frame, epoch), step))),
        (stored) => (stored ? Effect.void : new Withdrawn())
      )
    })
  })
})

/** The end of an activity that completes with this answer: no steer waits, and no structured answer is due (EX-111). */
const endingOf =
  (
    store: SessionStore["Type"],
    { sessionID }: Activity.Owned,
    activity: Ref.Ref<Activity.Activity>,
    { wishes }: Ready,
    asksAgain: AsksAgain
  ): Ending =>
  (answer) => {
    const problem = Recorder.problemIn(answer)
    if (wishes.output !== undefined || Recorder.goesOn(answer) || asksAgain(problem)) return Effect.succeed(undefined)
    return Effect.zipWith(store.standing(sessionID), Ref.get(activity), (standing, { id }) =>
      standing.steers > 0
        ? undefined
        : {
            drafts: [draft("session.next.activity.settled", { activityID: id, ...completed(problem) })],
            stored: Ref.update(activity, (now) => Activity.withEnd(now, standing))
          }
    ).pipe(
      // The check after the turn fails again, and with it the run.
      Effect.orElseSucceed(() => undefined)
    )
  }

/** Decides from the state of the structured answer whether the activity continues after a turn. */
const makeCheckOutput = Effect.gen(function* () {
  const log = yield* EventLog
  const identifiers = yield* Identifiers

  return Effect.fnUntraced(function* (
    { owner, sessionID }: Activity.Owned,
    output: OutputState,
    { continue: goesOn, problem }: TurnResult
  ) {
    if (output.accepted) return false
    const wrong = output.wrong
    if (wrong || !goesOn) output.refused += 1
    output.wrong = false
    if (output.refused >= outputAttempts) {
      const details = wrong
        ? "its answer was invalid twice"
        : (problem?.message ?? "it did not call the tool that takes the answer")
      return yield* new StructuredOutputFailed({ sessionID, details })
    }
    if (!goesOn) yield* log.append(sessionID, [yield* reminder(identifiers, correction)], { owner })
    return true
  })
})

export const make = Effect.fnUntraced(function* ({ approach, budget, eligibility }: TurnLoopParts) {
  const compaction = yield* Compaction
  const store = yield* SessionStore
  const log = yield* EventLog
  const identifiers = yield* Identifiers
  const send = yield* makeSend
  const checkOutput = yield* makeCheckOutput
  const repair = yield* makeContentRepair

  /** Compacts after a refused request; true: the turn can be assembled again (CM-10, CM-11). */
  const compactAfterOverflow = ({ compactable, info, session }: Ready) =>
    Effect.zipRight(budget(session, info), compaction.compactAfterOverflow(compactable()))

  /** One turn, from loading the session to settling its calls (TU-5). */
  const turn = Effect.fnUntraced(function* (
    owned: Activity.Owned,
    activity: Ref.Ref<Activity.Activity>,
    mode: Trigger,
    again: Again | undefined,
    standing: Standing | undefined,
    trial: TrialRef
  ) {
    const ready = yield* approach({ owned, activity, mode, again, standing })
    if (typeof ready === "string") return ready
    const mayAskAgain = Activity.mayAskAgain(yield* Ref.get(activity), ready.messages)
    const asksAgain: AsksAgain = (problem) => mayAskAgain && problem?.type === "answer.empty"
    const ending = endingOf(store, owned, activity, ready, asksAgain)
    const result = yield* Effect.catchIf(send(owned, ready, ending), isProviderFailed, (error) =>
      isOverflow(error)
        ? again === "compacted"
          ? error
          : Effect.flatMap(compactAfterOverflow(ready), (compacted) =>
              compacted ? Effect.succeed("compacted" as const) : error
            )
        : Effect.as(repair({ owned, ready, activity, trial, error }), "repaired" as const)
    )
    if (typeof result === "string") return result
    yield* Ref.set(trial, undefined)
    if ((yield* Ref.get(activity)).ended) return "done"
    const isStructured = ready.wishes.output !== undefined
    const goesOn = isStructured ? yield* checkOutput(owned, ready.output, result) : result.continue
    if (goesOn || (yield* eligibility.waits(owned.sessionID, "steer"))) return "continue"
    if (isStructured) return "done"
    if (asksAgain(result.problem)) {
      yield* log.append(owned.sessionID, [yield* reminder(identifiers, answeredNothing)], { owner: owned.owner })
      return "continue"
    }
    yield* Ref.update(activity, (now) => Activity.withProblem(now, result.problem))
    return "done"
  })

  /** `begun`: the session as it was when the activity began. */
  return Effect.fnUntraced(function* (
    owned: Activity.Owned,
    begun: Standing,
    activity: Ref.Ref<Activity.Activity>,
    leaving: Activity.Leaving
  ) {
    const { trigger } = yield* Ref.get(activity)
    let standing: Standing | undefined = begun
    let mode = trigger
    let again: Again | undefined
    const trial: TrialRef = yield* Ref.make<Trial | undefined>(undefined)
    for (;;) {
      const outcome: Outcome = yield* Effect.catchTags(turn(owned, activity, mode, again, standing, trial), {
        LocationLeft: () => Effect.succeed("moved" as const),
        Withdrawn: () => Effect.succeed("withdrawn" as const)
      })
      standing = undefined
      if (outcome === "withdrawn") continue
      if (outcome === "moved") {
        const { started } = yield* Ref.get(activity)
        return { _tag: "Moved", unfinished: started || trigger === "resume" } as const
      }
      if (outcome === "nothing") return { _tag: "Nothing" } as const
      mode = "steer"
      // Never compacts twice without a turn in between; making a request smaller does not count as a turn (TU-4,
      // CM-12).
      again = isAgain(outcome) ? outcome : undefined
      if (again !== undefined) continue
      const { turnLimit: limit, turns } = yield* Ref.updateAndGet(activity, Activity.withTurn)
      if (outcome === "done") return { _tag: "Drained" } as const
      if (turns >= limit) return yield* new TurnLimitExceeded({ sessionID: owned.sessionID, limit })
      if (leaving()) return { _tag: "Left" } as const
    }
  })
})
