/**
 * Runs the local tools of one turn, each in a fiber of the turn's scope, and publishes their progress and results. What
 * must end the turn (a declined call, a failure to store) is kept in `abort`. Spec: EX-T3, EX-T4, EX-T6..EX-T8, EX-T12.
 */
import { Cause, Clock, Deferred, Effect, Fiber, FiberSet, Metric, type Scope } from "effect"
import type { AppendError } from "@daybook/log/log/EventLog"
import * as Metrics from "@daybook/log/support/Metrics"
import type { ToolDeclined, ToolStorageError } from "../domain/ToolError.ts"
import type { ToolCall } from "../tool/ToolDefinition.ts"
import type { MaterializedTools, Settled } from "../tool/ToolRegistry.ts"
import { boundedProgress } from "./Progress.ts"
import * as Publication from "./Publication.ts"
import type { TurnFiles } from "./TurnFiles.ts"
import type { LocalCall } from "./recorder/TurnRecorder.ts"

/** Why a tool ends the turn. */
export type Abort = ToolDeclined | ToolStorageError | AppendError

export interface ToolFibersInput {
  readonly publication: Publication.Publication
  readonly tools: MaterializedTools
  readonly files: TurnFiles
  /** What every call of the turn is given. */
  readonly call: Omit<ToolCall, "callID" | "progress">
}

/** The running tools of one turn. */
export interface ToolFibers extends ToolFibersInput {
  readonly running: FiberSet.FiberSet<void>
  readonly abort: Deferred.Deferred<never, Abort>
}

export const make = Effect.fnUntraced(function* (
  input: ToolFibersInput
): Effect.fn.Return<ToolFibers, never, Scope.Scope> {
  return { ...input, abort: yield* Deferred.make<never, Abort>(), running: yield* FiberSet.make<void>() }
})

/** A tool failed outside its contract: the model reads the error and continues (TO-2). */
const brokenTool = (name: string, defect: unknown): Settled => {
  const details = defect instanceof Error ? defect.message : String(defect)
  return { _tag: "Failure", error: { type: "tool.execution", message: `tool "${name}" broke: ${details}` } }
}

const progressOf = ({ abort, publication }: ToolFibers, callID: string) =>
  boundedProgress((update) =>
    Publication.progress(publication, callID, update).pipe(
      Effect.catchAll((error) => Deferred.fail(abort, error)),
      Effect.asVoid
    )
  )

/** Runs a call to its outcome; a defect becomes a failure that the model reads. */
const outcomeOf = (fibers: ToolFibers, { callID, input, name }: LocalCall, restore: Restore) =>
  Effect.flatMap(progressOf(fibers, callID), (progress) =>
    restore(fibers.tools.settle({ name, input, call: { ...fibers.call, callID, progress } }))
  ).pipe(
    Effect.scoped,
    Effect.catchAllDefect((defect) =>
      Effect.as(Effect.logError(`tool "${name}" broke while it served ${callID}`, defect), brokenTool(name, defect))
    )
  )

type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Runs one call. It is interruptible until the tool returns; then its result is stored. */
const settle = Effect.fn("SessionRunner.tool")((fibers: ToolFibers, call: LocalCall) =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      if (!fibers.tools.isReadOnly(call.name)) yield* restore(fibers.files.before)
      const started = yield* Clock.currentTimeMillis
      const settled = yield* outcomeOf(fibers, call, restore)
      const time = (yield* Clock.currentTimeMillis) - started
      yield* Metric.update(Metric.tagged(Metrics.toolTime, "tool", call.name), time)
      yield* Publication.result(fibers.publication, call, settled)
    })
  )
)

/** Starts a call that is on disk. A failure to settle it ends the turn, not the fiber set. */
export const start = (fibers: ToolFibers, call: LocalCall) =>
  FiberSet.run(
    fibers.running,
    Effect.catchAllCause(settle(fibers, call), (cause) =>
      Cause.isInterruptedOnly(cause) ? Effect.void : Effect.asVoid(Deferred.failCause(fibers.abort, cause))
    )
  )

/** Interrupts all tools concurrently: no cleanup waits for another. */
export const stop = ({ running }: ToolFibers) => Effect.suspend(() => Fiber.interruptAll(Array.from(running)))

/** Fails when a tool ends the turn; never succeeds. */
export const aborted = ({ abort }: ToolFibers) => Deferred.await(abort)

/** Waits for all tools. Checks `abort` again: a tool that aborts as the last one must not count as a success. */
export const awaitAll = (fibers: ToolFibers) =>
  Effect.zipRight(
    Effect.raceFirst(FiberSet.awaitEmpty(fibers.running), aborted(fibers)),
    Effect.whenEffect(aborted(fibers), Deferred.isDone(fibers.abort))
  )
