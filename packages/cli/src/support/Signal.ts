/** Handles termination signals: the first ends the process cleanly, the second immediately. Spec: CL-38, CL-123 in specs/cli.md. */
import { Deferred, Effect } from "effect"

const signals = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

/** An effect that waits for the first signal. A second signal exits the process immediately. */
export const first = Effect.gen(function* () {
  const first = yield* Deferred.make<void>()
  let seen = false
  const listeners = Object.entries(signals).map(([name, code]) => {
    const listener = () => {
      if (seen) process.exit(code)
      seen = true
      Deferred.unsafeDone(first, Effect.void)
    }
    return [name, listener] as const
  })
  yield* Effect.acquireRelease(
    Effect.sync(() => listeners.forEach(([name, listener]) => process.on(name, listener))),
    () => Effect.sync(() => listeners.forEach(([name, listener]) => process.off(name, listener)))
  )
  return Deferred.await(first)
})
