/** A server that all tests of a file use, for suites whose tests need nothing of their environment. */
import { Effect, Exit, Scope } from "effect"
import { afterAll, beforeAll } from "vitest"

/** Started before the tests of the enclosing `describe`, and stopped after them. */
export const shared = <A, E>(make: Effect.Effect<A, E, Scope.Scope>): Effect.Effect<A> => {
  const scope = Effect.runSync(Scope.make())
  let started: Effect.Effect<A> = Effect.dieMessage("the server has not been started")
  beforeAll(async () => {
    started = Effect.succeed(await Effect.runPromise(Scope.extend(make, scope)))
  }, 60_000)
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return Effect.suspend(() => started)
}
