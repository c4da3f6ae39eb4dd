/**
 * One provider turn: one request, its stream recorded as events, its local tools run as they are called, and everything
 * settled before it returns. Publication of the stream and of the tools goes through one permit, so that a turn's events
 * have one order (TU-8). What happens however the turn ends is at the bottom. Spec: EX-T1..EX-T9 (TU-8..TU-15, TO-1..TO-10).
 */
import type { AiError, LanguageModel, Tool, Toolkit } from "@effect/ai"
import { Cause, Chunk, Clock, Deferred, Duration, Effect, Either, Exit, FiberSet, Metric, Random, Stream } from "effect"
import { Array as Arr } from "effect"
import type { Agent } from "../agent/Agents.ts"
import { draft, type Draft } from "../events/SessionEvents.ts"
import type { MessageID, SessionID } from "../Identifiers.ts"
import type { AppendError, OwnerToken } from "../log/EventLog.ts"
import { EventLog } from "../log/EventLog.ts"
import * as Metrics from "../Metrics.ts"
import type { ResolvedModel } from "../model/ModelResolver.ts"
import { classifyError, type ProviderFailure } from "../model/ProviderError.ts"
import { ProviderFailed } from "../session/RunError.ts"
import type { Location, StoredError } from "../session/Schemas.ts"
import type { ToolDeclined, ToolOutput, ToolStorageError } from "../tool/ToolDefinition.ts"
import type { MaterializedTools } from "../tool/ToolRegistry.ts"
import { boundedProgress } from "./Progress.ts"
import * as Recorder from "./TurnRecorder.ts"
import { unknownToolParts } from "./UnknownTool.ts"

export interface TurnInput {
  readonly sessionID: SessionID
  readonly messageID: MessageID
  readonly owner: OwnerToken
  readonly agent: Agent
  readonly location: Location
  readonly model: ResolvedModel
  readonly prompt: LanguageModel.GenerateTextOptions<Record<string, Tool.Any>>["prompt"]
  readonly tools: MaterializedTools
}

/** `continue`: the model has tool results to read. */
export type TurnResult = { readonly _tag: "Ended"; readonly continue: boolean }

type Abort = ToolDeclined | ToolStorageError | AppendError

/** How the stream ended, when it did not end well. */
type StreamFault =
  /** The provider said so inside the stream (TO-7). */
  | { readonly _tag: "Reported"; readonly failure: ProviderFailure }
  /** The stream itself failed, or broke off (TO-8). */
  | { readonly _tag: "Broken"; readonly failure: ProviderFailure; readonly error?: unknown }

const interruptedTool: StoredError = { type: "tool.interrupted", message: "Tool execution interrupted" }
const noResult: StoredError = { type: "tool.no-result", message: "no result from provider" }

const broken = (message: string, retryable: boolean): StreamFault => ({
  _tag: "Broken",
  failure: { message, retryable, overflow: false }
})

/** The wire tools as a toolkit. Its handlers are never asked: the runtime settles calls itself. */
const toolkitOf = (definitions: ReadonlyArray<Tool.Any>): Toolkit.WithHandler<Record<string, Tool.Any>> => ({
  tools: Object.fromEntries(definitions.map((definition) => [definition.name, definition])),
  handle: () => Effect.dieMessage("tool calls are settled by the runner")
})

/** Runs the turn. `ProviderFailed`: the step is settled as failed in the log. */
export const runTurn = Effect.fn("SessionRunner.turn")(function* (input: TurnInput) {
  const log = yield* EventLog
  const { agent, location, messageID, model, owner, sessionID, tools } = input
  const permit = yield* Effect.makeSemaphore(1)
  const abort = yield* Deferred.make<never, Abort>()
  const running = yield* FiberSet.make<void>()
  let state = Recorder.start(sessionID, messageID, model.info)
  let stepFailed = false

  const append = (drafts: ReadonlyArray<Draft>) =>
    Arr.isNonEmptyReadonlyArray(drafts) ? log.append(sessionID, drafts, { owner }) : Effect.void

  /** Stores what a step decided, then moves on; between the two nothing can interrupt. */
  const commit = (step: Recorder.Step, more: ReadonlyArray<Draft> = []) =>
    Effect.uninterruptible(
      Effect.gen(function* () {
        yield* append([...step.drafts, ...more])
        state = step.state
        yield* Effect.forEach(step.live, log.publishLive, { discard: true })
      })
    )

  const settleTool = Effect.fn("SessionRunner.tool")(function* ({ callID, input: params, name }: Recorder.LocalCall) {
    const progress = yield* boundedProgress((update: ToolOutput) =>
      permit
        .withPermits(1)(
          Effect.asVoid(
            append([
              draft("session.next.tool.progress", {
                assistantMessageID: messageID,
                callID,
                structured: update.structured,
                content: update.content
              })
            ])
          )
        )
        .pipe(
          Effect.catchAll((error) => Deferred.fail(abort, error)),
          Effect.asVoid
        )
    )
    const started = yield* Clock.currentTimeMillis
    const settled = yield* tools.settle({
      name,
      input: params,
      call: { sessionID, messageID, callID, agent, location, progress }
    })
    yield* Metric.update(Metric.tagged(Metrics.toolTime, "tool", name), (yield* Clock.currentTimeMillis) - started)
    const base = { assistantMessageID: messageID, callID, provider: { executed: false } }
    yield* permit.withPermits(1)(
      Effect.uninterruptible(
        Effect.gen(function* () {
          yield* append([
            settled._tag === "Failure"
              ? draft("session.next.tool.failed", { ...base, error: settled.error })
              : draft("session.next.tool.success", { ...base, ...settled.output })
          ])
          state = Recorder.settled(state, callID)
        })
      )
    )
  })

  /** The side effect starts only after its call is on disk; its failure to settle ends the turn, not the fiber set. */
  const startTool = (call: Recorder.LocalCall) =>
    FiberSet.run(
      running,
      Effect.catchAll(settleTool(call), (error) => Effect.asVoid(Deferred.fail(abort, error)))
    )

  /** Takes parts that came together: one append for all of them, then their tools start. */
  const take = (parts: ReadonlyArray<Recorder.StreamPart>): Effect.Effect<void, StreamFault | AppendError> =>
    permit.withPermits(1)(
      Effect.gen(function* () {
        let next = state
        const drafts: Array<Draft> = []
        const live: Array<Recorder.Step["live"][number]> = []
        const calls: Array<Recorder.LocalCall> = []
        let fault: StreamFault | undefined
        for (const part of parts) {
          const step = Recorder.record(next, part)
          if (Either.isLeft(step)) {
            fault = broken(`the provider broke the order of its stream: ${step.left.details}`, false)
            break
          }
          next = step.right.state
          drafts.push(...step.right.drafts)
          live.push(...step.right.live)
          if (step.right.call !== undefined) calls.push(step.right.call)
          if (next.ended === "failed") {
            fault = { _tag: "Reported", failure: classifyError(step.right.providerError) }
            break
          }
        }
        yield* commit({ state: next, drafts, live })
        yield* Effect.forEach(drafts, countTokens, { discard: true })
        yield* Effect.forEach(calls, startTool, { discard: true })
        if (fault !== undefined) return yield* Effect.fail(fault)
      })
    )

  const offered = new Set(tools.definitions.map(({ name }) => name))

  const request = (): Stream.Stream<Recorder.StreamPart, AiError.AiError> =>
    model.model.streamText({
      prompt: input.prompt,
      toolkit: toolkitOf(tools.definitions),
      disableToolCallResolution: true
    })

  const consume: Effect.Effect<void, StreamFault | AppendError> = Effect.suspend(() => {
    const { inactivity, timeout } = model.policy
    const parts =
      inactivity === undefined
        ? Stream.mapError(request(), toFault)
        : Stream.timeoutFail(
            Stream.mapError(request(), toFault),
            () => broken(`the provider sent nothing for ${Duration.format(inactivity)}`, true),
            inactivity
          )
    const consumed = Stream.runForEachChunk(parts, (chunk) => take(Chunk.toReadonlyArray(chunk))).pipe(
      Effect.catchIf(isBroken, (fault) => {
        const refused = unknownToolParts(fault.error, offered)
        // The stream is over, but the model can still be told that there is no such tool.
        return refused.length === 0 ? Effect.fail(fault) : Effect.zipRight(take(refused), take([cutOff]))
      }),
      Effect.zipRight(
        Effect.suspend(() =>
          state.ended === "no" ? Effect.fail(broken("the answer broke off before its end", true)) : Effect.void
        )
      )
    )
    return timeout === undefined
      ? consumed
      : Effect.timeoutFail(consumed, {
          duration: timeout,
          onTimeout: () => broken(`the provider took longer than ${Duration.format(timeout)}`, true)
        })
  })

  /** Tries again where the policy allows it and nothing durable came of the attempt (TU-12). */
  const attempt = (count: number): Effect.Effect<void, StreamFault | AppendError> =>
    Effect.catchIf(consume, isFault, (fault) => {
      const { retry } = model.policy
      if (retry === undefined || count > retry.times || !fault.failure.retryable || state.output)
        return Effect.fail(fault)
      return Effect.gen(function* () {
        yield* append([retried(count, fault.failure)])
        state = Recorder.start(sessionID, messageID, model.info)
        yield* Effect.sleep(yield* retryDelay(fault.failure, retry, count))
        yield* attempt(count + 1)
      })
    })

  const awaitTools = Effect.raceFirst(FiberSet.awaitEmpty(running), Deferred.await(abort))

  /** Ends whatever is unfinished: fragments with what they have, calls with the reason that fits, then the step. */
  const wrapUp = (localReason: StoredError, stepError: StoredError | undefined) =>
    permit.withPermits(1)(
      Effect.gen(function* () {
        const closed = Recorder.close(state)
        const local = Recorder.failUnsettled(closed.state, ({ executed }) => !executed, localReason)
        const all = Recorder.failUnsettled(local.state, () => true, noResult)
        const failed =
          stepError === undefined || stepFailed || state.ended === "finished"
            ? []
            : [draft("session.next.step.failed", { assistantMessageID: messageID, error: stepError })]
        yield* commit({ ...all, drafts: [...closed.drafts, ...local.drafts, ...all.drafts] }, failed)
        stepFailed = stepFailed || failed.length > 0
      }).pipe(Effect.uninterruptible)
    )

  const providerFailed = ({ message, overflow, retryable }: ProviderFailure) =>
    new ProviderFailed({ sessionID, providerID: model.info.ref.providerID, details: message, retryable, overflow })

  const body = Effect.gen(function* () {
    const outcome = yield* Effect.raceFirst(attempt(1), Deferred.await(abort)).pipe(
      Effect.as(undefined),
      Effect.catchIf(isFault, Effect.succeed)
    )
    if (outcome?._tag === "Reported") {
      yield* FiberSet.clear(running)
      yield* wrapUp(interruptedTool, { type: "provider", message: outcome.failure.message })
      return yield* providerFailed(outcome.failure)
    }
    yield* awaitTools
    if (outcome !== undefined) {
      const type = outcome.failure.overflow ? "context-overflow" : "provider"
      yield* wrapUp(interruptedTool, { type, message: outcome.failure.message })
      return yield* providerFailed(outcome.failure)
    }
    yield* wrapUp(interruptedTool, undefined)
    const result: TurnResult = { _tag: "Ended", continue: Recorder.calledLocally(state) }
    return result
  })

  return yield* Effect.onExit(body, (exit) => {
    if (Exit.isSuccess(exit)) return Metric.increment(Metric.tagged(Metrics.turns, "outcome", "ended"))
    const failure = Cause.failureOption(exit.cause)
    const settledAlready = failure._tag === "Some" && failure.value._tag === "ProviderFailed"
    const reason = Cause.isInterruptedOnly(exit.cause)
      ? { type: "aborted", message: "interrupted" }
      : {
          type: "unknown",
          message: failure._tag === "Some" ? failure.value.message || failure.value._tag : "the turn failed"
        }
    return Effect.zipRight(
      Metric.increment(Metric.tagged(Metrics.turns, "outcome", "failed")),
      settledAlready
        ? Effect.void
        : // Nothing of this turn may go on, or write, once its end is recorded.
          Effect.zipRight(FiberSet.clear(running), Effect.ignoreLogged(wrapUp(interruptedTool, reason)))
    )
  })
}, Effect.scoped)

const countTokens = (event: Draft) =>
  event.type === "session.next.step.ended"
    ? Effect.forEach(
        [
          ["input", event.data.tokens.input],
          ["output", event.data.tokens.output]
        ] as const,
        ([kind, count]) => Metric.incrementBy(Metric.tagged(Metrics.tokens, "kind", kind), count),
        { discard: true }
      )
    : Effect.void

/** Stands for the end of a stream that a refused part cut short: nothing is known of its usage. */
const cutOff = {
  type: "finish",
  reason: "tool-calls",
  usage: { inputTokens: undefined, outputTokens: undefined, totalTokens: undefined },
  metadata: {}
} as Recorder.StreamPart

const toFault = (error: unknown): StreamFault => ({ _tag: "Broken", failure: classifyError(error), error })

const isFault = (error: StreamFault | AppendError | Abort): error is StreamFault =>
  error._tag === "Reported" || error._tag === "Broken"
const isBroken = (error: StreamFault | AppendError): error is Extract<StreamFault, { readonly _tag: "Broken" }> =>
  error._tag === "Broken"

const retried = (attempt: number, failure: ProviderFailure) =>
  draft("session.next.retried", {
    attempt,
    error: {
      message: failure.message,
      isRetryable: failure.retryable,
      ...(failure.statusCode === undefined ? {} : { statusCode: failure.statusCode }),
      ...(failure.responseHeaders === undefined ? {} : { responseHeaders: failure.responseHeaders }),
      ...(failure.responseBody === undefined ? {} : { responseBody: failure.responseBody })
    }
  })

type Retry = NonNullable<ResolvedModel["policy"]["retry"]>

/** What the provider asks for, else doubling with jitter; never longer than the policy's longest wait. */
const retryDelay = (failure: ProviderFailure, { baseDelay, maxDelay }: Retry, attempt: number) =>
  Effect.map(Random.nextRange(0.8, 1.2), (jitter) =>
    Duration.min(
      failure.retryAfterMs === undefined
        ? Duration.times(baseDelay, 2 ** (attempt - 1) * jitter)
        : Duration.millis(failure.retryAfterMs),
      maxDelay
    )
  )
