/**
 * The safe boundary before a provider request: the one place where a session's work may move, stop or be joined.
 *
 *   session -> fence -> requested compaction -> agent -> epoch -> promote -> reconcile -> model -> history -> tools
 *           -> request -> budget -> compaction
 *
 * Returns the request that is ready to be sent. Spec: EX-T1 (TU-5, TU-11, CM-9..CM-12).
 */
import { type Array as Arr, type Cause, Effect, Either, Ref } from "effect"
import { CurrentLocation } from "@daybook/log/domain/CurrentLocation"
import type { Message, Session } from "@daybook/log/domain/Message"
import { locationKey } from "@daybook/log/domain/Values"
import type { Draft } from "@daybook/log/events/SessionEvents"
import type { AppendError } from "@daybook/log/log/EventLog"
import { LocationLeft } from "@daybook/log/store/SessionChecks"
import { SessionStore, type Standing } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
import { Lineage } from "../agent/Lineage.ts"
import { Compaction } from "../compaction/Compaction.ts"
import type { CompactionRequest } from "../compaction/Plan.ts"
import { ContextEpoch, type Epoch, isTold } from "../context/ContextEpoch.ts"
import { ContextRegistry } from "../context/ContextRegistry.ts"
import type { Agent } from "../domain/Agent.ts"
import type { ModelInfo } from "../model/ModelResolver.ts"
import * as Activity from "./Activity.ts"
import type { CheckBudget } from "./BudgetCheck.ts"
import type { FencedAppend } from "./FencedAppend.ts"
import * as History from "./History.ts"
import type { Trigger } from "./Eligibility.ts"
import type { CompactOnRequest } from "./ManualCompaction.ts"
import { modelOf, type Preparation, type Prepared } from "./Preparation.ts"
import type { Select, Selection } from "./Promotion.ts"

export interface BoundaryParts {
  readonly history: History.History
  readonly preparation: Preparation
  readonly budget: CheckBudget
  readonly fenced: FencedAppend
  readonly select: Select
  readonly compactOnRequest: CompactOnRequest
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
