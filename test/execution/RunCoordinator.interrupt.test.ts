/**
 * The coordinator's laws of interrupting, and of what is asked during a cleanup. Spec: specs/execution.md, Coordinator.
 */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, Queue } from "effect"
import { make, type RunCoordinator, RunInterrupted } from "../../packages/core/src/coordination/RunCoordinator.ts"
import { atOnce, bench, clean, errorsOf, failureOf, finish, isPending } from "./gatedDrains.ts"

describe("CO-6: interrupt", () => {
  it.scoped("CO-6: interrupting an idle or unknown key does nothing", () =>
    Effect.gen(function* () {
      const { coordinator, more } = yield* bench
      yield* coordinator.interrupt("never seen")
      assert.deepStrictEqual(yield* coordinator.active, [])
      assert.strictEqual(yield* more, 0)
    })
  )

  it.scoped("CO-6: an interrupt returns only after the drain's finalizers have run, and so does settled", () =>
    Effect.gen(function* () {
      const { began, cleaning, coordinator } = yield* bench
      yield* coordinator.wake("a")
      const drain = yield* began
      const interrupting = yield* Effect.all([atOnce(coordinator.interrupt("a")), atOnce(coordinator.interrupt("a"))])
      const settling = yield* atOnce(coordinator.settled("a"))
      yield* cleaning
      for (const fiber of [...interrupting, settling]) assert.isTrue(yield* isPending(fiber))
      assert.deepStrictEqual(yield* coordinator.active, ["a"])
      yield* clean(drain)
      for (const fiber of [...interrupting, settling]) yield* Fiber.join(fiber)
      assert.deepStrictEqual(yield* coordinator.active, [])
    })
  )

  it.scoped("CO-6: wakes from before an interrupt start nothing after it", () =>
    Effect.gen(function* () {
      const { began, coordinator, more } = yield* bench
      yield* coordinator.wake("a")
      const drain = yield* began
      yield* Effect.replicateEffect(coordinator.wake("a"), 3)
      yield* clean(drain)
      yield* coordinator.interrupt("a")
      assert.deepStrictEqual(yield* coordinator.active, [])
      assert.strictEqual(yield* more, 0)
    })
  )

  it.scoped("CO-6: a drain that was woken and interrupted before it began never begins", () =>
    Effect.gen(function* () {
      const { coordinator, more } = yield* bench
      yield* coordinator.wake("a")
      yield* coordinator.interrupt("a")
      assert.deepStrictEqual(yield* coordinator.active, [])
      assert.strictEqual(yield* more, 0)
    })
  )

  it.scoped("CO-6: a second interrupt drops what was asked during the cleanup, a waiting run included", () =>
    Effect.gen(function* () {
      const { began, cleaning, coordinator, more } = yield* bench
      yield* coordinator.wake("a")
      const drain = yield* began
      const first = yield* atOnce(coordinator.interrupt("a"))
      yield* cleaning
      yield* coordinator.wake("a")
      const run = yield* atOnce(coordinator.run("a"))
      const second = yield* atOnce(coordinator.interrupt("a"))
      assert.strictEqual(failureOf(yield* Fiber.await(run))?._tag, "RunInterrupted")
      yield* clean(drain)
      yield* Fiber.join(first)
      yield* Fiber.join(second)
      assert.deepStrictEqual(yield* coordinator.active, [])
      assert.strictEqual(yield* more, 0)
    })
  )

  it.scoped("CO-6: joiners of an interrupted run fail with RunInterrupted and are not interrupted themselves", () =>
    errorsOf((lines) =>
      Effect.gen(function* () {
        const { began, coordinator } = yield* bench
        const run = yield* atOnce(Effect.flip(coordinator.run("ses_1")))
        yield* clean(yield* began)
        yield* coordinator.interrupt("ses_1")
        const failure = yield* Fiber.join(run)
        assert.instanceOf(failure, RunInterrupted)
        assert.include(failure.message, "ses_1")
        assert.deepStrictEqual(lines, [])
      })
    )
  )

  it.scoped("CO-6: a defect of the cleanup reaches the joiners without the interruption beside it", () =>
    Effect.gen(function* () {
      const up = yield* Deferred.make<void>()
      const coordinator = yield* make<string, void, never>({
        drain: () =>
          Effect.zipRight(Deferred.succeed(up, undefined), Effect.never).pipe(Effect.ensuring(Effect.die("cleanup")))
      })
      const run = yield* atOnce(coordinator.run("a"))
      yield* Deferred.await(up)
      yield* coordinator.interrupt("a")
      const exit = yield* Fiber.await(run)
      assert.isTrue(Exit.isFailure(exit) && Cause.isDie(exit.cause) && !Cause.isInterrupted(exit.cause))
    })
  )

  it.scoped("CO-6: an interrupt whose caller is interrupted while it waits has still stopped the key", () =>
    Effect.gen(function* () {
      const { began, cleaning, coordinator, more } = yield* bench
      yield* coordinator.wake("a")
      const drain = yield* began
      const interrupting = yield* atOnce(coordinator.interrupt("a"))
      yield* cleaning
      yield* Fiber.interrupt(interrupting)
      assert.deepStrictEqual(yield* coordinator.active, ["a"])
      yield* clean(drain)
      yield* coordinator.settled("a")
      assert.strictEqual(yield* more, 0)
      const run = yield* atOnce(coordinator.run("a"))
      yield* finish(yield* began, 4)
      assert.strictEqual(yield* Fiber.join(run), 4)
    })
  )

  it.scoped("CO-6: a drain may interrupt its own key", () =>
    Effect.gen(function* () {
      const coordinator: RunCoordinator<string, void, never> = yield* make({
        drain: (key: string) => coordinator.interrupt(key)
      })
      assert.instanceOf(yield* Effect.flip(coordinator.run("a")), RunInterrupted)
      assert.deepStrictEqual(yield* coordinator.active, [])
    })
  )

  it.scoped("CO-6: a coordinator made where interruption is off can still be interrupted", () =>
    Effect.gen(function* () {
      const { began, coordinator } = yield* Effect.uninterruptible(bench)
      yield* coordinator.wake("a")
      yield* clean(yield* began)
      yield* coordinator.interrupt("a")
      assert.deepStrictEqual(yield* coordinator.active, [])
    })
  )
})

describe("CO-7: asked during the cleanup", () => {
  it.scoped("CO-7: a wake during the cleanup starts one fresh unforced successor after it", () =>
    Effect.gen(function* () {
      const { began, cleaning, coordinator, more } = yield* bench
      yield* coordinator.wake("a")
      const old = yield* began
      const interrupting = yield* atOnce(coordinator.interrupt("a"))
      yield* cleaning
      yield* Effect.replicateEffect(coordinator.wake("a"), 3)
      assert.strictEqual(yield* more, 0)
      yield* clean(old)
      const fresh = yield* began
      assert.isFalse(fresh.force)
      // The interrupt waits for what it stopped, not for the successor.
      yield* Fiber.join(interrupting)
      yield* finish(fresh)
      yield* coordinator.settled("a")
      assert.strictEqual(yield* more, 0)
    })
  )

  it.scoped("CO-7: settled waits for the successor too", () =>
    Effect.gen(function* () {
      const { began, cleaning, coordinator } = yield* bench
      yield* coordinator.wake("a")
      const old = yield* began
      const settling = yield* atOnce(coordinator.settled("a"))
      const interrupting = yield* atOnce(coordinator.interrupt("a"))
      yield* cleaning
      yield* coordinator.wake("a")
      yield* clean(old)
      const fresh = yield* began
      yield* Fiber.join(interrupting)
      assert.isTrue(yield* isPending(settling))
      yield* finish(fresh)
      yield* Fiber.join(settling)
    })
  )

  it.scoped("CO-7: a drain interrupted after its last step keeps its value, and a wake gets a fresh execution", () =>
    Effect.gen(function* () {
      // The drain returns at once; its child's cleanup keeps it from being over, which is when the interrupt comes.
      const cleanups = yield* Queue.unbounded<Deferred.Deferred<void>>()
      let drains = 0
      const coordinator = yield* make<string, number, never>({
        drain: () =>
          Effect.gen(function* () {
            const [up, gate] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
            yield* Effect.fork(
              Effect.zipRight(Deferred.succeed(up, undefined), Effect.never).pipe(
                Effect.onInterrupt(() => Effect.zipRight(Queue.offer(cleanups, gate), Deferred.await(gate)))
              )
            )
            yield* Deferred.await(up)
            drains += 1
            return drains
          })
      })
      const early = yield* atOnce(coordinator.run("a"))
      const first = yield* Queue.take(cleanups)
      const interrupting = yield* atOnce(coordinator.interrupt("a"))
      yield* coordinator.wake("a")
      yield* Deferred.succeed(first, undefined)
      const second = yield* Queue.take(cleanups)
      assert.isFalse(yield* isPending(interrupting))
      assert.strictEqual(yield* Fiber.join(early), 1)
      const late = yield* atOnce(coordinator.run("a"))
      yield* Deferred.succeed(second, undefined)
      assert.strictEqual(yield* Fiber.join(late), 2)
    })
  )

  it.scoped("CO-7: a run beside a wake during the cleanup makes the one successor a forced one", () =>
    Effect.gen(function* () {
      const { began, cleaning, coordinator, more } = yield* bench
      yield* coordinator.wake("a")
      const old = yield* began
      yield* atOnce(coordinator.interrupt("a"))
      yield* cleaning
      yield* coordinator.wake("a")
      const run = yield* atOnce(coordinator.run("a"))
      yield* clean(old)
      const fresh = yield* began
      assert.isTrue(fresh.force)
      yield* finish(fresh, 6)
      assert.strictEqual(yield* Fiber.join(run), 6)
      assert.strictEqual(yield* more, 0)
    })
  )

  it.scoped("CO-7: a successor is an ordinary execution: wakes and interrupts reach it", () =>
    Effect.gen(function* () {
      const { began, cleaning, coordinator, more } = yield* bench
      yield* coordinator.wake("a")
      const old = yield* began
      yield* atOnce(coordinator.interrupt("a"))
      yield* cleaning
      yield* coordinator.wake("a")
      yield* clean(old)
      const fresh = yield* began
      yield* coordinator.wake("a")
      yield* finish(fresh)
      yield* clean(yield* began)
      yield* coordinator.interrupt("a")
      assert.deepStrictEqual(yield* coordinator.active, [])
      assert.strictEqual(yield* more, 0)
    })
  )
})
