/** Retries, timeout and inactivity as a model's policy sets them (TU-12). Time is the test's. */
import { assert, it } from "@effect/vitest"
import { Chunk, Clock, Deferred, Duration, Effect, Fiber, Option, Random, Stream, Struct, TestClock } from "effect"
import type { ModelPolicy } from "../../packages/core/src/model/ModelResolver.ts"
import {
  broken,
  defaultRetry,
  type Pause,
  pauseBefore,
  reported,
  type StreamFault
} from "../../packages/core/src/model/ProviderStream.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { runtime, say, scene } from "../support/Harness.ts"
import { finish, held, says, type Script, streams, textParts } from "../support/ScriptedModel.ts"
import { dataOf, eventsOf, failureOf } from "./support/Runs.ts"

const overloaded: Script = streams({ type: "error", error: { type: "overloaded_error", message: "busy" } })

const asks = (responseHeaders: Record<string, string>): Script =>
  streams({ type: "error", error: { statusCode: 429, message: "slow down", responseHeaders } })

const asksToWait = asks({ "retry-after-ms": "700" })

const refused: Script = streams({ type: "error", error: { statusCode: 401, message: "no key" } })

/** Times are under a second: the owner of a session renews its lease each second, on the same clock. */
const retry = { times: 2, baseDelay: Duration.millis(200), maxDelay: Duration.millis(900) }

const withPolicy = (policy: ModelPolicy) => Effect.provide(runtime({}, { policy }))

/** Starts a run with these answers. */
const started = Effect.fnUntraced(function* (...scripts: ReadonlyArray<Script>) {
  const { id, model, sessions } = yield* scene()
  yield* Effect.forEach(scripts, model.answer)
  yield* say(id, "go", { resume: false })
  return { id, model, run: yield* Effect.fork(failureOf(sessions.resume(id))) }
})

/**
 * Waits until somebody sleeps until `from` to `to` from now: only then may the test move the clock. The sleeper is on
 * its way when this is called; it is given the scheduler, not time.
 */
const untilAsleep = Effect.fnUntraced(function* (from: number, to = from) {
  const now = yield* Clock.currentTimeMillis
  const about = (at: number) => at >= now + from && at <= now + to
  yield* Effect.repeat(Effect.zipRight(Effect.yieldNow(), TestClock.sleeps()), {
    until: (sleeps) => Chunk.toReadonlyArray(sleeps).some(about)
  })
})

const retries = (id: SessionID) =>
  Effect.map(dataOf(id, "session.next.retried"), (all) => all.map(({ attempt, error }) => [attempt, error.message]))

it.scoped("TU-12: without a policy a failure is not tried again, and silence lasts as long as it lasts", () =>
  Effect.gen(function* () {
    const { id, model, run } = yield* started(overloaded)
    assert.strictEqual(yield* Fiber.join(run), "ProviderFailed")
    assert.deepStrictEqual(yield* retries(id), [])
    yield* model.request
    const silent = yield* started(Stream.concat(streams(...textParts("t", "a").slice(0, 2)), Stream.never))
    yield* model.request
    yield* TestClock.adjust("3 seconds")
    assert.isTrue(Option.isNone(yield* Fiber.poll(silent.run)))
    assert.deepStrictEqual(yield* dataOf(silent.id, "session.next.step.failed"), [])
  }).pipe(withPolicy({}))
)

it.scoped(
  "TU-12: a retryable failure is tried again after a growing wait, each retry in the log, then it succeeds",
  () =>
    Effect.gen(function* () {
      const { id, model, run } = yield* started(overloaded, overloaded, says("at last"))
      yield* model.request
      yield* untilAsleep(160, 240)
      yield* TestClock.adjust("150 millis")
      assert.strictEqual(yield* model.pending, 0)
      yield* TestClock.adjust("100 millis")
      yield* model.request
      yield* untilAsleep(230, 480)
      yield* TestClock.adjust("220 millis")
      assert.strictEqual(yield* model.pending, 0)
      yield* TestClock.adjust("280 millis")
      yield* model.request
      assert.isUndefined(yield* Fiber.join(run))
      assert.deepStrictEqual(yield* retries(id), [
        [1, "the provider: busy"],
        [2, "the provider: busy"]
      ])
      // One step, whatever it took.
      assert.strictEqual((yield* dataOf(id, "session.next.step.started")).length, 1)
      assert.strictEqual((yield* dataOf(id, "session.next.step.ended")).length, 1)
    }).pipe(withPolicy({ retry }))
)

it.scoped("TU-12: retries are bounded: the last failure is the step's", () =>
  Effect.gen(function* () {
    const { id, model, run } = yield* started(overloaded, overloaded, overloaded, says("too late"))
    yield* model.request
    yield* untilAsleep(160, 240)
    yield* TestClock.adjust("250 millis")
    yield* model.request
    yield* untilAsleep(230, 480)
    yield* TestClock.adjust("500 millis")
    yield* model.request
    assert.strictEqual(yield* Fiber.join(run), "ProviderFailed")
    assert.strictEqual((yield* retries(id)).length, 2)
    assert.strictEqual((yield* dataOf(id, "session.next.step.failed")).length, 1)
    assert.strictEqual(yield* model.pending, 0)
  }).pipe(withPolicy({ retry }))
)

it.scoped("TU-12: the wait that the provider asks for comes before the policy's own", () =>
  Effect.gen(function* () {
    const { id, model, run } = yield* started(asksToWait, says("thanks"))
    yield* model.request
    yield* untilAsleep(700)
    yield* TestClock.adjust("699 millis")
    assert.strictEqual(yield* model.pending, 0)
    yield* TestClock.adjust("1 millis")
    yield* model.request
    assert.isUndefined(yield* Fiber.join(run))
    assert.strictEqual((yield* dataOf(id, "session.next.retried"))[0]?.error.statusCode, 429)
  }).pipe(withPolicy({ retry }))
)

it.scoped(
  "EX-T14: a wait of 14 seconds is honoured though the policy's own waits are shorter, and retried tells it",
  () =>
    Effect.gen(function* () {
      const { id, model, run } = yield* started(asks({ "retry-after": "14" }), says("thanks"))
      yield* model.request
      yield* untilAsleep(14_000)
      yield* TestClock.adjust("13 seconds")
      assert.strictEqual(yield* model.pending, 0)
      yield* TestClock.adjust("1 seconds")
      yield* model.request
      assert.isUndefined(yield* Fiber.join(run))
      assert.deepStrictEqual((yield* dataOf(id, "session.next.retried")).map(Struct.get("waitMs")), [14_000])
    }).pipe(withPolicy({ retry }))
)

it.scoped("EX-T13: a date without the answer's own is read against the clock, and one in the past is no wait", () =>
  Effect.gen(function* () {
    const date = (ms: number) => asks({ "retry-after": new Date(ms).toUTCString() })
    const { id, model, run } = yield* started(date(5_000), date(1_000), says("thanks"))
    yield* model.request
    yield* untilAsleep(5_000)
    yield* TestClock.adjust("5 seconds")
    yield* model.request
    yield* untilAsleep(230, 480)
    yield* TestClock.adjust("500 millis")
    yield* model.request
    assert.isUndefined(yield* Fiber.join(run))
    const [first, second] = yield* dataOf(id, "session.next.retried")
    assert.strictEqual(first?.waitMs, 5_000)
    assert.isBelow(second?.waitMs ?? Infinity, 500)
  }).pipe(withPolicy({ retry }))
)

for (const [name, wait, words, policy] of [
  ["over 15 minutes", "901", "it asks to wait 15m 1s, longer than the 15m allowed", { retry }],
  [
    "over the policy's limit",
    "3",
    "it asks to wait 3s, longer than the 2s allowed",
    { retry: { ...retry, maxRetryAfter: Duration.seconds(2) } }
  ],
  ["without an end", "9".repeat(300), "it asks to wait more than a year, longer than the 15m allowed", { retry }],
  ["of a provider that is asked once", "60", "it asks to wait 1m", {}]
] as const) {
  it.scoped(`EX-T14: a wait ${name} fails the run at once, and the error names it`, () =>
    Effect.gen(function* () {
      const { id, model, run } = yield* started(asks({ "retry-after": wait }), says("too late"))
      yield* model.request
      assert.strictEqual(yield* Fiber.join(run), "ProviderFailed")
      assert.include((yield* dataOf(id, "session.next.step.failed"))[0]?.error.message, words)
      assert.deepStrictEqual(yield* retries(id), [])
    }).pipe(withPolicy(policy))
  )
}

it.effect("EX-T14: the wait that is asked for is kept to the millisecond, up to 15 minutes and with them", () =>
  Effect.gen(function* () {
    const fault = broken("slow down", true)
    for (const retryAfterMs of [1, 29_999, 30_001, 60_000, 900_000]) {
      const { wait } = yield* pauseBefore({ retry }, { ...fault, failure: { ...fault.failure, retryAfterMs } }, 1)
      assert.strictEqual(Duration.toMillis(wait), retryAfterMs)
    }
  })
)

/** The pauses after each failure until the policy allows no more. */
const pauses = Effect.fnUntraced(function* (fault: StreamFault) {
  const all: Array<Pause> = []
  for (;;) {
    const next = yield* Effect.option(pauseBefore({ retry: defaultRetry }, fault, all.length + 1))
    if (Option.isNone(next)) return all
    all.push(next.value)
  }
})

for (const [jitter, spread] of [
  ["shortest", 0],
  ["longest", 1]
] as const) {
  it.effect(`EX-680: the default policy outlasts a minute of overload, with its ${jitter} waits`, () =>
    Effect.gen(function* () {
      const all = yield* pauses(reported({ type: "overloaded_error", message: "busy" }))
      assert.lengthOf(all, 7)
      const waits = all.map(({ wait }) => Duration.toMillis(wait))
      assert.isAtMost(Math.max(...waits), 30_000)
      assert.isAtLeast(
        waits.reduce((sum, wait) => sum + wait, 0),
        80_000
      )
    }).pipe(Effect.withRandom(Random.fixed([spread])))
  )
}

it.effect("EX-681: a server that is not reached is tried three times, within five seconds", () =>
  Effect.gen(function* () {
    const cause = Object.assign(new Error("connect"), { code: "ECONNREFUSED" })
    for (const fault of [reported(new TypeError("fetch failed", { cause })), broken("sent nothing for 1m", true)]) {
      const all = yield* pauses(fault)
      assert.deepStrictEqual(all.map(Struct.get("attempts")), [3, 3])
      assert.isBelow(
        all.reduce((sum, { wait }) => sum + Duration.toMillis(wait), 0),
        5_000
      )
    }
  })
)

it.scoped("EX-681: without a number of its own, such a failure has the retries of all", () =>
  Effect.gen(function* () {
    const { attempts } = yield* pauseBefore({ retry }, broken("sent nothing for 1m", true), 2)
    assert.strictEqual(attempts, 3)
  })
)

it.scoped("EX-682: each retry in the log has its number and how many attempts there may be", () =>
  Effect.gen(function* () {
    const { id, model, run } = yield* started(asksToWait, asksToWait, says("thanks"))
    for (const _ of [1, 2]) {
      yield* model.request
      yield* untilAsleep(700)
      yield* TestClock.adjust("700 millis")
    }
    yield* model.request
    assert.isUndefined(yield* Fiber.join(run))
    assert.deepStrictEqual(
      (yield* dataOf(id, "session.next.retried")).map(({ attempt, attempts }) => [attempt, attempts]),
      [
        [1, 3],
        [2, 3]
      ]
    )
  }).pipe(withPolicy({ retry }))
)

it.scoped("EX-T13: an interrupt ends a long wait at once", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const { id, model, run } = yield* started(asks({ "retry-after": "900" }), says("never"))
    yield* model.request
    yield* untilAsleep(900_000)
    yield* sessions.interrupt(id)
    assert.strictEqual(yield* Fiber.join(run), "RunInterrupted")
    assert.strictEqual(yield* Clock.currentTimeMillis, 0)
    assert.strictEqual((yield* dataOf(id, "session.next.retried"))[0]?.waitMs, 900_000)
  }).pipe(withPolicy({ retry }))
)

it.scoped("TU-12: a failure that another try cannot mend is not tried again", () =>
  Effect.gen(function* () {
    const { id, run } = yield* started(refused)
    assert.strictEqual(yield* Fiber.join(run), "ProviderFailed")
    assert.deepStrictEqual(yield* retries(id), [])
  }).pipe(withPolicy({ retry }))
)

it.scoped("TU-12: after durable output nothing is tried again", () =>
  Effect.gen(function* () {
    const error = { type: "error", error: { type: "overloaded_error", message: "busy" } } as const
    const { id, run } = yield* started(streams({ type: "text-start", id: "t" }, error), says("again"))
    assert.strictEqual(yield* Fiber.join(run), "ProviderFailed")
    assert.deepStrictEqual(yield* retries(id), [])
    assert.deepStrictEqual((yield* dataOf(id, "session.next.text.ended")).map(Struct.get("text")), [""])
  }).pipe(withPolicy({ retry }))
)

it.scoped("TU-12: silence between two parts is bounded, and the silence alone: a slow answer is fine", () =>
  Effect.gen(function* () {
    const gates = yield* Effect.replicateEffect(Deferred.make<void>(), 4)
    const [one, two, three, four] = gates
    const paused = gates.reduce<Script>(
      (all, gate, index) =>
        Stream.concat(all, held([], gate, [...textParts("t", "slow"), finish()].slice(index, index + 1))),
      Stream.empty
    )
    const { id, model, run } = yield* started(paused)
    yield* model.request
    for (const gate of [one, two, three, four]) {
      yield* untilAsleep(500)
      yield* TestClock.adjust("400 millis")
      if (gate !== undefined) yield* Deferred.succeed(gate, undefined)
    }
    assert.isUndefined(yield* Fiber.join(run))
    const silent = yield* started(Stream.concat(streams(...textParts("t", "a").slice(0, 2)), Stream.never))
    yield* model.request
    yield* untilAsleep(500)
    yield* TestClock.adjust("500 millis")
    assert.strictEqual(yield* Fiber.join(silent.run), "ProviderFailed")
    assert.include((yield* dataOf(silent.id, "session.next.step.failed"))[0]?.error.message, "sent nothing for 500ms")
    assert.strictEqual((yield* dataOf(id, "session.next.step.ended")).length, 1)
  }).pipe(withPolicy({ inactivity: Duration.millis(500) }))
)

it.scoped("TU-12: the whole of an attempt is bounded, and a timeout before any output may be tried again", () =>
  Effect.gen(function* () {
    const { id, model, run } = yield* started(Stream.never, says("second"))
    yield* model.request
    yield* untilAsleep(500)
    yield* TestClock.adjust("500 millis")
    yield* untilAsleep(160, 240)
    yield* TestClock.adjust("240 millis")
    yield* model.request
    assert.isUndefined(yield* Fiber.join(run))
    assert.deepStrictEqual(yield* retries(id), [[1, "the provider took longer than 500ms"]])
  }).pipe(withPolicy({ timeout: Duration.millis(500), retry }))
)

it.scoped("TU-12: an interrupt while a retry waits ends the turn", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const { id, model, run } = yield* started(overloaded, says("never"))
    yield* model.request
    yield* sessions.interrupt(id)
    assert.strictEqual(yield* Fiber.join(run), "RunInterrupted")
    assert.strictEqual(yield* model.pending, 0)
    assert.strictEqual((yield* eventsOf(id)).at(-1)?.type, "session.next.activity.settled")
  }).pipe(withPolicy({ retry }))
)
