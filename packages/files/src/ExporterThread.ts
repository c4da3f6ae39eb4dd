/**
 * An exporter in a thread of its own, so that rendering, hashing and file operations do not delay the event loop. The
 * thread reads the database itself; only requests, positions and findings cross between the threads. If it ends, the
 * next request starts another one, which continues from the record. Spec: FI-117..FI-119 in specs/files.md.
 */
import { Worker } from "node:worker_threads"
import { Effect, Layer, LogLevel, PubSub, Queue, Schedule, type Scope, ScopedRef, Stream } from "effect"
import { EventLog } from "@daybook/log/log/EventLog"
import { Exporter, type ExporterOptions } from "./Exporter.ts"
import type { Finding } from "./layout/Errors.ts"
import * as Requests from "./thread/Requests.ts"
import * as Thread from "./thread/Thread.ts"

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

const levels = {
  Debug: LogLevel.Debug,
  Info: LogLevel.Info,
  Warning: LogLevel.Warning,
  Error: LogLevel.Error
} satisfies Record<string, LogLevel.LogLevel>

type Ask = <A, E>(send: Thread.Send<A, E>) => Effect.Effect<A, E | Requests.OpenError>

/** Starts a thread that has the root. */
const take = Effect.fnUntraced(function* (
  { filename, root, shared, spawn = spawnCompiled, uid }: ExporterThreadOptions,
  findings: PubSub.PubSub<Finding>
): Effect.fn.Return<Thread.Thread, Requests.OpenError, Scope.Scope> {
  const thread = yield* Thread.start(spawn)
  yield* Stream.runForEach(thread.said, (said) =>
    said._tag === "Found"
      ? PubSub.publish(findings, said.finding)
      : Effect.logWithLevel(levels[said.level], said.message)
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
const makeFollow = Effect.fnUntraced(function* (current: Effect.Effect<Thread.Thread, Requests.OpenError>) {
  const log = yield* EventLog
  const bell = yield* Effect.acquireRelease(Queue.sliding<void>(1), Queue.shutdown)
  yield* log.listen(() => Effect.asVoid(bell.offer(undefined)))
  /** The answer comes when the thread has seen the ring, so that commits in between ring once. */
  const ringing = ({ ask, ended }: Thread.Thread) =>
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
