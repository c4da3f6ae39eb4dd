/** Fibers that never wait, and the event loop beside them. The scheduler's clock is the test's. */
import { it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Option, Scheduler } from "effect"
import { assert } from "vitest"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { makeFairScheduler as make } from "../../packages/log/src/support/EventLoop.ts"
import { memoryLog } from "../support/Database.ts"
import { begin, renamed, session } from "../support/Logs.ts"

/** A clock that moves on by this much with each look. */
const ticking = (step: number) => {
  let time = 0
  return () => (time += step)
}

/** Rounds of a busy fiber before the event loop had its turn; undefined when it had none. */
const roundsBeforeTurn = (busy: Effect.Effect<void>, rounds: number, scheduler: Scheduler.Scheduler) =>
  Effect.gen(function* () {
    const done = yield* Deferred.make<number | undefined>()
    const turns: Array<number> = []
    let round = 0
    yield* Effect.gen(function* () {
      setImmediate(() => turns.push(round))
      for (; round < rounds && turns.length === 0; round++) yield* busy
      yield* Deferred.succeed(done, turns[0])
    }).pipe(Effect.withScheduler(scheduler), Effect.fork)
    return yield* Deferred.await(done)
  })

for (const [what, busy, most] of [
  ["yield to each other", Effect.yieldNow(), 200],
  // Effect has a fiber yield after 2,048 steps.
  ["compute without an end", Effect.sync(() => {}), 30_000]
] as const) {
  it.live(`EX-14: fibers that ${what} leave the event loop its turn`, () =>
    Effect.gen(function* () {
      const rounds = yield* roundsBeforeTurn(busy, 100_000, make(ticking(1)))
      assert.isAtMost(rounds ?? Infinity, most)
    })
  )
}

it.live("EX-14: an interrupt between two steps of a fiber loses no permit, however long the turn lasted", () =>
  Effect.gen(function* () {
    const scheduler = make(ticking(20))
    const turn = Effect.async<void>((resume) => void setImmediate(() => resume(Effect.void)))
    for (let turns = 0; turns < 30; turns++) {
      const semaphore = yield* Effect.makeSemaphore(1)
      const work = semaphore.withPermits(1)(
        Effect.iterate(0, { while: (n) => n < 20, body: (n) => Effect.succeed(n + 1) })
      )
      const fiber = yield* Effect.fork(Effect.withScheduler(work, scheduler))
      yield* Effect.replicateEffect(turn, turns)
      yield* Fiber.interrupt(fiber)
      assert.isTrue(Option.isSome(yield* semaphore.withPermitsIfAvailable(1)(Effect.void)), `after ${turns} turns`)
    }
  })
)

it.live("EX-14: a fiber works in each turn of the event loop, even where another one uses up the turn", () =>
  Effect.gen(function* () {
    let time = 0
    const scheduler = make(() => (time += 0.05))
    let turns = 0
    const greedy = Effect.sync(() => {
      turns += 1
      time += 20
    })
    const hog = yield* Effect.fork(
      Effect.withScheduler(Effect.forever(Effect.zipRight(greedy, Effect.yieldNow())), scheduler)
    )
    const work = Effect.iterate(0, { while: (n) => n < 10_000, body: (n) => Effect.succeed(n + 1) })
    yield* Fiber.join(yield* Effect.fork(Effect.withScheduler(work, scheduler)))
    yield* Fiber.interrupt(hog)
    assert.isAtMost(turns, 200)
  })
)

it.live("EX-14: work that is short does not wait for the event loop", () =>
  Effect.gen(function* () {
    assert.isUndefined(yield* roundsBeforeTurn(Effect.yieldNow(), 1000, make(ticking(0))))
  })
)

it.scopedLive("EX-14: a host that appends without a pause leaves the event loop its turn", () =>
  Effect.gen(function* () {
    const log = yield* EventLog
    yield* begin(session("busy"))
    const turns: Array<string> = []
    setImmediate(() => turns.push("turn"))
    for (let n = 0; n < 2_000 && turns.length === 0; n++) yield* log.append(session("busy"), [renamed("again")])
    assert.deepStrictEqual(turns, ["turn"])
  }).pipe(Effect.provide(memoryLog))
)
