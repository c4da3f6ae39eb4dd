/**
 * The program of an export thread: an exporter on its own read-only connection, which obeys the requests of
 * `ExporterRequests.ts`. The program ends when its port closes. Spec: FI-117..FI-119 in specs/files.md.
 */
import * as NodeWorkerRunner from "@effect/platform-node/NodeWorkerRunner"
import * as WorkerRunner from "@effect/platform/WorkerRunner"
import { Cause, Context, Deferred, Effect, Exit, FiberHandle, Layer, Logger, Queue, Scope, Stream } from "effect"
import * as Store from "@daybook/log/Store"
import * as Garbage from "@daybook/log/support/Garbage"
import { Exporter } from "./Exporter.ts"
import { ExportThreadEnded } from "./layout/Errors.ts"
import { type Open, Request, type ThreadNews } from "./ExporterRequests.ts"

/** Lines and findings that wait for the other thread, at most. */
const mostSaid = 1_024

const textOf = (message: unknown): string => (Array.isArray(message) ? message : [message]).map(String).join(" ")

/** Sends log lines to the main thread. */
const loggingTo = (said: Queue.Enqueue<ThreadNews>) =>
  Logger.replace(
    Logger.defaultLogger,
    Logger.make(({ logLevel, message }) => {
      said.unsafeOffer({ _tag: "Logged", level: logLevel._tag, message: textOf(message) })
    })
  )

const serving = Effect.gen(function* () {
  const said = yield* Queue.sliding<ThreadNews>(mostSaid)
  const opened = yield* Deferred.make<Exporter["Type"]>()
  const following = yield* FiberHandle.make()
  const scope = yield* Effect.scope
  /** The first time the files are current, the thread's start is over. */
  const started = yield* Effect.once(Scope.extend(Garbage.afterStart, scope))

  const open = ({ filename, ...options }: Open) =>
    Effect.gen(function* () {
      const layer = Layer.provide(Exporter.layer(options), Store.layerReading({ filename }))
      const exporter = Context.get(yield* Layer.buildWithScope(layer, scope), Exporter)
      const findings = Stream.unwrapScoped(Effect.map(exporter.findings, Stream.fromQueue))
      yield* Stream.runForEach(findings, (finding) => said.offer({ _tag: "Found", finding })).pipe(Effect.forkIn(scope))
      yield* Deferred.succeed(opened, exporter)
    }).pipe(Effect.catchTag("DatabaseError", ({ message }) => new ExportThreadEnded({ details: message })))

  const exporter = Deferred.await(opened)
  return yield* WorkerRunner.makeSerialized(Request, {
    Open: open,
    CatchUp: () => Effect.flatMap(exporter, ({ catchUp }) => Effect.zipLeft(catchUp, started)),
    ExportSession: ({ sessionID }) => Effect.flatMap(exporter, ({ exportSession }) => exportSession(sessionID)),
    Rebuild: ({ sessionID }) => Effect.flatMap(exporter, ({ rebuild }) => rebuild(sessionID)),
    Reached: ({ position }) => Effect.flatMap(exporter, ({ reached }) => reached(position)),
    Position: () => Effect.flatMap(exporter, ({ position }) => position),
    Follow: () => Effect.flatMap(exporter, ({ follow }) => Effect.asVoid(FiberHandle.run(following, follow))),
    // While it follows, a position that was reached only wakes the loop.
    Ring: () => Effect.flatMap(exporter, ({ reached }) => reached(0)),
    Unfollow: () => FiberHandle.clear(following),
    Listen: () => Stream.fromQueue(said)
  }).pipe(Effect.provide(loggingTo(said)))
})

Effect.runCallback(WorkerRunner.launch(Layer.provide(Layer.scopedDiscard(serving), NodeWorkerRunner.layer)), {
  onExit: (exit) => {
    // An exception ends the thread, and tells the other thread the reason.
    if (Exit.isFailure(exit) && !Cause.isInterruptedOnly(exit.cause)) throw Cause.squash(exit.cause)
  }
})
