/**
 * The runs that requests began and still have to hear of: the first request returns before a long run ends, and a later one,
 * with the same name, gets its error. Spec: HT-13, HT-69 in specs/http.md.
 */
import { Effect, Fiber, type Scope } from "effect"
import type { RunError } from "@daybook/core/runner/RunError"
import type { SessionID } from "@daybook/log/domain/Identifiers"

export interface Resumes {
  /** Runs the session, and remembers the outcome under the name; a known name joins its run. */
  readonly begin: (
    sessionID: SessionID,
    name: string,
    run: Effect.Effect<void, RunError>
  ) => Effect.Effect<void, RunError>
  /** The outcome of the run of this name; undefined if it is not known here, or not any more. */
  readonly known: (sessionID: SessionID, name: string) => Effect.Effect<void, RunError> | undefined
}

/** Runs that are remembered. The oldest is forgotten first; its work goes on. */
const remembered = 1_024

/** Remembers until the scope closes, which ends no run. */
export const make: Effect.Effect<Resumes, never, Scope.Scope> = Effect.map(Effect.scope, (scope) => {
  const runs = new Map<string, Fiber.RuntimeFiber<void, RunError>>()
  const keyOf = (sessionID: SessionID, name: string) => `${sessionID} ${name}`
  const forget = Effect.suspend(() => {
    const [oldest] = runs.entries()
    if (oldest === undefined || runs.size <= remembered) return Effect.void
    runs.delete(oldest[0])
    return Fiber.interruptFork(oldest[1])
  })
  const known: Resumes["known"] = (sessionID, name) => {
    const fiber = runs.get(keyOf(sessionID, name))
    return fiber === undefined ? undefined : Fiber.join(fiber)
  }
  return {
    known,
    begin: (sessionID, name, run) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const before = known(sessionID, name)
          if (before !== undefined) return yield* restore(before)
          const fiber = yield* Effect.forkIn(Effect.interruptible(run), scope)
          runs.set(keyOf(sessionID, name), fiber)
          yield* forget
          return yield* restore(Fiber.join(fiber))
        })
      )
  }
})
