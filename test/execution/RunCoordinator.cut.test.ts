/** The coordinator's law of cutting one drain short: EX-13 in specs/execution.md. */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { atOnce, bench, clean, failureOf, finish, isPending } from "./gatedDrains.ts"

const yes = () => true

it.scoped("EX-13: a cut stops the drain, waits for its cleanup, and a fresh unforced one follows", () =>
  Effect.gen(function* () {
    const { began, cleaning, coordinator, more } = yield* bench
    const run = yield* atOnce(coordinator.run("a"))
    const first = yield* began
    const cutting = yield* atOnce(coordinator.cut("a", yes))
    yield* cleaning
    assert.isTrue(yield* isPending(cutting))
    yield* clean(first)
    assert.isTrue(yield* Fiber.join(cutting))
    assert.strictEqual(failureOf(yield* Fiber.await(run))?._tag, "RunInterrupted")
    const next = yield* began
    assert.isFalse(next.force)
    yield* finish(next)
    yield* coordinator.settled("a")
    assert.strictEqual(yield* more, 0)
  })
)

it.scoped("EX-13: where the condition does not hold, and for an idle key, nothing is done", () =>
  Effect.gen(function* () {
    const { began, coordinator, more } = yield* bench
    assert.isFalse(yield* coordinator.cut("a", yes))
    const run = yield* atOnce(coordinator.run("a"))
    const drain = yield* began
    assert.isFalse(yield* coordinator.cut("a", () => false))
    yield* finish(drain, 7)
    assert.strictEqual(yield* Fiber.join(run), 7)
    assert.deepStrictEqual(yield* coordinator.active, [])
    assert.strictEqual(yield* more, 0)
  })
)

it.scoped("EX-13: the condition is asked in the step that stops: a drain that begins after it is not hit", () =>
  Effect.gen(function* () {
    const { began, coordinator } = yield* bench
    let current = "first"
    yield* coordinator.wake("a")
    const first = yield* began
    yield* coordinator.wake("a")
    const late = yield* atOnce(
      Effect.zipRight(
        Effect.yieldNow(),
        coordinator.cut("a", () => current === "first")
      )
    )
    yield* finish(first)
    current = "second"
    const second = yield* began
    assert.isFalse(yield* Fiber.join(late))
    yield* finish(second)
    yield* coordinator.settled("a")
  })
)

it.scoped("EX-13: what was woken before a cut is drained after it, once", () =>
  Effect.gen(function* () {
    const { began, coordinator, more } = yield* bench
    yield* coordinator.wake("a")
    const first = yield* began
    yield* Effect.replicateEffect(coordinator.wake("a"), 3)
    yield* clean(first)
    assert.isTrue(yield* coordinator.cut("a", yes))
    yield* finish(yield* began)
    yield* coordinator.settled("a")
    assert.strictEqual(yield* more, 0)
  })
)

it.scoped(
  "EX-13: during the cleanup of an interrupt a cut only waits: nothing follows, and a waiting run is kept",
  () =>
    Effect.gen(function* () {
      const { began, cleaning, coordinator, more } = yield* bench
      yield* coordinator.wake("a")
      const first = yield* began
      const interrupting = yield* atOnce(coordinator.interrupt("a"))
      yield* cleaning
      const cutting = yield* atOnce(coordinator.cut("a", yes))
      yield* clean(first)
      yield* Fiber.join(interrupting)
      assert.isTrue(yield* Fiber.join(cutting))
      assert.deepStrictEqual(yield* coordinator.active, [])
      assert.strictEqual(yield* more, 0)

      yield* coordinator.wake("b")
      const other = yield* began
      yield* atOnce(coordinator.interrupt("b"))
      yield* cleaning
      const run = yield* atOnce(coordinator.run("b"))
      yield* atOnce(coordinator.cut("b", yes))
      yield* clean(other)
      const forced = yield* began
      assert.isTrue(forced.force)
      yield* finish(forced, 3)
      assert.strictEqual(yield* Fiber.join(run), 3)
    })
)
