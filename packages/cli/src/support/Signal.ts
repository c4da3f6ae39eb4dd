/** Handles termination signals: the first ends the process cleanly, the second immediately. Spec: CL-38, CL-123 in specs/cli.md. */
import { Deferred, Effect, Struct } from "effect"
import { Interrupted } from "./Errors.ts"

const signals = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

export type Name = keyof typeof signals

/** An effect that waits for the first signal, and returns its name. A second signal exits the process immediately. */
export const first = Effect.gen(function* () {
  const first = yield* Deferred.make<Name>()
  let seen = false
  const listeners = Struct.keys(signals).map((name) => {
    const listener = () => {
      if (seen) process.exit(signals[name])
      seen = true
      Deferred.unsafeDone(first, Effect.succeed(name))
    }
    return [name, listener] as const
  })
  yield* Effect.acquireRelease(
    Effect.sync(() => listeners.forEach(([name, listener]) => process.on(name, listener))),
    () => Effect.sync(() => listeners.forEach(([name, listener]) => process.off(name, listener)))
  )
  return Deferred.await(first)
})

/** Stops the work at the first signal, with this message. What the work has stored stays. */
export const stopping =
  (message: string) =>
  <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.scoped(
      Effect.flatMap(first, (signal) => Effect.raceFirst(work, Effect.zipRight(signal, new Interrupted({ message }))))
    )
