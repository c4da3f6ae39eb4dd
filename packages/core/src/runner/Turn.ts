/**
 * One provider turn: one request, its stream recorded as events, its local tools run as they are called, and everything
 * settled before it returns. Publication of the stream and of the tools goes through one permit, so that a turn's events
 * have one order (TU-8). What happens however the turn ends is at the bottom. Spec: EX-T1..EX-T12 (TU-8..TU-15,
 * TO-1..TO-10).
 */
import { Cause, Chunk, Clock, Deferred, Effect, Either, Exit, Fiber, FiberSet, Metric, Option, Stream } from "effect"
import { Array as Arr } from "effect"
import type { Agent } from "../agent/Agents.ts"
import { draft, type Draft } from "../events/SessionEvents.ts"
import type { MessageID, SessionID } from "../Identifiers.ts"
import type { AppendError, OwnerToken } from "../log/EventLog.ts"
import { EventLog } from "../log/EventLog.ts"
import * as Metrics from "../Metrics.ts"
import type { ResolvedModel } from "../model/ModelResolver.ts"
import type { ToolChoice } from "../request/Request.ts"
import type { ProviderFailure } from "../model/ProviderError.ts"
import { firstOf } from "../Race.ts"
import { ProviderFailed } from "../session/RunError.ts"
import type { Location, StoredError } from "../session/Schemas.ts"
import type { ToolDeclined, ToolOutput, ToolStorageError } from "../tool/ToolDefinition.ts"
import type { MaterializedTools, Settled } from "../tool/ToolRegistry.ts"
import { boundedProgress } from "./Progress.ts"
import type { Repeats } from "./Repeats.ts"
import * as Provider from "./ProviderStream.ts"
import * as Recorder from "./TurnRecorder.ts"
import { estimateOf } from "./Usage.ts"
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
  /** Tokens of the request, estimated. */
  readonly inputEstimate: number
  readonly repeats: Repeats
  /** Opens the step in the log. From then on the turn sees to it that the step is closed, whatever happens. */
  readonly open: Effect.Effect<unknown, E>
}

export interface TurnResult {
  /** The model has tool results to read (TU-9). */
  readonly continue: boolean
}

type Abort = ToolDeclined | ToolStorageError | AppendError

const interruptedTool: StoredError = { type: "tool.interrupted", message: "Tool execution interrupted" }
const noResult: StoredError = { type: "tool.no-result", message: "no result from provider" }

/** A tool that broke outside of its own contract: the model reads that, and goes on (TO-2). */
const brokenTool = (name: string, defect: unknown): Settled => {
  const details = defect instanceof Error ? defect.message : String(defect)
  return { _tag: "Failure", error: { type: "tool.execution", message: `tool "${name}" broke: ${details}` } }
}

/** Runs the turn. `ProviderFailed`: the step is settled as failed in the log. */
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
  /** A request is out, and the provider may count its tokens. */
  let charged = false

  /** What the request that is out used so far. */
  const usedSoFar = () => (charged ? estimateOf(inputEstimate, state.received, model.info.price) : undefined)

  const append = (drafts: ReadonlyArray<Draft>) =>
    Arr.isNonEmptyReadonlyArray(drafts) ? log.append(sessionID, drafts, { owner }) : Effect.void

  /** Stores what a step decided, then moves on; between the two nothing can interrupt. */
  const commit = (step: Recorder.Step) =>
    Effect.uninterruptible(
      Effect.gen(function* () {
        yield* append(step.drafts)
        state = step.state
        yield* Effect.forEach(step.live, log.publishLive, { discard: true })
        yield* Effect.forEach(step.drafts, countTokens, { discard: true })
      })
    )

  /** Progress of a call that has settled meanwhile is no news. */
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

  /** Runs one call. It can be interrupted until it has its result: a result in hand is recorded. */
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

  /** The side effect starts only after its call is on disk; its failure to settle ends the turn, not the fiber set. */
  const startTool = (call: Recorder.LocalCall) =>
    FiberSet.run(
      running,
      Effect.catchAllCause(settleTool(call), (cause) =>
        Cause.isInterruptedOnly(cause) ? Effect.void : Effect.asVoid(Deferred.failCause(abort, cause))
      )
    )

  /** All at once: the cleanup of one tool does not wait for that of another. */
  const stopTools = Effect.suspend(() => Fiber.interruptAll(Array.from(running)))

  /** Takes parts that came together: one append for all of them, then their tools start. */
  const take = (parts: ReadonlyArray<Recorder.StreamPart>): Effect.Effect<void, Provider.StreamFault | AppendError> =>
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
        // After a reported error nothing is run any more (TO-7).
        if (fault?._tag !== "Reported") yield* Effect.forEach(calls, startTool, { discard: true })
        if (fault !== undefined) return yield* Effect.fail(fault)
      })
    )

  const offered = new Set(tools.definitions.map(({ name }) => name))

  /** The stream is over, but the model can still be told that there is no such tool (TO-3). */
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

  /** Tries again where the policy allows it and nothing durable came of the attempt (TU-12). */
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

  /** A tool that aborts and ends last must not be taken for one that ended well. */
  const awaitTools = Effect.zipRight(
    Effect.raceFirst(FiberSet.awaitEmpty(running), Deferred.await(abort)),
    Effect.whenEffect(Deferred.await(abort), Deferred.isDone(abort))
  )

  type Reasons = { readonly local: StoredError; readonly hosted: StoredError; readonly step?: StoredError }

  /** Ends whatever is unfinished: fragments with what they have, calls with the reason that fits, then the step. */
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
    // Before the leftovers are failed: input that never became a call is nothing to go on with.
    const result: TurnResult = { continue: Recorder.calledLocally(state) }
    yield* wrapUp({ local: interruptedTool, hosted: noResult })
    return result
  })

  /** Nothing of this turn may go on, or write, once its end is recorded. */
  const end = (exit: Exit.Exit<TurnResult, ProviderFailed | Abort>) => {
    const counted = Metric.increment(Metric.tagged(Metrics.turns, "outcome", Exit.isSuccess(exit) ? "ended" : "failed"))
    if (Exit.isSuccess(exit) || wrappedUp) return counted
    const reasons = { local: interruptedTool, hosted: interruptedTool, step: abortedStep(exit.cause) }
    return Effect.zipRight(counted, Effect.zipRight(stopTools, Effect.ignoreLogged(wrapUp(reasons))))
  }

  return yield* Effect.uninterruptibleMask((restore) => Effect.zipRight(input.open, Effect.onExit(restore(body), end)))
}, Effect.scoped)

const progressOf = ({ content, structured }: ToolOutput) => ({ content, structured })

/** Why a step has no end of its own. */
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
