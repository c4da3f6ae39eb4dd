/**
 * The coordinator's laws of running, joining and waking, and of its ends. Spec: specs/execution.md, Coordinator.
 */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Deferred, Effect, Exit, Fiber, Option, Queue, Scheduler, Scope } from "effect"
import { make, type RunCoordinator, RunInterrupted } from "../../packages/core/src/coordination/RunCoordinator.ts"
import { atOnce, bench, clean, errorsOf, fail, failureOf, finish, isPending } from "./gatedDrains.ts"

describe("CO-1: one drain chain per key", () => {
  it.scoped("CO-1: drains of different keys overlap in time, those of one key do not", () =>
    Effect.gen(function* () {
      const { began, coordinator, more } = yield* bench
      yield* coordinator.wake("a")
      yield* coordinator.wake("b")
      yield* coordinator.wake("a")
      const first = yield* began
      const second = yield* began
      assert.deepStrictEqual([first.key, second.key], ["a", "b"])
      yield* finish(second)
      yield* coordinator.settled("b")
      assert.strictEqual(yield* more, 0)
      yield* finish(first)
      const third = yield* began
      assert.strictEqual(third.key, "a")
      yield* finish(third)
      yield* coordinator.settled("a")
    })
  )

  it.scoped("CO-1: what a drain forked has ended before the next drain of its key begins", () =>
    Effect.gen(function* () {
      const trace: Array<string> = []
      const coordinator: RunCoordinator<string, void, never> = yield* make<string, void, never>({
        drain: (key) =>
          Effect.gen(function* () {
            trace.push("begin")
            if (trace.length === 1) yield* coordinator.wake(key)
            const up = yield* Deferred.make<void>()
            yield* Effect.fork(
              Effect.zipRight(Deferred.succeed(up, undefined), Effect.never).pipe(
                Effect.onInterrupt(() => Effect.sync(() => trace.push("child ended")))
              )
            )
            yield* Deferred.await(up)
          })
      })
      yield* coordinator.wake("a")
      yield* coordinator.settled("a")
      assert.deepStrictEqual(trace, ["begin", "child ended", "begin", "child ended"])
    })
  )
})

describe("CO-2: run", () => {
  it.scoped("CO-2: a run on an idle key starts one forced drain and answers with its value", () =>
    Effect.gen(function* () {
      const { began, coordinator, more } = yield* bench
      const run = yield* atOnce(coordinator.run("a"))
      const drain = yield* began
      assert.isTrue(drain.force)
      yield* finish(drain, 7)
      assert.strictEqual(yield* Fiber.join(run), 7)
      assert.strictEqual(yield* more, 0)
      assert.deepStrictEqual(yield* coordinator.active, [])
    })
  )

  it.scoped("CO-2: a run on an active key joins it: no second drain, and no force for the one that runs", () =>
    Effect.gen(function* () {
      const { began, coordinator, more } = yield* bench
      yield* coordinator.wake("a")
      const drain = yield* began
      const runs = yield* Effect.all([atOnce(coordinator.run("a")), atOnce(coordinator.run("a"))])
      assert.isFalse(drain.force)
      yield* finish(drain, 3)
      assert.deepStrictEqual(yield* Effect.all(runs.map((run) => Fiber.join(run))), [3, 3])
      yield* coordinator.settled("a")
      assert.strictEqual(yield* more, 0)
    })
  )

  it.scoped("CO-2: runs on a stopping key wait for its cleanup, then share one fresh forced drain", () =>
    Effect.gen(function* () {
      const { began, cleaning, coordinator, more } = yield* bench
      yield* coordinator.wake("a")
      const old = yield* began
      const interrupting = yield* atOnce(coordinator.interrupt("a"))
      yield* cleaning
      const runs = yield* Effect.all([atOnce(coordinator.run("a")), atOnce(coordinator.run("a"))])
      assert.strictEqual(yield* more, 0)
      yield* clean(old)
      const fresh = yield* began
      yield* Fiber.join(interrupting)
      assert.isTrue(fresh.force)
      yield* finish(fresh, 5)
      assert.deepStrictEqual(yield* Effect.all(runs.map((run) => Fiber.join(run))), [5, 5])
      assert.strictEqual(yield* more, 0)
    })
  )
})

describe("CO-3: joiners", () => {
  it.scoped("CO-3: interrupting every caller of a run, the first included, does not stop it", () =>
    Effect.gen(function* () {
      const { began, coordinator, more } = yield* bench
      const starter = yield* atOnce(coordinator.run("a"))
      const drain = yield* began
      const joiner = yield* atOnce(coordinator.run("a"))
      yield* Fiber.interrupt(starter)
      yield* Fiber.interrupt(joiner)
      assert.deepStrictEqual(yield* coordinator.active, ["a"])
      const late = yield* atOnce(coordinator.run("a"))
      yield* finish(drain, 9)
      assert.strictEqual(yield* Fiber.join(late), 9)
      assert.strictEqual(yield* more, 0)
    })
  )

  it.scoped("CO-3: a run whose callers all left while it waited for a cleanup never starts", () =>
    Effect.gen(function* () {
      const { began, cleaning, coordinator, more } = yield* bench
      yield* coordinator.wake("a")
      const old = yield* began
      yield* atOnce(coordinator.interrupt("a"))
      yield* cleaning
      const run = yield* atOnce(coordinator.run("a"))
      yield* Fiber.interrupt(run)
      yield* clean(old)
      yield* coordinator.settled("a")
      assert.strictEqual(yield* more, 0)
      assert.deepStrictEqual(yield* coordinator.active, [])
    })
  )

  it.scoped("CO-3: a wake outlives the run that waited beside it for a cleanup, and is not forced by it", () =>
    Effect.gen(function* () {
      const { began, cleaning, coordinator } = yield* bench
      yield* coordinator.wake("a")
      const old = yield* began
      yield* atOnce(coordinator.interrupt("a"))
      yield* cleaning
      const run = yield* atOnce(coordinator.run("a"))
      yield* coordinator.wake("a")
      yield* Fiber.interrupt(run)
      yield* clean(old)
      const fresh = yield* began
      assert.isFalse(fresh.force)
      yield* finish(fresh)
      yield* coordinator.settled("a")
    })
  )

  it.scoped("CO-3: a failed run gives its failure to all its joiners, and the next run works", () =>
    Effect.gen(function* () {
      const { began, coordinator } = yield* bench
      const runs = yield* Effect.all([atOnce(coordinator.run("a")), atOnce(coordinator.run("a"))])
      yield* fail(yield* began, "first")
      for (const run of runs) {
        const failure = failureOf(yield* Fiber.await(run))
        assert.strictEqual(failure?._tag === "Broken" ? failure.why : "none", "first")
      }
      const next = yield* atOnce(coordinator.run("a"))
      yield* finish(yield* began, 2)
      assert.strictEqual(yield* Fiber.join(next), 2)
    })
  )

  it.scoped("CO-3: a drain that throws before it returns an effect is a defect for its joiners", () =>
    Effect.gen(function* () {
      const coordinator = yield* make<string, number, never>({
        drain: () => {
          throw new Error("thrown")
        }
      })
      const exit = yield* Effect.exit(coordinator.run("a"))
      assert.isTrue(Exit.isFailure(exit) && Cause.isDie(exit.cause))
      assert.deepStrictEqual(yield* coordinator.active, [])
    })
  )
})

describe("CO-4: wake", () => {
  it.scoped("CO-4: a wake on an idle key starts an unforced drain and returns before it begins", () =>
    Effect.gen(function* () {
      const { began, coordinator, more } = yield* bench
      yield* coordinator.wake("a")
      assert.strictEqual(yield* more, 0)
      assert.deepStrictEqual(yield* coordinator.active, ["a"])
      const drain = yield* began
      assert.isFalse(drain.force)
      yield* finish(drain)
      yield* coordinator.settled("a")
    })
  )

  it.scoped("CO-4: wakes during a run cause exactly one more drain, a wake during that one a third", () =>
    Effect.gen(function* () {
      const { began, coordinator, more } = yield* bench
      const run = yield* atOnce(coordinator.run("a"))
      const first = yield* began
      yield* Effect.replicateEffect(coordinator.wake("a"), 25)
      yield* finish(first, 1)
      const second = yield* began
      yield* coordinator.wake("a")
      yield* finish(second, 2)
      const third = yield* began
      assert.deepStrictEqual([first.force, second.force, third.force], [true, false, false])
      yield* finish(third, 3)
      yield* coordinator.settled("a")
      assert.strictEqual(yield* more, 0)
      assert.strictEqual(yield* Fiber.join(run), 3)
    })
  )

  it.scoped("CO-4: a wake from the drain's own finalizer is not lost", () =>
    Effect.gen(function* () {
      let drains = 0
      const coordinator: RunCoordinator<string, void, never> = yield* make<string, void, never>({
        drain: (key) =>
          Effect.ensuring(
            Effect.sync(() => {
              drains += 1
            }),
            Effect.suspend(() => (drains === 1 ? coordinator.wake(key) : Effect.void))
          )
      })
      yield* coordinator.run("a")
      assert.strictEqual(drains, 2)
    })
  )
})

describe("CO-5: a wake at the end of a drain", () => {
  it.scoped("CO-5: after success the same execution drains again: its waiters get the last exit", () =>
    Effect.gen(function* () {
      const { began, coordinator } = yield* bench
      const early = yield* atOnce(coordinator.run("a"))
      const first = yield* began
      yield* coordinator.wake("a")
      yield* finish(first, 1)
      const second = yield* began
      assert.isTrue(yield* isPending(early))
      const late = yield* atOnce(coordinator.run("a"))
      yield* fail(second, "second")
      for (const run of [early, late]) assert.strictEqual(failureOf(yield* Fiber.await(run))?._tag, "Broken")
    })
  )

  it.scoped("CO-5: after a failure a successor execution drains: each waiter gets the exit of its own", () =>
    Effect.gen(function* () {
      const { began, coordinator, more } = yield* bench
      const early = yield* atOnce(coordinator.run("a"))
      const first = yield* began
      yield* coordinator.wake("a")
      yield* fail(first, "first")
      assert.strictEqual(failureOf(yield* Fiber.await(early))?._tag, "Broken")
      const second = yield* began
      assert.isFalse(second.force)
      const late = yield* atOnce(coordinator.run("a"))
      yield* finish(second, 2)
      assert.strictEqual(yield* Fiber.join(late), 2)
      assert.strictEqual(yield* more, 0)
    })
  )

  it.scoped("CO-5: a drain that interrupts itself ends as RunInterrupted, and its pending wake has a successor", () =>
    Effect.gen(function* () {
      const trace: Array<boolean> = []
      const coordinator: RunCoordinator<string, string, never> = yield* make<string, string, never>({
        drain: (key, force) =>
          Effect.suspend(() => {
            trace.push(force)
            return trace.length === 1
              ? Effect.zipRight(coordinator.wake(key), Effect.interrupt)
              : Effect.succeed("done")
          })
      })
      assert.instanceOf(yield* Effect.flip(coordinator.run("a")), RunInterrupted)
      yield* coordinator.settled("a")
      assert.deepStrictEqual(trace, [true, false])
    })
  )

  it.scoped("CO-5: a failure that nobody waits for is reported once; one that somebody takes is not", () =>
    errorsOf((lines) =>
      Effect.gen(function* () {
        const { began, coordinator } = yield* bench
        yield* coordinator.wake("a")
        yield* fail(yield* began, "unseen")
        yield* coordinator.settled("a")
        assert.strictEqual(lines.length, 1)
        assert.include(lines[0], "unseen")
        const run = yield* atOnce(coordinator.run("a"))
        yield* fail(yield* began, "seen")
        assert.strictEqual(failureOf(yield* Fiber.await(run))?._tag, "Broken")
        assert.strictEqual(lines.length, 1)
      })
    )
  )

  it.scoped("CO-5: a drain that throws does not fail the wake that starts it, and is reported", () =>
    errorsOf((lines) =>
      Effect.gen(function* () {
        const coordinator = yield* make<string, void, never>({
          drain: () => {
            throw new Error("thrown")
          }
        })
        yield* coordinator.wake("a")
        assert.deepStrictEqual(yield* coordinator.active, ["a"])
        yield* coordinator.settled("a")
        assert.strictEqual(lines.length, 1)
        assert.include(lines[0], "thrown")
      })
    )
  )

  it.scoped("CO-5: a failure whose waiters all left before or while it was given to them is reported once", () =>
    errorsOf((lines) =>
      Effect.gen(function* () {
        const { began, coordinator } = yield* bench
        const before = yield* atOnce(coordinator.run("a"))
        const drain = yield* began
        yield* Fiber.interrupt(before)
        yield* fail(drain, "left before")
        yield* coordinator.settled("a")
        assert.strictEqual(lines.length, 1)

        // This waiter resumes only when its own scheduler is stepped: after the failure was given to it.
        const scheduler = new Scheduler.ControlledScheduler()
        const waiter = Effect.runFork(coordinator.run("a"), { scheduler })
        yield* fail(yield* began, "left during")
        yield* coordinator.settled("a")
        assert.strictEqual(lines.length, 1)
        waiter.unsafeInterruptAsFork(waiter.id())
        while (scheduler.tasks.buckets.length > 0) scheduler.step()
        assert.isTrue(Exit.isInterrupted(yield* Fiber.await(waiter)))
        assert.strictEqual(lines.length, 2)
      })
    )
  )
})

describe("CO-8: active, closing, depth", () => {
  it.scoped("CO-8: active lists the keys that run or clean up and leaves out those that settled or failed", () =>
    Effect.gen(function* () {
      const { began, coordinator } = yield* bench
      for (const key of ["a", "b", "c"]) yield* coordinator.wake(key)
      const [a, b, c] = yield* Effect.all([began, began, began])
      assert.deepStrictEqual(yield* coordinator.active, ["a", "b", "c"])
      yield* fail(a, "over")
      yield* coordinator.settled("a")
      assert.deepStrictEqual(yield* coordinator.active, ["b", "c"])
      yield* finish(b)
      yield* finish(c)
      yield* coordinator.settled("b")
      yield* coordinator.settled("c")
      assert.deepStrictEqual(yield* coordinator.active, [])
    })
  )

  it.effect("CO-8: closing the scope waits for every cleanup, drops what was asked, and starts nothing more", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { began, cleaning, coordinator, more } = yield* Scope.extend(bench, scope)
      yield* coordinator.wake("a")
      const run = yield* atOnce(coordinator.run("b"))
      const drains = yield* Effect.all([began, began])
      yield* coordinator.wake("a")
      const closing = yield* atOnce(Scope.close(scope, Exit.void))
      yield* Effect.all([cleaning, cleaning])
      yield* coordinator.wake("a")
      assert.isTrue(yield* isPending(closing))
      for (const drain of drains) yield* clean(drain)
      yield* Fiber.join(closing)
      assert.strictEqual(failureOf(yield* Fiber.await(run))?._tag, "RunInterrupted")
      yield* coordinator.wake("c")
      assert.instanceOf(yield* Effect.flip(coordinator.run("c")), RunInterrupted)
      assert.deepStrictEqual(yield* coordinator.active, [])
      assert.strictEqual(yield* more, 0)
    })
  )

  it.scoped("CO-8: 10,000 drains that wake themselves do not grow the stack", () =>
    Effect.gen(function* () {
      const depths: Array<number> = []
      const limit = Error.stackTraceLimit
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          Error.stackTraceLimit = 10_000
        }),
        () =>
          Effect.sync(() => {
            Error.stackTraceLimit = limit
          })
      )
      let drains = 0
      const coordinator: RunCoordinator<string, number, never> = yield* make<string, number, never>({
        drain: (key) =>
          Effect.suspend(() => {
            drains += 1
            if (drains % 1_000 === 0) depths.push(String(new Error("depth").stack).split("\n").length)
            return drains < 10_000 ? Effect.as(coordinator.wake(key), drains) : Effect.succeed(drains)
          })
      })
      assert.strictEqual(yield* coordinator.run("a"), 10_000)
      assert.isBelow(Math.max(...depths), 200)
      assert.deepStrictEqual(yield* coordinator.active, [])
    })
  )

  it.scoped("CO-8: a drain runs in the context of the coordinator, not in that of the caller that woke it", () =>
    Effect.gen(function* () {
      class Transaction extends Context.Tag("test/Transaction")<Transaction, string>() {}
      const seen = yield* Queue.unbounded<Option.Option<string>>()
      const coordinator = yield* make<string, void, never>({
        drain: () => Effect.flatMap(Effect.serviceOption(Transaction), (value) => Queue.offer(seen, value))
      })
      yield* coordinator.wake("a").pipe(Effect.provideService(Transaction, "open"))
      yield* coordinator.run("b").pipe(Effect.provideService(Transaction, "open"))
      assert.deepStrictEqual(yield* Effect.all([Queue.take(seen), Queue.take(seen)]), [Option.none(), Option.none()])
    })
  )
})
