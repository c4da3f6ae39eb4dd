/**
 * Runs one provider turn: sends one request, publishes its stream, runs its local tools as they are called, and settles
 * everything before it returns. `Publication.ts` orders the events, `ToolFibers.ts` runs the tools.
 * Spec: EX-T1..EX-T12 (TU-8..TU-15, TO-1..TO-10).
 */
import { Cause, Effect, Exit, Metric, Option, Ref } from "effect"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import type { Location, StoredError } from "@daybook/log/domain/Values"
import type { AppendError, OwnerToken } from "@daybook/log/log/EventLog"
import * as Metrics from "@daybook/log/support/Metrics"
import type { Agent } from "../domain/Agent.ts"
import type { AnswerProblem } from "@daybook/log/domain/AnswerProblem"
import { ProviderFailed } from "../domain/RunFailure.ts"
import type { ResolvedModel } from "../model/ModelResolver.ts"
import type { ProviderFailure } from "../model/ProviderError.ts"
import * as Provider from "../model/ProviderStream.ts"
import type { StreamPart } from "../model/StreamPart.ts"
import type { ToolChoice } from "../request/Request.ts"
import type { Snapshots } from "../snapshot/Snapshots.ts"
import { firstOf } from "../support/Race.ts"
import { described } from "../support/Defect.ts"
import type { MaterializedTools } from "../tool/ToolRegistry.ts"
import * as Publication from "./Publication.ts"
import type { Repeats } from "./Repeats.ts"
import * as ToolFibers from "./ToolFibers.ts"
import * as TurnFiles from "./TurnFiles.ts"
import * as Recorder from "./recorder/TurnRecorder.ts"
import type { Reasons } from "./TurnState.ts"
import { unknownToolParts } from "./UnknownTool.ts"

export { ProviderFailed } from "../domain/RunFailure.ts"

export interface TurnInput<E> {
  readonly sessionID: SessionID
  readonly messageID: MessageID
  readonly owner: OwnerToken
  readonly agent: Agent
  readonly location: Location
  readonly model: ResolvedModel
  readonly prompt: Provider.ModelPrompt
  readonly tools: MaterializedTools
  readonly snapshots: Snapshots["Type"]
  readonly toolChoice: ToolChoice
  /** Estimated tokens of the request. */
  readonly inputEstimate: number
  readonly repeats: Repeats
  readonly ending: Publication.PublicationInput["ending"]
  /** Opens the step in the log. After it, the turn guarantees that the step is closed. */
  readonly open: Effect.Effect<unknown, E>
}

export interface TurnResult {
  /** The model has tool results to read (TU-9), or paused (EX-T43). */
  readonly continue: boolean
  /** What the answer lacks. */
  readonly problem: AnswerProblem | undefined
}

/** A turn and the parts that run it. */
interface Turn extends Pick<TurnInput<never>, "model" | "prompt" | "tools" | "toolChoice"> {
  readonly publication: Publication.Publication
  readonly fibers: ToolFibers.ToolFibers
}

const interruptedTool: StoredError = { type: "tool.interrupted", message: "Tool execution interrupted" }
const noResult: StoredError = { type: "tool.no-result", message: "no result from provider" }

const take = ({ fibers, publication }: Turn, parts: ReadonlyArray<StreamPart>) =>
  Publication.take(publication, parts, (call) => ToolFibers.start(fibers, call))

/** Runs `otherwise` if the answer has not ended. */
const unlessEnded = <E>({ publication }: Turn, otherwise: Effect.Effect<void, E>) =>
  Effect.flatMap(Ref.get(publication.state), ({ answer }) => (answer.ended === "no" ? otherwise : Effect.void))

/** The stream has ended, but the model can still get the error for an unknown tool (TO-3). */
const recoverUnknownTool = (turn: Turn, fault: Provider.StreamFault) => {
  const offered = new Set(turn.tools.definitions.map(({ name }) => name))
  const refused = fault._tag === "Broken" ? unknownToolParts(fault.error, offered) : []
  return refused.length === 0
    ? Effect.fail(fault)
    : Effect.zipRight(take(turn, refused), unlessEnded(turn, take(turn, [Recorder.cutOff])))
}

/** Sends the request and publishes its stream, within the time limit of an attempt. */
const stream = (turn: Turn) =>
  Provider.forEachChunk(
    turn.model,
    { prompt: turn.prompt, tools: turn.tools.definitions, toolChoice: turn.toolChoice },
    (parts) => take(turn, parts)
  ).pipe(
    Effect.catchIf(Provider.isFault, (fault) => recoverUnknownTool(turn, fault)),
    Effect.zipRight(unlessEnded(turn, Effect.fail(Provider.broken("the answer broke off before its end", true)))),
    Provider.within(turn.model.policy)
  )

/** Retries when the policy allows it and the attempt stored nothing durable (TU-12). */
const attempt = (turn: Turn, count: number): Effect.Effect<void, Provider.StreamFault | AppendError> =>
  Effect.catchIf(Effect.zipRight(Publication.sent(turn.publication), stream(turn)), Provider.isFault, (fault) =>
    Effect.gen(function* () {
      const output = yield* Publication.failed(turn.publication, fault)
      const pause = yield* Provider.pauseBefore(output ? {} : turn.model.policy, fault, count)
      yield* Publication.retried(turn.publication, count, fault, pause)
      yield* Effect.sleep(pause.wait)
      yield* attempt(turn, count + 1)
    })
  )

/** Settles the turn as failed by the provider. */
const fail = Effect.fnUntraced(function* (
  { model, publication }: Turn,
  { content, message, overflow, retryable }: ProviderFailure
) {
  const { answer } = yield* Ref.get(publication.state)
  const step = { type: overflow ? "context-overflow" : "provider", message }
  yield* Publication.wrapUp(publication, { local: interruptedTool, hosted: noResult, step })
  return yield* new ProviderFailed({
    sessionID: publication.sessionID,
    providerID: model.info.ref.providerID,
    details: message,
    retryable,
    overflow,
    ...(content === undefined ? {} : { rejected: content }),
    partial: answer.output
  })
})

/** Runs the request and its tools to their end. */
const run = Effect.fnUntraced(function* (turn: Turn) {
  const { fibers, publication } = turn
  const fault = yield* firstOf(attempt(turn, 1), ToolFibers.aborted(fibers)).pipe(
    Effect.as(undefined),
    Effect.catchIf(Provider.isFault, Effect.succeed)
  )
  if (fault?._tag === "Reported") {
    yield* ToolFibers.stop(fibers)
    return yield* fail(turn, fault.failure)
  }
  yield* ToolFibers.awaitAll(fibers)
  if (fault !== undefined) return yield* fail(turn, fault.failure)
  // Computed before leftovers are failed: input that never became a call is not a reason to continue.
  const { answer } = yield* Ref.get(publication.state)
  const result: TurnResult = { continue: Recorder.goesOn(answer), problem: Recorder.problemIn(answer) }
  yield* Publication.wrapUp(publication, { local: interruptedTool, hosted: noResult })
  return result
})

/** Stops the tools and settles the turn, for every exit: after its end is recorded, nothing of it runs or writes. */
const end = Effect.fnUntraced(function* (
  { fibers, publication }: Turn,
  exit: Exit.Exit<TurnResult, ProviderFailed | ToolFibers.Abort>
) {
  yield* Metric.increment(Metric.tagged(Metrics.turns, "outcome", Exit.isSuccess(exit) ? "ended" : "failed"))
  if (Exit.isSuccess(exit) || (yield* Ref.get(publication.state)).wrappedUp) return
  yield* ToolFibers.stop(fibers)
  const reasons: Reasons = { local: interruptedTool, hosted: interruptedTool, step: abortedStep(exit.cause) }
  yield* Effect.ignoreLogged(Publication.wrapUp(publication, reasons))
})

/** Runs the turn. On `ProviderFailed`, the step is settled as failed in the log. */
export const runTurn = Effect.fn("SessionRunner.turn")(function* <E>(input: TurnInput<E>) {
  const { agent, ending, inputEstimate, location, messageID, model, owner, repeats, sessionID, snapshots, tools } =
    input
  const begun = Recorder.start(sessionID, messageID, model.info, inputEstimate)
  const publication = yield* Publication.make({ sessionID, owner, begun, repeats, ending })
  const { directory } = location
  const files = yield* TurnFiles.make({ publication, snapshots, sessionID, directory })
  const fibers = yield* ToolFibers.make({ publication, tools, files, call: { sessionID, messageID, agent, location } })
  const turn: Turn = { ...input, publication, fibers }
  return yield* Effect.uninterruptibleMask((restore) =>
    Effect.zipRight(
      input.open,
      Effect.onExit(restore(run(turn)), (exit) => Effect.zipRight(end(turn, exit), files.after))
    )
  )
}, Effect.scoped)

/** The error of a step that was aborted. */
const abortedStep = (cause: Cause.Cause<ProviderFailed | ToolFibers.Abort>): StoredError => {
  const failure = Option.getOrUndefined(Cause.failureOption(cause))
  if (failure === undefined) {
    return Cause.isInterruptedOnly(cause)
      ? { type: "aborted", message: "interrupted" }
      : { type: "defect", message: described(cause, "an internal error ended the turn") }
  }
  return failure._tag === "ToolDeclined"
    ? { type: "declined", message: `a call of ${failure.tool} was declined` }
    : { type: failure._tag, message: failure.message }
}
