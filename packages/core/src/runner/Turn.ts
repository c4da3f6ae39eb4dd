/**
 * Runs one provider turn: sends one request, records its stream as events, runs its local tools as they are called, and
 * settles everything before it returns. One permit orders the events of the stream and of the tools (TU-8). `end` runs
 * for every exit of the turn.
 * Spec: EX-T1..EX-T12 (TU-8..TU-15, TO-1..TO-10).
 */
import {
  Array as Arr,
  Cause,
  Chunk,
  Clock,
  Deferred,
  Effect,
  Either,
  Exit,
  Fiber,
  FiberSet,
  Metric,
  Option,
  Stream
} from "effect"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import type { Location, StoredError } from "@daybook/log/domain/Values"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import { type AppendError, EventLog, type OwnerToken } from "@daybook/log/log/EventLog"
import * as Metrics from "@daybook/log/support/Metrics"
import type { Agent } from "../domain/Agent.ts"
import type { ToolDeclined, ToolStorageError } from "../domain/ToolError.ts"
import type { ToolOutput } from "../domain/ToolOutput.ts"
import type { ResolvedModel } from "../model/ModelResolver.ts"
import type { ProviderFailure } from "../model/ProviderError.ts"
import * as Provider from "../model/ProviderStream.ts"
import type { StreamPart } from "../model/StreamPart.ts"
import { estimateOf } from "../model/Usage.ts"
import type { ToolChoice } from "../request/Request.ts"
import { firstOf } from "../support/Race.ts"
import type { MaterializedTools, Settled } from "../tool/ToolRegistry.ts"
import { boundedProgress } from "./Progress.ts"
import type { Repeats } from "./Repeats.ts"
import { ProviderFailed } from "./RunError.ts"
import * as Recorder from "./TurnRecorder.ts"
import { unknownToolParts } from "./UnknownTool.ts"

export interface TurnInput<E> {
  readonly sessionID: SessionID
  readonly messageID: MessageID
  readonly owner: OwnerToken
  readonly agent: Agent
  readonly location: Location
  readonly model: ResolvedModel
  readonly prompt: Provider.ModelPrompt
  readonly tools: MaterializedTools
  readonly toolChoice: ToolChoice
  /** Estimated tokens of the request. */
  readonly inputEstimate: number
  readonly repeats: Repeats
  /** Opens the step in the log. After it, the turn guarantees that the step is closed. */
  readonly open: Effect.Effect<unknown, E>
}

export interface TurnResult {
  /** The model has tool results to read (TU-9). */
  readonly continue: boolean
}

type Abort = ToolDeclined | ToolStorageError | AppendError

const interruptedTool: StoredError = { type: "tool.interrupted", message: "Tool execution interrupted" }
const noResult: StoredError = { type: "tool.no-result", message: "no result from provider" }

/** A tool failed outside its contract: the model reads the error and continues (TO-2). */
const brokenTool = (name: string, defect: unknown): Settled => {
  const details = defect instanceof Error ? defect.message : String(defect)
  return { _tag: "Failure", error: { type: "tool.execution", message: `tool "${name}" broke: ${details}` } }
}

/** Runs the turn. On `ProviderFailed`, the step is settled as failed in the log. */
export const runTurn = Effect.fn("SessionRunner.turn")(function* <E>(input: TurnInput<E>) {
  const log = yield* EventLog
  const { agent, inputEstimate, location, messageID, model, owner, sessionID, tools } = input
  const permit = yield* Effect.makeSemaphore(1)
  const abort = yield* Deferred.make<never, Abort>()
  const running = yield* FiberSet.make<void>()
  const begun = Recorder.start(sessionID, messageID, model.info, inputEstimate)
  let state = begun
  let wrappedUp = false
  let heldCalls: ReadonlyArray<Recorder.LocalCall> = []
  /** A request is in flight, and the provider may charge its tokens. */
  let charged = false

  /** Estimated usage of the request in flight. */
  const usedSoFar = () => (charged ? estimateOf(inputEstimate, state.received, model.info.price) : undefined)

  const append = (drafts: ReadonlyArray<Draft>) =>
    Arr.isNonEmptyReadonlyArray(drafts) ? log.append(sessionID, drafts, { owner }) : Effect.void

  /** Stores a step's events, then advances the state; uninterruptible in between. */
  const commit = (step: Recorder.Step) =>
    Effect.uninterruptible(
      Effect.gen(function* () {
        yield* append(step.drafts)
        state = step.state
        yield* Effect.forEach(step.live, log.publishLive, { discard: true })
        yield* Effect.forEach(step.drafts, countTokens, { discard: true })
      })
    )

  /** Progress of a settled call is dropped. */
  const storeProgress = (callID: string) => (update: ToolOutput) =>
    permit
      .withPermits(1)(
        Effect.suspend(() =>
          Recorder.isRunning(state, callID)
            ? append([
                draft("session.next.tool.progress", { assistantMessageID: messageID, callID, ...progressOf(update) })
              ])
            : Effect.void
        )
      )
      .pipe(
        Effect.catchAll((error) => Deferred.fail(abort, error)),
        Effect.asVoid
      )

  const recordResult = ({ callID, input: params, name }: Recorder.LocalCall, result: Settled) => {
    const base = { assistantMessageID: messageID, callID, provider: { executed: false } }
    return permit.withPermits(1)(
      Effect.suspend(() => {
        const settled = input.repeats.note(name, params, result)
        return commit({
          state: Recorder.settled(state, callID),
          drafts: [
            settled._tag === "Failure"
              ? draft("session.next.tool.failed", { ...base, error: settled.error })
              : draft("session.next.tool.success", { ...base, ...settled.output })
          ],
          live: []
        })
      })
    )
  }

  /** Runs one call. It is interruptible until the tool returns; then its result is recorded. */
  const settleTool = Effect.fn("SessionRunner.tool")((local: Recorder.LocalCall) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const { callID, input: params, name } = local
        const started = yield* Clock.currentTimeMillis
        const settled = yield* Effect.flatMap(boundedProgress(storeProgress(callID)), (progress) =>
          restore(
            tools.settle({ name, input: params, call: { sessionID, messageID, callID, agent, location, progress } })
          )
        ).pipe(
          Effect.scoped,
          Effect.catchAllDefect((defect) =>
            Effect.as(
              Effect.logError(`tool "${name}" broke while it served ${callID}`, defect),
              brokenTool(name, defect)
            )
          )
        )
        yield* Metric.update(Metric.tagged(Metrics.toolTime, "tool", name), (yield* Clock.currentTimeMillis) - started)
        yield* recordResult(local, settled)
      })
    )
  )

  /** The tool starts only after its call is on disk. A failure to settle ends the turn, not the fiber set. */
  const startTool = (call: Recorder.LocalCall) =>
    FiberSet.run(
      running,
      Effect.catchAllCause(settleTool(call), (cause) =>
        Cause.isInterruptedOnly(cause) ? Effect.void : Effect.asVoid(Deferred.failCause(abort, cause))
      )
    )

  /** Interrupts all tools concurrently: no cleanup waits for another. */
  const stopTools = Effect.suspend(() => Fiber.interruptAll(Array.from(running)))

  /** Takes parts that arrived together: one append for all of them, then their tools start. */
  const take = (parts: ReadonlyArray<StreamPart>): Effect.Effect<void, Provider.StreamFault | AppendError> =>
    permit.withPermits(1)(
      Effect.gen(function* () {
        let next = state
        const drafts: Array<Draft> = []
        const live: Array<Recorder.Step["live"][number]> = []
        const calls: Array<Recorder.LocalCall> = []
        const held: Array<Recorder.LocalCall> = [...heldCalls]
        let fault: Provider.StreamFault | undefined
        for (const part of parts) {
          const step = Recorder.record(next, part)
          if (Either.isLeft(step)) {
            fault = Provider.broken(`the provider broke the order of its stream: ${step.left.details}`, false)
            break
          }
          next = step.right.state
          drafts.push(...step.right.drafts)
          live.push(...step.right.live)
          if (step.right.call !== undefined) (step.right.held === true ? held : calls).push(step.right.call)
          if (next.ended === "failed") fault = Provider.reported(step.right.providerError)
          if (next.ended !== "no") break
        }
        yield* commit({ state: next, drafts, live })
        heldCalls = next.ended === "no" ? held : []
        if (next.ended === "finished") calls.push(...held.filter(({ callID }) => Recorder.isRunning(next, callID)))
        // After a reported error no tool starts (TO-7).
        if (fault?._tag !== "Reported") yield* Effect.forEach(calls, startTool, { discard: true })
        if (fault !== undefined) return yield* Effect.fail(fault)
      })
    )

  const offered = new Set(tools.definitions.map(({ name }) => name))

  /** The stream has ended, but the model can still get the error for an unknown tool (TO-3). */
  const recoverUnknownTool = (fault: Provider.StreamFault) => {
    const refused = fault._tag === "Broken" ? unknownToolParts(fault.error, offered) : []
    return refused.length === 0
      ? Effect.fail(fault)
      : Effect.zipRight(
          take(refused),
          Effect.suspend(() => (state.ended === "no" ? take([Recorder.cutOff]) : Effect.void))
        )
  }

  const answer = Stream.runForEachChunk(
    Provider.partsOf(model, input.prompt, tools.definitions, input.toolChoice),
    (chunk) => take(Chunk.toReadonlyArray(chunk))
  ).pipe(
    Effect.catchIf(Provider.isFault, recoverUnknownTool),
    Effect.zipRight(
      Effect.suspend(() =>
        state.ended === "no" ? Effect.fail(Provider.broken("the answer broke off before its end", true)) : Effect.void
      )
    ),
    Provider.within(model.policy)
  )

  const consume = Effect.suspend(() => {
    charged = true
    return answer
  })

  /** Retries when the policy allows it and the attempt stored nothing durable (TU-12). */
  const attempt = (count: number): Effect.Effect<void, Provider.StreamFault | AppendError> =>
    Effect.catchIf(consume, Provider.isFault, (fault) =>
      Effect.gen(function* () {
        charged = Provider.isCharged(fault, state.output)
        const wait = yield* Provider.waitBefore(state.output ? {} : model.policy, fault, count)
        yield* append([Provider.retried(count, fault, wait, usedSoFar())])
        charged = false
        heldCalls = []
        state = begun
        yield* Effect.sleep(wait)
        yield* attempt(count + 1)
      })
    )

  /** Checks `abort` again: a tool that aborts as the last one must not count as a success. */
  const awaitTools = Effect.zipRight(
    Effect.raceFirst(FiberSet.awaitEmpty(running), Deferred.await(abort)),
    Effect.whenEffect(Deferred.await(abort), Deferred.isDone(abort))
  )

  type Reasons = { readonly local: StoredError; readonly hosted: StoredError; readonly step?: StoredError }

  /** Closes what is unfinished: fragments with their text so far, calls with the fitting error, then the step. */
  const wrapUp = ({ hosted, local, step }: Reasons) =>
    permit.withPermits(1)(
      Effect.suspend(() => {
        const closed = Recorder.close(state)
        const locals = Recorder.failUnsettled(closed.state, ({ executed }) => !executed, local)
        const all = Recorder.failUnsettled(locals.state, () => true, hosted)
        const failed =
          step === undefined || state.ended === "finished"
            ? []
            : [draft("session.next.step.failed", { assistantMessageID: messageID, error: step, ...usedSoFar() })]
        wrappedUp = true
        return commit({ ...all, drafts: [...closed.drafts, ...locals.drafts, ...all.drafts, ...failed] })
      }).pipe(Effect.uninterruptible)
    )

  const fail = ({ message, overflow, retryable }: ProviderFailure) =>
    Effect.zipRight(
      wrapUp({
        local: interruptedTool,
        hosted: noResult,
        step: { type: overflow ? "context-overflow" : "provider", message }
      }),
      new ProviderFailed({
        sessionID,
        providerID: model.info.ref.providerID,
        details: message,
        retryable,
        overflow,
        partial: state.output
      })
    )

  const body = Effect.gen(function* () {
    const fault = yield* firstOf(attempt(1), Deferred.await(abort)).pipe(
      Effect.as(undefined),
      Effect.catchIf(Provider.isFault, Effect.succeed)
    )
    if (fault?._tag === "Reported") {
      yield* stopTools
      return yield* fail(fault.failure)
    }
    yield* awaitTools
    if (fault !== undefined) return yield* fail(fault.failure)
    // Computed before leftovers are failed: input that never became a call is not a reason to continue.
    const result: TurnResult = { continue: Recorder.calledLocally(state) }
    yield* wrapUp({ local: interruptedTool, hosted: noResult })
    return result
  })

  /** Stops the tools and settles the turn: after its end is recorded, nothing of it runs or writes. */
  const end = (exit: Exit.Exit<TurnResult, ProviderFailed | Abort>) => {
    const counted = Metric.increment(Metric.tagged(Metrics.turns, "outcome", Exit.isSuccess(exit) ? "ended" : "failed"))
    if (Exit.isSuccess(exit) || wrappedUp) return counted
    const reasons = { local: interruptedTool, hosted: interruptedTool, step: abortedStep(exit.cause) }
    return Effect.zipRight(counted, Effect.zipRight(stopTools, Effect.ignoreLogged(wrapUp(reasons))))
  }

  return yield* Effect.uninterruptibleMask((restore) => Effect.zipRight(input.open, Effect.onExit(restore(body), end)))
}, Effect.scoped)

const progressOf = ({ content, structured }: ToolOutput) => ({ content, structured })

/** The error of a step that was aborted. */
const abortedStep = (cause: Cause.Cause<ProviderFailed | Abort>): StoredError => {
  const failure = Option.getOrUndefined(Cause.failureOption(cause))
  if (failure === undefined) {
    return Cause.isInterruptedOnly(cause)
      ? { type: "aborted", message: "interrupted" }
      : { type: "defect", message: "an internal error ended the turn" }
  }
  return failure._tag === "ToolDeclined"
    ? { type: "declined", message: `a call of ${failure.tool} was declined` }
    : { type: failure._tag, message: failure.message }
}

const countTokens = (event: Draft) =>
  (event.type === "session.next.step.ended" || event.type === "session.next.step.failed") &&
  event.data.tokens !== undefined
    ? Effect.forEach(
        [
          ["input", event.data.tokens.input],
          ["output", event.data.tokens.output]
        ] as const,
        ([kind, count]) => Metric.incrementBy(Metric.tagged(Metrics.tokens, "kind", kind), count),
        { discard: true }
      )
    : Effect.void
