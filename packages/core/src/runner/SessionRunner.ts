/**
 * Drains one session at one Location: activities from the inbox, turn after turn, until no input is eligible.
 *
 *   drain:    settle what a dead process left -> pick steer, else (to continue that) nothing, else queue, else (forced)
 *             nothing -> activity -> pick again
 *   activity: `Activity.ts`, its state; `TurnLoop.ts`, its turns
 *   turn:     `Boundary.ts`, all before the request; `Turn.ts`, the request, its stream and its tools
 *
 * Spec: EX-D1..EX-D8 in specs/execution.md, RQ-37..RQ-39 in specs/context.md (TU-1..TU-6, TU-13, PR-1..PR-6).
 */
import { Array as Arr, Context, Effect, Exit, Layer, Metric, Ref } from "effect"
import { processEnded } from "@daybook/log/coordination/OwnerRows"
import type { Ownership } from "@daybook/log/coordination/SessionOwner"
import { type ActivityID, Identifiers, MessageID, type SessionID } from "@daybook/log/domain/Identifiers"
import type { AssistantMessage, Message, Session } from "@daybook/log/domain/Message"
import { type Budget, join, type Wishes } from "@daybook/log/domain/Values"
import { draft, type Draft, type SessionEvent } from "@daybook/log/events/SessionEvents"
import { EventLog, type OwnerToken, type ReadError } from "@daybook/log/log/EventLog"
import { type Attempts, SessionStore, type Standing, type UnsettledTool } from "@daybook/log/store/SessionStore"
import * as Metrics from "@daybook/log/support/Metrics"
import { Lineage } from "../agent/Lineage.ts"
import { ContextEpoch, type Epoch, InitializationBlocked } from "../context/ContextEpoch.ts"
import { ContextRegistry } from "../context/ContextRegistry.ts"
import { initialize, type Observed, reconcile, replace } from "../context/SystemContext.ts"
import type { ToolDeclined } from "../domain/ToolError.ts"
import { estimateOf, type Used } from "../model/Usage.ts"
import type { ShownRequest } from "../request/Recorded.ts"
import { noOutput } from "../request/StructuredOutput.ts"
import * as Activity from "./Activity.ts"
import { type Eligibility, pick } from "./Activity.ts"
import * as Boundary from "./Boundary.ts"
import { messagesOf } from "./Boundary.ts"
import * as History from "./History.ts"
import * as Preparation from "./Preparation.ts"
import type { RunError } from "./RunError.ts"
import { interruptedTool } from "./Turn.ts"
import * as TurnLoop from "./TurnLoop.ts"
import { type ActivityResult, type DrainResult, outcomeOf } from "./TurnLoop.ts"
import { spanned } from "@daybook/log/support/Spans"

// Builds the request that a turn would send now; writes nothing and does not compact.

interface PreviewParts {
  readonly history: History.History
  readonly preparation: Preparation.Preparation
  readonly eligibility: Eligibility
}

const plan = (
  sessionID: SessionID,
  epoch: Epoch | undefined,
  observed: Observed,
  compactedSeq: number
): Effect.Effect<Pick<Epoch, "baseline" | "baselineSeq"> & { readonly told?: string }, InitializationBlocked> =>
  Effect.gen(function* () {
    if (epoch === undefined) {
      const first = initialize(observed)
      if (first._tag === "Blocked") return yield* new InitializationBlocked({ keys: first.keys })
      return { baseline: first.baseline, baselineSeq: Number.MAX_SAFE_INTEGER }
    }
    const fresh = compactedSeq > epoch.baselineSeq ? replace(observed, epoch.snapshot) : undefined
    if (fresh?._tag === "Ready") return { baseline: fresh.baseline, baselineSeq: Number.MAX_SAFE_INTEGER }
    const change = reconcile(observed, epoch.snapshot)
    switch (change._tag) {
      case "Unchanged":
        return epoch
      case "Updated":
        return { ...epoch, told: change.text }
      case "Replaced":
        return { baseline: change.baseline, baselineSeq: Number.MAX_SAFE_INTEGER }
    }
  })

/** Builds the preview for sessions at the current Location. */
const makePreview = Effect.fnUntraced(function* ({ eligibility, history, preparation }: PreviewParts) {
  const store = yield* SessionStore
  const lineage = yield* Lineage
  const epochs = yield* ContextEpoch
  const registry = yield* ContextRegistry

  return Effect.fn("Preview.request")(function* (sessionID: SessionID) {
    const standing = yield* store.standing(sessionID)
    const { session } = standing
    const agent = yield* lineage.agentOf(session)
    const { info } = yield* preparation.resolve(Preparation.modelOf(session, agent), agent.settings ?? {})
    const observed = yield* registry.observe({ sessionID, agent, model: info })
    const epoch = yield* epochs.get(sessionID)
    const stored = yield* history.load(sessionID, epoch?.baselineSeq ?? -1)
    const compacted = stored.findLast(({ type }) => type === "compaction")
    const { baseline, baselineSeq, told } = yield* plan(sessionID, epoch, observed, compacted?.seq ?? -1)
    const next = pick(standing) ?? "resume"
    const inputs = yield* eligibility.eligible(sessionID, next)
    const { wishes: held } = yield* store.continued(sessionID, { trigger: next, admittedSeq: inputs[0]?.admittedSeq })
    const seq = stored.at(-1)?.seq ?? 0
    const prompts = messagesOf(inputs, seq)
    const update: ReadonlyArray<Message> =
      told === undefined
        ? []
        : [
            {
              type: "system",
              id: MessageID.make("msg_preview"),
              seq: seq + 1 + inputs.length,
              createdAt: 0,
              text: told
            }
          ]
    const messages: ReadonlyArray<Message> = [
      ...stored.filter((message) => message.type !== "system" || message.seq > baselineSeq),
      ...prompts,
      ...update
    ]
    const prepared = yield* preparation.prepare({
      session,
      agent,
      info,
      baseline,
      baselineSeq: epoch?.baselineSeq ?? -1,
      messages,
      wishes: inputs.reduce<Wishes>((held, { prompt }) => join(held, prompt), held),
      output: noOutput()
    })
    const { request } = prepared
    return {
      sessionID,
      agent: agent.name,
      model: prepared.model.info.ref,
      frame: request.frame,
      messages: request.messages,
      estimate: request.estimate
    }
  })
})

// Settles as failed what a dead process left open in a session; nothing runs again.

const failedCall = ({ callID, executed, messageID, metadata }: UnsettledTool): Draft =>
  draft("session.next.tool.failed", {
    assistantMessageID: messageID,
    callID,
    error: interruptedTool,
    provider: { executed, ...(metadata === undefined ? {} : { metadata }) }
  })

/** Estimated usage of the step; empty when the log does not have the size of its request. */
const usedBy = ({ content, inputEstimate, price }: AssistantMessage): Partial<Used> => {
  if (inputEstimate === undefined) return {}
  const sizes = content.map((part) =>
    part.type === "tool" ? (part.raw ?? JSON.stringify(part.input ?? "")).length : (part.text ?? "").length
  )
  const sum = (kept: (index: number) => boolean) => sizes.reduce((all, size, at) => (kept(at) ? all + size : all), 0)
  const received = { all: sum(() => true), reasoning: sum((at) => content[at]?.type === "reasoning") }
  return estimateOf(inputEstimate, received, price)
}

/** What a dead process left in a session. */
export interface Leftover {
  /** The events that settle it. */
  readonly drafts: ReadonlyArray<Draft>
  /** The activity that goes on after them, and its turns (EX-E13); undefined if they settle it. */
  readonly goesOn: { readonly activityID: ActivityID; readonly turns: number } | undefined
}

const beginsWith = ({ data, type }: SessionEvent, left: ReadonlySet<string>) =>
  (type === "session.next.step.started" && left.has(data.assistantMessageID)) ||
  (type === "session.next.compaction.started" && left.has(data.messageID))

const begins = ({ type }: SessionEvent) =>
  type === "session.next.step.started" || type === "session.next.compaction.started"

const isCutOff = ({ data, type }: SessionEvent) =>
  type === "session.next.tool.failed"
    ? data.error.type === interruptedTool.type
    : (type === "session.next.step.failed" || type === "session.next.compaction.failed") &&
      data.error.type === processEnded.type

/**
 * The turns of an activity that was cut off in the step or compaction `left`. Undefined if the step or compaction before, or a call of
 * it, was cut off too: it may be what ends its processes.
 */
const turnsOf = ({ latest, steps }: Attempts, left: ReadonlySet<string>): number | undefined => {
  const open = latest.findIndex((event) => beginsWith(event, left))
  if (Arr.takeWhile(latest.slice(open + 1), (event) => !begins(event)).some(isCutOff)) return undefined
  return latest[open]?.type === "session.next.step.started" ? steps - 1 : steps
}

/**
 * Returns what a dead process left. Call it only for a session without a running owner. With `continues`, an activity that was cut
 * off goes on, but not twice without a step between (EX-E13).
 */
export const makeRecovery = Effect.fnUntraced(function* (continues: boolean) {
  const store = yield* SessionStore

  const turnsBefore = Effect.fnUntraced(function* (sessionID: SessionID, left: ReadonlySet<string>) {
    const attempts = yield* Effect.catchTag(store.attempts(sessionID), "EventUnreadable", () => Effect.void)
    return attempts === undefined ? undefined : turnsOf(attempts, left)
  })

  const settled = Effect.fnUntraced(function* (sessionID: SessionID, activityID: ActivityID) {
    // A damaged event must not keep the session from going on.
    const stoppedAt = yield* Effect.catchTag(store.lastWork(sessionID), "EventUnreadable", () => Effect.void)
    return draft("session.next.activity.settled", {
      activityID,
      outcome: "interrupted",
      error: processEnded,
      ...(stoppedAt === undefined ? {} : { stoppedAt })
    })
  })

  return spanned(
    "Recovery.settle",
    Effect.fnUntraced(function* ({ activity, compaction, id }: Session) {
      const calls = yield* store.unsettledTools(id)
      const step = yield* store.openStep(id)
      const drafts: Array<Draft> = [
        ...calls.map(failedCall),
        ...(step === undefined
          ? []
          : [draft("session.next.step.failed", { assistantMessageID: step.id, error: processEnded, ...usedBy(step) })])
      ]
      if (compaction?.state === "running") {
        // The process that ran this compaction is gone, so its end is recorded here (CM-7).
        drafts.push(draft("session.next.compaction.failed", { messageID: compaction.id, error: processEnded }))
      }
      if (activity?.state !== "running") return { drafts, goesOn: undefined } satisfies Leftover
      const open = [...calls.map(({ messageID }) => messageID), step?.id, compaction?.id]
      const left = new Set(open.filter((id) => id !== undefined))
      const turns = continues ? yield* turnsBefore(id, left) : undefined
      if (turns !== undefined) return { drafts, goesOn: { activityID: activity.id, turns } } satisfies Leftover
      return { drafts: [...drafts, yield* settled(id, activity.id)], goesOn: undefined } satisfies Leftover
    })
  )
})

export interface RunnerOptions {
  /** Maximum steers promoted at one safe boundary; the rest follow at the next (IN-12). */
  readonly steerBatchLimit: number
  /** The host's limit for sessions without a budget. */
  readonly budget: Budget
  /** Whether an activity that a dead process left goes on in any drain (EX-E13). */
  readonly continues: boolean
}

export interface RunInput extends Activity.Owned {
  /** The session and its inbox, read after it was acquired. */
  readonly standing: Standing
  /** Nothing was left open: there is nothing to recover. */
  readonly clean: boolean
  /** Where its last owner left it. */
  readonly handed: Ownership["handed"]
  readonly handOver: Ownership["handOver"]
  readonly leaving: Activity.Leaving
  /** Run at least one provider turn, even when no input waits (PR-6). */
  readonly force: boolean
  /** Called before an activity's start is logged. */
  readonly began: (activityID: ActivityID) => void
  /** Run after an activity's end is logged. */
  readonly ended: (how: "completed" | "stopped") => Effect.Effect<void>
}

export class SessionRunner extends Context.Tag("@daybook/core/SessionRunner")<
  SessionRunner,
  {
    readonly run: (input: RunInput) => Effect.Effect<DrainResult, RunError | ToolDeclined>
    /** Returns the request that the next turn would send. Writes nothing and calls no provider (RQ-37). */
    readonly preview: (sessionID: SessionID) => Effect.Effect<ShownRequest, RunError | ReadError>
  }
>() {}

/** How an activity ended, and the session just before, if nothing waited. */
interface Ended {
  readonly result: ActivityResult
  readonly rest: Standing | undefined
}

/** Builds the parts of a run at the current Location. */
const makeParts = Effect.fnUntraced(function* (options: RunnerOptions) {
  const history = yield* History.make
  const preparation = yield* Preparation.make
  const eligibility = yield* Activity.makeEligibility(options.steerBatchLimit)
  const budget = Boundary.makeBudgetCheck(yield* SessionStore, options.budget)
  const fenced = yield* Boundary.makeFencedAppend
  const compactOnRequest = yield* Boundary.makeManualCompaction({ history, preparation, budget })
  const select = yield* Boundary.makePromotion(eligibility, fenced)
  const approach = yield* Boundary.make({ history, preparation, budget, fenced, select, compactOnRequest })
  const turns = yield* TurnLoop.make({ approach, budget, eligibility })
  const preview = yield* makePreview({ history, preparation, eligibility })
  return { compactOnRequest, preview, turns }
})

const make = Effect.fnUntraced(function* (options: RunnerOptions) {
  const log = yield* EventLog
  const store = yield* SessionStore
  const identifiers = yield* Identifiers
  const recovery = yield* makeRecovery(options.continues)
  const { compactOnRequest, preview, turns } = yield* makeParts(options)

  const goingOn = (sessionID: SessionID, activityID: ActivityID, turns: number) =>
    Effect.map(store.continued(sessionID, { trigger: "resume", admittedSeq: undefined }), (before) =>
      Activity.goOn(activityID, turns, before)
    )

  /** Fails what an earlier process left running, and runs none of it again (TU-2). */
  const recover = spanned(
    "SessionRunner.recover",
    Effect.fnUntraced(function* (session: Session, owner: OwnerToken) {
      const { drafts, goesOn } = yield* recovery(session)
      if (Arr.isNonEmptyReadonlyArray(drafts)) yield* log.append(session.id, drafts, { owner })
      return {
        isSettled: drafts.length > 0,
        open: goesOn === undefined ? undefined : yield* goingOn(session.id, goesOn.activityID, goesOn.turns)
      }
    })
  )

  /** The activity that the session's last owner left open and clean; undefined if there is none. */
  const handedOver = Effect.fnUntraced(function* ({ handed, sessionID }: RunInput, { session }: Standing) {
    const { activity } = session
    if (handed?.activityID === undefined || activity?.state !== "running" || activity.id !== handed.activityID) {
      return undefined
    }
    return yield* goingOn(sessionID, activity.id, handed.turns)
  })

  /** Runs one activity, and logs its end or hands it over, however it ends. */
  const runActivity = spanned(
    "SessionRunner.activity",
    Effect.fnUntraced(function* (input: RunInput, standing: Standing, begun: Activity.Activity) {
      const { began, ended, handOver, leaving, owner, sessionID } = input
      const { id: activityID } = begun
      const activity = yield* Ref.make(begun)
      const work = Effect.zipRight(
        Effect.sync(() => began(activityID)),
        turns({ sessionID, owner }, standing, activity, leaving)
      )
      const result = yield* Effect.onExit(work, (exit) =>
        Ref.get(activity).pipe(
          Effect.flatMap(({ ended: isLogged, problem, started, turns }) => {
            if (Exit.isSuccess(exit) && exit.value._tag === "Left") {
              return Effect.ignoreLogged(handOver({ activityID, turns }))
            }
            const settled = draft("session.next.activity.settled", { activityID, ...outcomeOf(exit, problem) })
            // A replaced owner must not write: its successor settles this activity.
            return started && !isLogged ? Effect.ignoreLogged(log.append(sessionID, [settled], { owner })) : Effect.void
          }),
          Effect.ensuring(ended(Exit.isSuccess(exit) && exit.value._tag === "Drained" ? "completed" : "stopped"))
        )
      )
      return { result, rest: (yield* Ref.get(activity)).rest }
    })
  )

  const run = spanned(
    "SessionRunner.run",
    Effect.fnUntraced(function* (input: RunInput) {
      let { standing } = input
      let forced = input.force
      /** What a dead process left precedes queued inputs (EX-403). */
      let continues = false
      let open = yield* handedOver(input, standing)
      if (open === undefined && !input.clean) {
        const left = yield* recover(standing.session, input.owner)
        open = left.open
        continues = open === undefined && standing.session.activity?.state === "running" && forced
        if (left.isSettled) standing = yield* store.standing(input.sessionID)
      }
      for (;;) {
        const picked = Activity.pick(standing)
        if (input.leaving()) {
          if (open === undefined && picked === undefined && !forced) return { _tag: "Drained" } as const
          yield* input.handOver({ activityID: open?.id, turns: open?.turns ?? 0 })
          return { _tag: "Left" } as const
        }
        const trigger = continues && picked !== "steer" ? "resume" : (picked ?? (forced ? "resume" : undefined))
        if (open === undefined && trigger === undefined) {
          yield* compactOnRequest(input, standing.session)
          return { _tag: "Drained" } as const
        }
        const begun = open ?? Activity.begin(yield* identifiers.activity, trigger ?? "resume")
        open = undefined
        const { rest, result }: Ended = yield* runActivity(input, standing, begun)
        // An admission after that read wakes the session again.
        standing = rest ?? (yield* store.standing(input.sessionID))
        if (result._tag === "Nothing") continue
        forced = false
        continues = false
        if (result._tag === "Moved" || result._tag === "Left") return result
        yield* Metric.set(Metrics.inboxDepth, standing.steers + standing.queued)
      }
    })
  )

  return SessionRunner.of({ run, preview })
})

/** The runner for the current Location. */
export const layer = (options: RunnerOptions) => Layer.effect(SessionRunner, make(options))
