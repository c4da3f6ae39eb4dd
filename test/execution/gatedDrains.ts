/**
 * A coordinator whose drains the test holds: each says that it began and then waits at its gates. `atOnce` runs a
 * caller up to its first wait before it returns. So the order of events in a test is the only one possible, and "no
 * further drain" can be read off an idle coordinator.
 */
import { Cause, Data, Deferred, Effect, Exit, Fiber, Logger, Option, Queue, Runtime, type Scope } from "effect"
import { make, type RunCoordinator } from "../../packages/core/src/coordination/RunCoordinator.ts"

export class Broken extends Data.TaggedError("Broken")<{ readonly why: string }> {
  override get message() {
    return `broken: ${this.why}`
  }
}

/** A drain that has begun. It ends when `end` is done; when interrupted, it cleans up until `clean` is done. */
export interface Drain {
  readonly key: string
  readonly force: boolean
  readonly end: Deferred.Deferred<number, Broken>
  readonly clean: Deferred.Deferred<void>
}

export interface Bench {
  readonly coordinator: RunCoordinator<string, number, Broken>
  /** The next drain that began. */
  readonly began: Effect.Effect<Drain>
  /** The next drain that began its cleanup. */
  readonly cleaning: Effect.Effect<Drain>
  /** How many drains have begun and were not taken by `began`. */
  readonly more: Effect.Effect<number>
}

export const bench: Effect.Effect<Bench, never, Scope.Scope> = Effect.gen(function* () {
  const begins = yield* Queue.unbounded<Drain>()
  const cleanups = yield* Queue.unbounded<Drain>()
  const coordinator: RunCoordinator<string, number, Broken> = yield* make<string, number, Broken>({
    drain: (key, force) =>
      Effect.gen(function* () {
        const end = yield* Deferred.make<number, Broken>()
        const clean = yield* Deferred.make<void>()
        const drain: Drain = { key, force, end, clean }
        yield* Queue.offer(begins, drain)
        return yield* Deferred.await(drain.end).pipe(
          Effect.onInterrupt(() => Effect.zipRight(Queue.offer(cleanups, drain), Deferred.await(drain.clean)))
        )
      })
  })
  return { coordinator, began: Queue.take(begins), cleaning: Queue.take(cleanups), more: Queue.size(begins) }
})

/** Runs the effect up to its first wait, in a fiber of its own, before it returns. */
export const atOnce = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<Fiber.RuntimeFiber<A, E>> =>
  Effect.map(Effect.runtime<never>(), (runtime) => Runtime.runFork(runtime)(effect))

export const finish = (drain: Drain, value = 0) => Deferred.succeed(drain.end, value)
export const fail = (drain: Drain, why: string) => Deferred.fail(drain.end, new Broken({ why }))
export const clean = (drain: Drain) => Deferred.succeed(drain.clean, undefined)

export const failureOf = <A, E>(exit: Exit.Exit<A, E>): E | undefined =>
  Exit.isFailure(exit) ? Option.getOrUndefined(Cause.failureOption(exit.cause)) : undefined

export const isPending = <A, E>(fiber: Fiber.RuntimeFiber<A, E>) => Effect.map(Fiber.poll(fiber), Option.isNone)

/** Error lines logged while `use` ran. */
export const errorsOf = <A, E, R>(use: (lines: ReadonlyArray<string>) => Effect.Effect<A, E, R>) => {
  const lines: Array<string> = []
  const logger = Logger.make<unknown, void>(({ cause, logLevel, message }) => {
    if (logLevel._tag === "Error") lines.push(`${String(message)}: ${Cause.pretty(cause)}`)
  })
  return use(lines).pipe(Effect.provide(Logger.add(logger)))
}
