import { assert, it } from "@effect/vitest"
import { Deferred, Effect, FastCheck as fc, Fiber } from "effect"
import * as Turn from "../../../packages/shell/src/session/Turn.ts"
import { cases } from "../../support/Cases.ts"

/** Runs every fiber that can go on. */
const settle = Effect.promise(() => new Promise<void>((resolve) => void setImmediate(resolve)))

it.effect("SL-22: one piece of work runs at a time, in the order of the calls", () =>
  Effect.gen(function* () {
    const turn = Turn.make()
    const gates = yield* Effect.replicateEffect(Deferred.make<void>(), 4)
    const begun: Array<number> = []
    const fibers = yield* Effect.forEach(gates, (gate, index) =>
      Effect.fork(
        turn(
          Effect.zipRight(
            Effect.sync(() => begun.push(index)),
            Deferred.await(gate)
          )
        )
      )
    )
    for (const [index, gate] of gates.entries()) {
      yield* settle
      assert.deepStrictEqual(
        begun,
        gates.slice(0, index + 1).map((_, each) => each)
      )
      yield* Deferred.succeed(gate, undefined)
    }
    yield* Fiber.joinAll(fibers)
  })
)

it("SL-22: no interruption or failure loses the turn", () => {
  const fate = fc.constantFrom("ends", "fails", "is interrupted", "is interrupted as its turn comes")
  return fc.assert(
    fc.asyncProperty(fc.array(fate, { minLength: 1, maxLength: 8 }), (fates) =>
      Effect.gen(function* () {
        const turn = Turn.make()
        let running = 0
        const first = yield* Deferred.make<void>()
        const holder = yield* Effect.fork(turn(Deferred.await(first)))
        yield* settle
        const fibers = yield* Effect.forEach(fates, (each) =>
          Effect.fork(
            turn(
              Effect.gen(function* () {
                running += 1
                assert.strictEqual(running, 1)
                yield* Effect.ensuring(
                  each === "ends" ? Effect.void : each === "fails" ? Effect.fail("failed") : Effect.never,
                  Effect.sync(() => (running -= 1))
                )
              })
            )
          )
        )
        yield* settle
        const interrupt = (when: (typeof fates)[number]) => {
          for (const [index, fiber] of fibers.entries())
            if (fates[index] === when) fiber.unsafeInterruptAsFork(holder.id())
        }
        interrupt("is interrupted")
        Deferred.unsafeDone(first, Effect.void)
        interrupt("is interrupted as its turn comes")
        yield* Effect.forEach(fibers, Fiber.await)
        assert.strictEqual(yield* turn(Effect.succeed("last")), "last")
      }).pipe(Effect.runPromise)
    ),
    { numRuns: cases(100) }
  )
})
