import { assert, it } from "@effect/vitest"
import { Deferred, Effect, FastCheck as fc, Fiber } from "effect"
import * as FairLock from "../../packages/log/src/support/FairLock.ts"
import { cases } from "../support/Cases.ts"

/** Runs every fiber that can go on. */
const settle = Effect.promise(() => new Promise<void>((resolve) => void setImmediate(resolve)))

it.effect("ST-400, SL-22: one piece of work runs at a time, in the order of the calls", () =>
  Effect.gen(function* () {
    const { run: turn } = FairLock.make()
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

it.effect("ST-400: a holder that takes the lock again follows those that wait for it", () =>
  Effect.gen(function* () {
    const { run } = FairLock.make()
    const begun: Array<string> = []
    const gate = yield* Deferred.make<void>()
    const work = (name: string) => run(Effect.sync(() => void begun.push(name)))
    const again = yield* Effect.fork(
      Effect.zipRight(run(Deferred.await(gate)), Effect.replicateEffect(work("holder"), 3))
    )
    yield* settle
    const others = yield* Effect.forEach(["one", "two"], (name) => Effect.fork(work(name)))
    yield* settle
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.joinAll([again, ...others])
    assert.deepStrictEqual(begun, ["one", "two", "holder", "holder", "holder"])
  })
)

it("ST-400: no interruption or failure loses the lock", () => {
  const fate = fc.constantFrom("ends", "fails", "is interrupted", "is interrupted as its turn comes")
  return fc.assert(
    fc.asyncProperty(fc.array(fate, { minLength: 1, maxLength: 8 }), (fates) =>
      Effect.gen(function* () {
        const { run: turn } = FairLock.make()
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
