/**
 * The safe boundary before a provider request: the one place where a session's work may move, stop or be joined.
 *
 *   session -> fence -> requested compaction -> agent -> epoch -> promote -> reconcile -> model -> history -> tools
 *           -> request -> budget -> compaction
 *
 * Returns the request that is ready to be sent. Spec: EX-T1, EX-D3, EX-D4, EX-D6, EX-D10, EX-113, EX-B1..EX-B9 in
 * specs/execution.md, RQ-24 in specs/context.md, IB-41 in specs/sessions.md, CP-41, CP-55 in specs/context.md (TU-3,
 * TU-5, TU-11, CM-9..CM-12, PR-2..PR-6).
 */
import { Array as Arr, type Cause, Effect, Either, Ref } from "effect"
import { Identifiers, type MessageID } from "@daybook/log/domain/Identifiers"
import type { Input, Message, Session } from "@daybook/log/domain/Message"
import { type Budget, CurrentLocation, locationKey } from "@daybook/log/domain/Values"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import { type AppendError, EventLog } from "@daybook/log/log/EventLog"
import { LocationLeft } from "@daybook/log/store/SessionChecks"
import { SessionStore, type Standing } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
import { Lineage } from "../agent/Lineage.ts"
import { Compaction } from "../compaction/Compaction.ts"
import type { CompactionRequest } from "../compaction/Plan.ts"
import { ContextEpoch, type Epoch, isTold } from "../context/ContextEpoch.ts"
import { ContextRegistry } from "../context/ContextRegistry.ts"
import type { Agent } from "../domain/Agent.ts"
import { BudgetExceeded, PriceUnknown } from "../domain/RunFailure.ts"
import type { ModelInfo } from "../model/ModelResolver.ts"
import { lastTurn, steered } from "../request/Reminders.ts"
import { noOutput } from "../request/StructuredOutput.ts"
import * as Activity from "./Activity.ts"
import type { Owned, Trigger } from "./Activity.ts"
import * as History from "./History.ts"
import { modelOf, type Preparation, type Prepared } from "./Preparation.ts"
import { spanned } from "@daybook/log/support/Spans"

// Appends the events that open a turn, unless the session has left this Location.

export const makeFencedAppend = Effect.gen(function* () {
  const log = yield* EventLog
  const fence = (yield* SessionStore).isAt(yield* CurrentLocation)

  const append = ({ owner, sessionID }: Owned, drafts: Arr.NonEmptyReadonlyArray<Draft>) =>
    log.append(sessionID, drafts, { owner, commit: fence })

  return { fence, append }
})

type FencedAppend = Effect.Effect.Success<typeof makeFencedAppend>

// Checks a session's budget before each provider request, with the usage of descendants and the limits of ancestors.

const isUnlimited = ({ cost, tokens }: Budget): boolean => cost === undefined && tokens === undefined

/** Builds the check. `fallback` is the host's limit for root sessions without a budget. */
export const makeBudgetCheck = (store: SessionStore["Type"], fallback: Budget) =>
  spanned(
    "BudgetCheck.check",
    Effect.fnUntraced(function* (session: Session, { price, ref }: ModelInfo) {
      const above = session.parentID === undefined ? [] : yield* store.ancestors(session.id)
      for (const { budget, id, parentID } of [session, ...above]) {
        const allowed = budget ?? (parentID === undefined ? fallback : {})
        if (isUnlimited(allowed)) continue
        if (allowed.cost !== undefined && price === undefined)
          return yield* new PriceUnknown({ sessionID: id, model: ref })
        const spent = yield* store.treeUsage(id)
        const tokens = spent.tokens.input + spent.tokens.output
        if (allowed.cost !== undefined && spent.cost >= allowed.cost) {
          return yield* new BudgetExceeded({ sessionID: id, limit: "cost", spent: spent.cost, allowed: allowed.cost })
        }
        if (allowed.tokens !== undefined && tokens >= allowed.tokens) {
          return yield* new BudgetExceeded({ sessionID: id, limit: "tokens", spent: tokens, allowed: allowed.tokens })
        }
      }
    })
  )

export type CheckBudget = ReturnType<typeof makeBudgetCheck>

// Runs a requested compaction at a safe boundary, before any promotion.

interface ManualCompactionParts {
  readonly history: History.History
  readonly preparation: Preparation
  readonly budget: CheckBudget
}

export const makeManualCompaction = Effect.fnUntraced(function* ({
  budget,
  history,
  preparation
}: ManualCompactionParts) {
  const store = yield* SessionStore
  const lineage = yield* Lineage
  const epochs = yield* ContextEpoch
  const compaction = yield* Compaction

  /** The request that is compacted: the one a resume would send, without new context. */
  const requested = Effect.fnUntraced(function* (owner: Owned["owner"], session: Session) {
    const agent = yield* lineage.agentOf(session)
    const { info } = yield* preparation.resolve(modelOf(session, agent), agent.settings ?? {})
    const epoch = yield* epochs.get(session.id)
    const messages = yield* History.loadOwned(history, session.id, epoch?.baselineSeq ?? -1)
    const work = yield* store.continued(session.id, { trigger: "resume", admittedSeq: undefined })
    const prepared = yield* preparation.prepare({
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
    return preparation.compactable({ owner, session, agent, prepared, messages, opening })
  })

  return Effect.fnUntraced(function* (owned: Owned, session: Session) {
    if (session.compaction?.state !== "requested") return
    const { id: messageID } = session.compaction
    const request = yield* Effect.either(requested(owned.owner, session))
    // Any failure closes the request: an open request would be tried again on every wake.
    if (Either.isRight(request)) return yield* compaction.compactManually(request.right, messageID)
    const { _tag, message } = request.left
    return yield* compaction.refuse(owned, messageID, { type: _tag, message })
  })
})

// Promotes waiting inputs into an activity, in one append, which may wait for the start of the turn's step.

/** A reminder for the model. */
export const reminder = (identifiers: Identifiers["Type"], text: string): Effect.Effect<Draft> =>
  Effect.map(identifiers.message, (messageID) => draft("session.next.synthetic", { messageID, text }))

const remindersFor = (activity: Activity.Activity, inputs: ReadonlyArray<Input>): ReadonlyArray<string> => [
  ...(activity.turns > 0 && inputs.length > 0 ? [steered(inputs.length)] : []),
  ...(Activity.isLastTurn(activity) ? [lastTurn] : [])
]

/** Whether the activity may continue the session's last one: then the log is asked where that began (RQ-45). */
const mayContinue = ({ activity }: Session, trigger: Activity.Trigger): boolean =>
  trigger === "resume" || (trigger === "steer" && activity !== undefined && activity.state !== "completed")

/** The event that opens the activity, unless it is in the log. */
const opening = ({ id, started, trigger }: Activity.Activity): ReadonlyArray<Draft> =>
  started ? [] : [draft("session.next.activity.started", { activityID: id, trigger })]

/** Inputs that were selected for an activity. Their promotions are not in the log yet. */
interface Selection {
  /** The activity as it is once they are. */
  readonly activity: Activity.Activity
  /** Whether their append may wait for the start of the step. Reminders are read from the log. */
  readonly mayWait: boolean
  /** The messages that the inputs become, after the last one of the history. */
  readonly messagesAfter: (last: number) => ReadonlyArray<Message>
  /** Gives these messages the sequence numbers that `store` gave them. */
  readonly placed: (messages: ReadonlyArray<Message>) => ReadonlyArray<Message>
  /** Stores the promotions, then these events, in one append. False, and nothing is stored: an input was withdrawn. */
  readonly store: (rest: ReadonlyArray<Draft>) => Effect.Effect<boolean, AppendError | LocationLeft | StoreError>
}

/** The messages that the inputs become, with sequence numbers that follow `last`. */
export const messagesOf = (inputs: ReadonlyArray<Input>, last: number): ReadonlyArray<Message> =>
  inputs.map(({ createdAt, id, prompt }, index) => ({ type: "user", id, seq: last + 1 + index, createdAt, ...prompt }))

export const makePromotion = Effect.fnUntraced(function* (eligibility: Activity.Eligibility, fenced: FencedAppend) {
  const store = yield* SessionStore
  const identifiers = yield* Identifiers

  /** Returns undefined when no input is left to open the activity, because it was withdrawn. */
  return Effect.fnUntraced(function* (
    owned: Activity.Owned,
    session: Session,
    state: Ref.Ref<Activity.Activity>,
    mode: Activity.Trigger
  ) {
    const activity = yield* Ref.get(state)
    const { started, trigger } = activity
    const inputs = yield* eligibility.eligible(owned.sessionID, mode)
    if (!started && trigger !== "resume" && inputs.length === 0) return undefined
    const [{ admittedSeq } = { admittedSeq: undefined }] = inputs
    const before =
      started || !mayContinue(session, trigger)
        ? activity
        : yield* store.continued(owned.sessionID, { trigger, admittedSeq })
    const reminders = yield* Effect.forEach(remindersFor(activity, inputs), (text) => reminder(identifiers, text))
    const drafts = [...opening(activity), ...inputs.map(Activity.promotion), ...reminders]
    const after = drafts.length === 0 ? activity : Activity.withInputs(activity, before, inputs)
    const seqs = new Map<MessageID, number>()
    const selection: Selection = {
      activity: after,
      mayWait: reminders.length === 0,
      messagesAfter: (last) => messagesOf(inputs, last),
      placed: (messages) => messages.map((message) => ({ ...message, seq: seqs.get(message.id) ?? message.seq })),
      store: (rest) => {
        const all = [...drafts, ...rest]
        if (!Arr.isNonEmptyReadonlyArray(all)) return Effect.succeed(true)
        return fenced.append(owned, all).pipe(
          Effect.flatMap((events) => {
            for (const { data, seq, type } of events) {
              if (type === "session.next.prompt.promoted") seqs.set(data.messageID, seq)
            }
            return Effect.as(Ref.set(state, after), true)
          }),
          // An input was withdrawn between the read and the append, and nothing was stored (IB-41).
          Effect.catchTag("EventRefused", (refused) =>
            Effect.flatMap(eligibility.withdrawn(inputs), (any) => (any ? Effect.succeed(false) : refused))
          ),
          Effect.uninterruptible
        )
      }
    }
    return selection
  })
})

export interface BoundaryParts {
  readonly history: History.History
  readonly preparation: Preparation
  readonly budget: CheckBudget
  readonly fenced: FencedAppend
  readonly select: Effect.Effect.Success<ReturnType<typeof makePromotion>>
  readonly compactOnRequest: Effect.Effect.Success<ReturnType<typeof makeManualCompaction>>
}

/** Why a turn is assembled again: its request was made smaller, or goes without what the server refused. */
export type Again = "pruned" | "compacted" | "repaired"

export interface Arrival {
  readonly owned: Activity.Owned
  readonly activity: Ref.Ref<Activity.Activity>
  /** Which inputs may be promoted. */
  readonly mode: Trigger
  readonly again: Again | undefined
  /** The session, if it was just read. */
  readonly standing: Standing | undefined
}

/** A request that is ready to be sent. */
export interface Ready extends Pick<Activity.Activity, "wishes" | "output"> {
  readonly _tag: "Ready"
  readonly session: Session
  readonly agent: Agent
  readonly info: ModelInfo
  readonly epoch: Epoch
  readonly prepared: Prepared
  readonly messages: ReadonlyArray<Message>
  /** The request as compaction sees it, should the provider refuse it as too long. Read it after `open`. */
  readonly compactable: () => CompactionRequest
  /**
   * Stores the events that open the step, in one append with the promotions that wait for it. False, and nothing is
   * stored: an input was withdrawn.
   */
  readonly open: (
    opening: Arr.NonEmptyReadonlyArray<Draft>
  ) => Effect.Effect<boolean, AppendError | LocationLeft | StoreError>
}

/**
 * Runs what precedes a request while promotions wait. A failure stores them before it ends the boundary: the activity has
 * then begun (EX-113). `withdrawn`: an input was withdrawn, and nothing is stored.
 */
const orStored = <A, E>(selection: Selection | undefined, rest: Effect.Effect<A, E>) =>
  selection === undefined
    ? rest
    : Effect.uninterruptibleMask((restore) =>
        Effect.catchAllCause(restore(rest), (cause: Cause.Cause<E>) =>
          Effect.flatMap(selection.store([]), (stored) =>
            stored ? Effect.failCause(cause) : Effect.succeed("withdrawn" as const)
          )
        )
      )

export const make = Effect.fnUntraced(function* (parts: BoundaryParts) {
  const { budget, compactOnRequest, fenced, history, preparation, select } = parts
  const here = yield* CurrentLocation
  const store = yield* SessionStore
  const lineage = yield* Lineage
  const epochs = yield* ContextEpoch
  const registry = yield* ContextRegistry
  const compaction = yield* Compaction

  /** `nothing`: the input that would have opened the activity was withdrawn. */
  return Effect.fnUntraced(function* ({ activity: state, again, mode, owned, standing }: Arrival) {
    const { owner, sessionID } = owned
    const { marks: read, session } = standing ?? (yield* store.standing(sessionID))
    if (locationKey(session.location) !== locationKey(here)) return yield* new LocationLeft({ sessionID })
    yield* compactOnRequest(owned, session)
    // A compaction moves the marks.
    const marks = session.compaction?.state === "requested" ? undefined : read
    const agent = yield* lineage.agentOf(session)
    yield* Ref.update(state, (activity) => Activity.withAgent(activity, agent))
    // The context needs the model too; a resolution error fails the turn only at its place in the order (TU-5).
    const resolved = yield* Effect.either(preparation.resolve(modelOf(session, agent), agent.settings ?? {}))
    const model = Either.isRight(resolved) ? resolved.right.info : undefined
    const observed = yield* registry.observe({ sessionID, agent, model, marks })
    const initial = yield* epochs.prepare(sessionID, observed, marks)

    /** The request, with the messages of promotions that wait. */
    const assemble = Effect.fnUntraced(function* (waiting: Selection | undefined) {
      const epoch = yield* epochs.advance(sessionID, initial, observed, { owner, fence: fenced.fence })
      const { baseline, baselineSeq } = epoch
      const { info } = yield* resolved
      const stored = yield* History.loadOwned(history, sessionID, baselineSeq)
      const messages = [...stored, ...(waiting?.messagesAfter(stored.at(-1)?.seq ?? 0) ?? [])]
      const { opening, output, wishes } = waiting?.activity ?? (yield* Ref.get(state))
      const prunedSince = again === "pruned"
      const context = { session, agent, info, baseline, baselineSeq, messages }
      const prepared = yield* preparation.prepare({ ...context, wishes, output, prunedSince })
      yield* budget(session, info)
      const request = preparation.compactable({ owner, session, agent, prepared, messages, opening })
      const ready: Ready = {
        _tag: "Ready",
        session,
        agent,
        info,
        epoch,
        prepared,
        messages,
        wishes,
        output,
        compactable: () => (waiting === undefined ? request : { ...request, messages: waiting.placed(messages) }),
        open: (drafts) =>
          waiting === undefined ? Effect.as(fenced.append(owned, drafts), true) : waiting.store(drafts)
      }
      return ready
    })

    // A turn that is assembled again keeps its inputs (CM-9).
    if (again !== undefined) return yield* assemble(undefined)
    const selection = yield* select(owned, session, state, mode)
    if (selection === undefined) return "nothing" as const
    if (selection.mayWait && !isTold(initial, observed)) {
      const ready = yield* orStored(selection, assemble(selection))
      if (ready === "withdrawn" || !compaction.isNeeded(ready.compactable())) return ready
    }
    if (!(yield* selection.store([]))) return "withdrawn" as const
    const ready = yield* assemble(undefined)
    const compacted = yield* compaction.compactIfNeeded(ready.compactable())
    return compacted === "unchanged" ? ready : compacted
  })
})

export type Approach = Effect.Effect.Success<ReturnType<typeof make>>
