/**
 * An exporter in a thread of its own, so that rendering, hashing and file operations do not delay the event loop. The
 * thread reads the database itself; only requests, positions and findings cross between the threads. If the thread
 * ends, the next request starts another thread, which continues from the record. Spec: FI-117..FI-119 in
 * specs/files.md.
 */
import { Worker, type Worker as NodeThread } from "node:worker_threads"
import * as NodeWorker from "@effect/platform-node/NodeWorker"
import * as PlatformWorker from "@effect/platform/Worker"
import type { WorkerError } from "@effect/platform/WorkerError"
import {
  Deferred,
  Effect,
  Exit,
  Layer,
  Logger,
  LogLevel,
  type ParseResult,
  PubSub,
  Queue,
  Schedule,
  Scope,
  ScopedRef,
  Stream
} from "effect"
import { EventLog } from "@daybook/log/log/EventLog"
import { messageOf } from "@daybook/log/support/SystemError"
import { Exporter, type ExporterOptions } from "./Exporter.ts"
import { ExportThreadEnded, type Finding } from "./layout/Errors.ts"
import * as Requests from "./ExporterRequests.ts"
import { Listen, type Request, type ThreadNews } from "./ExporterRequests.ts"

// Runs one export thread from its start to its end, and sends it requests.

type ExportWorker = PlatformWorker.SerializedWorker<Request>
type Broken = WorkerError | ParseResult.ParseError

/** Sends one request. */
export type Send<A, E> = (worker: ExportWorker) => Effect.Effect<A, E | Broken>

export interface Thread {
  readonly ask: <A, E>(send: Send<A, E>) => Effect.Effect<A, E | ExportThreadEnded>
  /** What the thread says, until it ends. */
  readonly said: Stream.Stream<ThreadNews, ExportThreadEnded>
  /** Fails when the thread has ended. */
  readonly ended: Effect.Effect<never, ExportThreadEnded>
  readonly hasEnded: Effect.Effect<boolean>
}

const isBroken = (error: unknown): error is Broken =>
  error instanceof Error && "_tag" in error && (error._tag === "WorkerError" || error._tag === "ParseError")

const brokenOff = (error: unknown) => new ExportThreadEnded({ details: messageOf(error) })

/** Starts the thread; closing the scope ends it. */
export const start = Effect.fnUntraced(function* (
  spawn: () => NodeThread
): Effect.fn.Return<Thread, ExportThreadEnded, Scope.Scope> {
  const end = yield* Deferred.make<never, ExportThreadEnded>()
  const watched = () => {
    const thread = spawn()
    let details: string | undefined
    thread.once("error", (cause) => (details = messageOf(cause)))
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

/** The exporter's options, and the database that the thread reads. */
export interface ExporterThreadOptions extends Omit<ExporterOptions, "before"> {
  /** The path of the database, which must exist; not `:memory:`. */
  readonly filename: string
  /** Starts the thread's program, `@daybook/files/ExporterProgram`. For an application that is a bundle. */
  readonly spawn?: (() => Worker) | undefined
}

/**
 * The limits of the thread's heap. V8 collects a heap with a limit earlier; without one, garbage grows to several times the
 * live data. An event of the longest text takes less than half.
 */
export const resourceLimits = { maxOldGenerationSizeMb: 1024, maxYoungGenerationSizeMb: 16 }

/** Starts the compiled program; the sources have it in `dist`. */
const spawnCompiled = () => {
  const folder = import.meta.url.endsWith(".ts") ? "../dist" : "."
  return new Worker(new URL(`${folder}/ExporterProgram.js`, import.meta.url), { resourceLimits })
}

/** From 200 ms, doubling, to at most 30 seconds. */
const backoff = Schedule.union(Schedule.exponential("200 millis"), Schedule.spaced("30 seconds")).pipe(
  Schedule.resetAfter("1 minute")
)

type Ask = <A, E>(send: Send<A, E>) => Effect.Effect<A, E | Requests.OpenError>

const take = Effect.fnUntraced(function* (
  { filename, root, shared, spawn = spawnCompiled, uid }: ExporterThreadOptions,
  findings: PubSub.PubSub<Finding>
): Effect.fn.Return<Thread, Requests.OpenError, Scope.Scope> {
  const thread = yield* start(spawn)
  yield* Stream.runForEach(thread.said, (said) =>
    said._tag === "Found"
      ? PubSub.publish(findings, said.finding)
      : Effect.logWithLevel(LogLevel.fromLiteral(said.level), said.message)
  ).pipe(Effect.ignore, Effect.interruptible, Effect.forkScoped)
  const open = new Requests.Open({
    filename,
    root,
    ...(uid === undefined ? {} : { uid }),
    ...(shared === undefined ? {} : { shared })
  })
  yield* thread.ask((worker) => worker.executeEffect(open))
  return thread
})

/** Follows in the thread, and in the next one after its end. `ring` wakes it after commits of this process. */
const makeFollow = Effect.fnUntraced(function* (current: Effect.Effect<Thread, Requests.OpenError>) {
  const log = yield* EventLog
  const bell = yield* Effect.acquireRelease(Queue.sliding<void>(1), Queue.shutdown)
  yield* log.listen(() => Effect.asVoid(bell.offer(undefined)))
  /** The answer comes when the thread has seen the ring, so that commits in between ring once. */
  const ringing = ({ ask, ended }: Thread) =>
    Effect.zipRight(
      bell.take,
      ask((worker) => worker.executeEffect(new Requests.Ring()))
    ).pipe(Effect.forever, Effect.raceFirst(ended))
  const once = Effect.acquireUseRelease(
    Effect.tap(current, ({ ask }) => ask((worker) => worker.executeEffect(new Requests.Follow()))),
    ringing,
    ({ ask }) => Effect.ignore(ask((worker) => worker.executeEffect(new Requests.Unfollow())))
  )
  return once.pipe(
    Effect.tapError(({ message }) => Effect.logError(message)),
    Effect.retry(backoff),
    Effect.orDie
  )
})

const make = Effect.fn("ExporterThread.make")(function* (
  options: ExporterThreadOptions
): Effect.fn.Return<Exporter["Type"], Requests.OpenError, EventLog | Scope.Scope> {
  const findings = yield* PubSub.sliding<Finding>(1_024)
  yield* Effect.addFinalizer(() => PubSub.shutdown(findings))
  const taking = take(options, findings)
  const held = yield* ScopedRef.fromAcquire(taking)
  /** The living thread; starts another one after its end. */
  const current = yield* Effect.map(Effect.makeSemaphore(1), (permits) =>
    Effect.flatMap(held, (thread) =>
      Effect.flatMap(thread.hasEnded, (ended) =>
        ended ? Effect.zipRight(ScopedRef.set(held, taking), held) : Effect.succeed(thread)
      )
    ).pipe(permits.withPermits(1))
  )
  const ask: Ask = (send) => Effect.flatMap(current, (thread) => thread.ask(send))
  const follow = yield* makeFollow(current)
  return {
    catchUp: Effect.withSpan(
      ask((worker) => worker.executeEffect(new Requests.CatchUp())),
      "Exporter.catchUp"
    ),
    exportSession: (sessionID) => ask((worker) => worker.executeEffect(new Requests.ExportSession({ sessionID }))),
    rebuild: (sessionID) =>
      ask((worker) => worker.executeEffect(new Requests.Rebuild(sessionID === undefined ? {} : { sessionID }))),
    // No run waits for a thread that cannot start.
    reached: (position) =>
      Effect.catchAll(
        ask((worker) => worker.executeEffect(new Requests.Reached({ position }))),
        ({ message }) => Effect.logError(message)
      ),
    position: ask((worker) => worker.executeEffect(new Requests.Position())),
    follow,
    findings: PubSub.subscribe(findings)
  }
})

/** An exporter over one root, in a thread. Fails with `RootBusy` if another process has the root. */
export const layer = (options: ExporterThreadOptions): Layer.Layer<Exporter, Requests.OpenError, EventLog> =>
  Layer.scoped(Exporter, make(options))
