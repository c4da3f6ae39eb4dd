/**
 * Runs one export thread from its start to its end, and sends it requests. `ExporterThread.ts` starts a new thread when
 * one has ended. Spec: FI-117..FI-119 in specs/files.md.
 */
import type { Worker as NodeThread } from "node:worker_threads"
import * as NodeWorker from "@effect/platform-node/NodeWorker"
import * as PlatformWorker from "@effect/platform/Worker"
import type { WorkerError } from "@effect/platform/WorkerError"
import { Deferred, Effect, Exit, Logger, LogLevel, type ParseResult, Scope, Stream } from "effect"
import { ExportThreadEnded } from "../layout/Errors.ts"
import { Listen, type Request, type Said } from "./Requests.ts"

type Asked = PlatformWorker.SerializedWorker<Request>
type Broken = WorkerError | ParseResult.ParseError

/** Sends one request. */
export type Send<A, E> = (worker: Asked) => Effect.Effect<A, E | Broken>

export interface Thread {
  /** Sends a request and waits for its answer; an interruption ends the work. */
  readonly ask: <A, E>(send: Send<A, E>) => Effect.Effect<A, E | ExportThreadEnded>
  /** What the thread says, until it ends. */
  readonly said: Stream.Stream<Said, ExportThreadEnded>
  /** Fails when the thread has ended. */
  readonly ended: Effect.Effect<never, ExportThreadEnded>
  readonly hasEnded: Effect.Effect<boolean>
}

const reasonOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

const isBroken = (error: unknown): error is Broken =>
  error instanceof Error && "_tag" in error && (error._tag === "WorkerError" || error._tag === "ParseError")

const brokenOff = (error: unknown) => new ExportThreadEnded({ details: reasonOf(error) })

/** Starts the thread; closing the scope ends it. */
export const start = Effect.fnUntraced(function* (
  spawn: () => NodeThread
): Effect.fn.Return<Thread, ExportThreadEnded, Scope.Scope> {
  const end = yield* Deferred.make<never, ExportThreadEnded>()
  const watched = () => {
    const thread = spawn()
    let details: string | undefined
    thread.once("error", (cause) => (details = reasonOf(cause)))
    // Only now its locks are free.
    thread.once("exit", (code) => {
      Deferred.unsafeDone(end, Exit.fail(new ExportThreadEnded({ details: details ?? `it exited with ${code}` })))
    })
    return thread
  }
  const ended = Deferred.await(end)
  /** Ends with the thread, also where the caller cannot be interrupted. */
  const whileAlive = <A, E>(use: Effect.Effect<A, E>): Effect.Effect<A, E | ExportThreadEnded> =>
    Effect.raceFirst(Effect.interruptible(use), Effect.interruptible(ended))
  const scope = yield* Effect.scope
  const worker = yield* PlatformWorker.makeSerialized<Request>({}).pipe(
    Effect.provide(NodeWorker.layer(watched)),
    // The platform would log the end of the thread; its caller does.
    Logger.withMinimumLogLevel(LogLevel.None),
    Effect.mapError(brokenOff),
    Scope.extend(scope),
    whileAlive
  )
  return {
    ask: (send) => whileAlive(Effect.mapError(send(worker), (error) => (isBroken(error) ? brokenOff(error) : error))),
    said: Stream.mapError(worker.execute(new Listen()), brokenOff),
    ended,
    hasEnded: Deferred.isDone(end)
  }
})
