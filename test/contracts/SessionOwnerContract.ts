/**
 * One owner per session (EX-O1..EX-O9, WK-12). Two contexts on one store simulate two processes; time is the
 * `TestClock`'s.
 */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Option, Scope, TestClock } from "effect"
import { SessionOwner } from "../../packages/log/src/coordination/SessionOwner.ts"
import { ActivityID, type SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog, type OwnerToken } from "../../packages/log/src/log/EventLog.ts"
import { withTimersStopped, withWallClock } from "./Clocks.ts"
import { begin, session } from "./Samples.ts"

type Process = Context.Context<SessionOwner | EventLog>

/** One implementation of `SessionOwner`. */
export interface OwnerStore<E> {
  /** For the titles. */
  readonly name: string
  /**
   * Two processes on one new, empty store, with leases of 3,000 ms. What else runs in their background must use the live
   * clock.
   */
  readonly two: Effect.Effect<{ readonly one: Process; readonly other: Process }, E, Scope.Scope>
}

const owners = (process: Process) => Effect.provide(SessionOwner, process)
const write = (process: Process, id: SessionID, owner: OwnerToken) =>
  Context.get(process, EventLog).append(id, [draft("session.next.renamed", { title: "mine" })], { owner })

/** A moment after which every owner has renewed. */
const aRenewal = TestClock.adjust("500 millis")

const busy = (process: Process, id: SessionID) =>
  Effect.gen(function* () {
    const asked = yield* Effect.fork(Effect.flip(Effect.scoped((yield* owners(process)).acquireUnlessBusy(id))))
    yield* aRenewal
    return yield* Fiber.join(asked)
  })

/** Owns the session as a process that was stopped does: it renews nothing. */
const acquireStopped = (process: Process, id: SessionID) =>
  Effect.flatMap(owners(process), (owner) => withTimersStopped(owner.acquire(id)))

/** Waits for the session, which is there only after so much time and not before. */
const takenAfter = (process: Process, id: SessionID, millis: number) =>
  Effect.gen(function* () {
    const taking = yield* Effect.forkScoped((yield* owners(process)).acquire(id))
    yield* TestClock.adjust(`${millis - 1} millis`)
    assert.isTrue(Option.isNone(yield* Fiber.poll(taking)))
    yield* TestClock.adjust("101 millis")
    return yield* Fiber.join(taking)
  })

/** The activity as the log has it while it runs. */
const started = (process: Process, id: SessionID, activityID: ActivityID) =>
  Effect.provide(
    Effect.flatMap(EventLog, (log) =>
      log.append(id, [draft("session.next.activity.started", { activityID, trigger: "queue" })])
    ),
    process
  )

/** Registers every test of the contract of `SessionOwner`. */
export const sessionOwnerContract = <E>({ name, two }: OwnerStore<E>): void => {
  /** Both processes, and a session. */
  const opened = Effect.gen(function* () {
    const processes = yield* two
    const id = session()
    yield* Effect.provide(begin(id), processes.one)
    return { ...processes, id }
  })

  describe(`owners, ${name}`, () => {
    it.scoped("EX-O1: one owner at a time; it lets go when its scope closes, and the epoch grows", () =>
      Effect.gen(function* () {
        const { id, one, other } = yield* opened
        const scope = yield* Scope.make()
        const first = yield* Scope.extend((yield* owners(one)).acquire(id), scope)
        assert.deepInclude(yield* busy(other, id), { _tag: "SessionBusy", sessionID: id, ownerID: first.token.ownerID })
        assert.deepInclude(yield* busy(one, id), { _tag: "SessionBusy" })
        assert.isTrue(yield* (yield* owners(one)).isOwned(id))
        assert.isTrue(Option.isNone(yield* (yield* owners(one)).foreign(id)))
        assert.deepStrictEqual(yield* (yield* owners(other)).foreign(id), Option.some(first.token))
        yield* Scope.close(scope, Exit.void)
        assert.isFalse(yield* (yield* owners(other)).isOwned(id))
        const second = yield* (yield* owners(other)).acquire(id)
        assert.isAbove(second.token.epoch, first.token.epoch)
      })
    )

    it.scoped(
      "EX-O2: an owner that renews nothing is replaced after its whole lease was observed, and not before",
      () =>
        Effect.gen(function* () {
          const { id, one, other } = yield* opened
          const stale = yield* acquireStopped(one, id)
          // However long it was silent before anyone looked: only what was seen counts.
          yield* TestClock.adjust("1 hour")
          assert.isAbove((yield* takenAfter(other, id, 3_000)).token.epoch, stale.token.epoch)
        })
    )

    it.scoped("EX-821: what an owner hands over is said to the next owner, once, and the epoch grows", () =>
      Effect.gen(function* () {
        const { id, one, other } = yield* opened
        const activityID = ActivityID.make("act_over")
        yield* started(one, id, activityID)
        const epoch = yield* Effect.scoped(
          Effect.gen(function* () {
            const { handOver, handed, token } = yield* (yield* owners(one)).acquire(id)
            assert.isUndefined(handed)
            yield* handOver({ activityID, turns: 3 })
            return token.epoch
          })
        )
        assert.deepStrictEqual(yield* (yield* owners(other)).handedOver, [id])
        assert.isTrue(yield* (yield* owners(other)).isOwned(id))
        const next = yield* Effect.scoped((yield* owners(other)).acquire(id))
        assert.deepStrictEqual(next.handed, { activityID, turns: 3 })
        assert.isAbove(next.token.epoch, epoch)
        assert.deepStrictEqual(yield* (yield* owners(one)).handedOver, [])
        assert.isUndefined((yield* Effect.scoped((yield* owners(one)).acquire(id))).handed)
      })
    )

    it.scoped("CU-53: an owner that fails hands on what was handed over to it, until its activity has begun", () =>
      Effect.gen(function* () {
        const { id, one, other } = yield* opened
        const next = { activityID: ActivityID.make("act_over"), turns: 3 }
        yield* started(one, id, next.activityID)
        yield* Effect.scoped(Effect.flatMap((yield* owners(one)).acquire(id), ({ handOver }) => handOver(next)))
        const acquireOther = (yield* owners(other)).acquire(id)
        yield* Effect.exit(Effect.scoped(Effect.zipRight(acquireOther, Effect.interrupt)))
        assert.deepStrictEqual(yield* (yield* owners(one)).handedOver, [id])
        const failing = Effect.flatMap(acquireOther, ({ begun, handed }) => {
          begun()
          return Effect.fail(handed)
        })
        assert.deepStrictEqual(yield* Effect.flip(Effect.scoped(failing)), next)
        assert.deepStrictEqual(yield* (yield* owners(one)).handedOver, [])
      })
    )

    it.scoped("EX-827: an owner that was replaced hands nothing over", () =>
      Effect.gen(function* () {
        const { id, one, other } = yield* opened
        const stale = yield* acquireStopped(one, id)
        const next = yield* takenAfter(other, id, 3_000)
        yield* stale.handOver({ activityID: "act_over", turns: 1 })
        yield* write(other, id, next.token)
        assert.deepStrictEqual(yield* (yield* owners(other)).handedOver, [])
      })
    )

    it.scoped("EX-O8: an owner renews until it has let go, its cleanup included, and keeps the session", () =>
      Effect.gen(function* () {
        const { id, one, other } = yield* opened
        const scope = yield* Scope.make()
        const mine = yield* Scope.extend((yield* owners(one)).acquire(id), scope)
        const taking = yield* Effect.forkScoped((yield* owners(other)).acquire(id))
        // Cleanup before the release may take longer than the lease.
        yield* Scope.addFinalizer(scope, Effect.sleep("9 seconds"))
        const closing = yield* Effect.fork(Scope.close(scope, Exit.void))
        yield* TestClock.adjust("8 seconds")
        assert.isTrue(Option.isNone(yield* Fiber.poll(taking)))
        yield* write(one, id, mine.token)
        yield* TestClock.adjust("2 seconds")
        yield* Fiber.join(closing)
        yield* Fiber.join(taking)
      })
    )

    for (const [what, millis] of [
      ["an hour ahead", 3_600_000],
      ["an hour behind", -3_600_000],
      ["a day ahead", 86_400_000]
    ] as const) {
      it.scoped(
        `EX-O2: an owner whose clock is ${what} keeps the session for as long as it renews, and no longer`,
        () =>
          Effect.gen(function* () {
            const { id, one, other } = yield* opened
            yield* Effect.flatMap(owners(one), (owner) => withWallClock(millis)(owner.acquire(id)))
            const taking = yield* Effect.forkScoped((yield* owners(other)).acquire(id))
            yield* TestClock.adjust("5 seconds")
            assert.isTrue(Option.isNone(yield* Fiber.poll(taking)))
            const silent = yield* opened
            yield* Effect.flatMap(owners(silent.one), (owner) =>
              withTimersStopped(withWallClock(millis)(owner.acquire(silent.id)))
            )
            yield* takenAfter(silent.other, silent.id, 3_000)
          })
      )
    }

    it.scoped("EX-O2: a clock that steps while a process waits changes nothing for it", () =>
      Effect.gen(function* () {
        const { id, one, other } = yield* opened
        yield* acquireStopped(one, id)
        const owner = yield* owners(other)
        const early = yield* Effect.forkScoped(withWallClock(3_600_000)(owner.acquire(id)))
        const late = yield* Effect.fork(withWallClock(-3_600_000)(owner.isOwned(id)))
        yield* TestClock.adjust("2900 millis")
        assert.isTrue(Option.isNone(yield* Fiber.poll(early)))
        assert.isTrue(Option.isNone(yield* Fiber.poll(late)))
        yield* TestClock.adjust("300 millis")
        yield* Fiber.join(early)
        yield* Fiber.join(late)
      })
    )

    it.scoped(
      "WK-12: an owner that wakes up after its lease is refused inside the append, and learns that it lost",
      () =>
        Effect.gen(function* () {
          const { id, one, other } = yield* opened
          const stale = yield* acquireStopped(one, id)
          const fresh = yield* takenAfter(other, id, 3_000)
          const log = yield* Effect.provide(EventLog, one)
          const before = yield* log.latest(id)
          assert.deepInclude(yield* Effect.flip(write(one, id, stale.token)), { _tag: "OwnerLost", ...stale.token })
          assert.strictEqual(yield* log.latest(id), before)
          yield* write(other, id, fresh.token)
        })
    )

    it.scoped("WK-12: letting go late does not take the session from the owner that came after", () =>
      Effect.gen(function* () {
        const { id, one, other } = yield* opened
        const scope = yield* Scope.make()
        yield* Scope.extend(acquireStopped(one, id), scope)
        const fresh = yield* takenAfter(other, id, 3_000)
        yield* Scope.close(scope, Exit.void)
        yield* write(other, id, fresh.token)
        assert.strictEqual((yield* busy(one, id))._tag, "SessionBusy")
      })
    )

    it.scoped("EX-O4: who waits for a session gets it when it is free", () =>
      Effect.gen(function* () {
        const { id, one, other } = yield* opened
        const scope = yield* Scope.make()
        yield* Scope.extend((yield* owners(one)).acquire(id), scope)
        const waiting = yield* Effect.fork(Effect.scoped((yield* owners(other)).acquire(id)))
        yield* TestClock.adjust("1 second")
        assert.isTrue(Option.isNone(yield* Fiber.poll(waiting)))
        yield* Scope.close(scope, Exit.void)
        yield* TestClock.adjust("1 second")
        assert.strictEqual((yield* Fiber.join(waiting)).token.epoch, 2)
      })
    )

    it.scoped("EX-O5: asking to stop reaches the owner at its next renewal, and returns when it has let go", () =>
      Effect.gen(function* () {
        const { id, one, other } = yield* opened
        const scope = yield* Scope.make()
        const mine = yield* Scope.extend((yield* owners(one)).acquire(id), scope)
        const working = yield* Effect.fork(Effect.zipRight(mine.stopRequested, Scope.close(scope, Exit.void)))
        yield* TestClock.adjust("3 seconds")
        assert.isTrue(Option.isNone(yield* Fiber.poll(working)))
        const asked = yield* Effect.fork((yield* owners(other)).requestStop(id, mine.token))
        yield* TestClock.adjust("2 seconds")
        yield* Fiber.join(working)
        yield* Fiber.join(asked)
        assert.isFalse(yield* (yield* owners(other)).isOwned(id))
      })
    )

    it.scoped("EX-O5: a request to stop holds for the epoch it was made for, and no later one", () =>
      Effect.gen(function* () {
        const { id, one, other } = yield* opened
        const scope = yield* Scope.make()
        const first = yield* Scope.extend((yield* owners(one)).acquire(id), scope)
        const stopped = yield* Effect.fork(first.stopRequested)
        const asked = yield* Effect.fork((yield* owners(other)).requestStop(id, first.token))
        yield* TestClock.adjust("2 seconds")
        yield* Fiber.join(stopped)
        yield* Scope.close(scope, Exit.void)
        yield* TestClock.adjust("1 second")
        yield* Fiber.join(asked)
        const second = yield* (yield* owners(one)).acquire(id)
        const working = yield* Effect.fork(second.stopRequested)
        // For an epoch that has passed there is nobody to ask.
        yield* (yield* owners(other)).requestStop(id, first.token)
        yield* TestClock.adjust("5 seconds")
        assert.isTrue(Option.isNone(yield* Fiber.poll(working)))
      })
    )

    it.scoped("EX-O9, EX-O5: a request for an activity names it, and is waited for only until that one has ended", () =>
      Effect.gen(function* () {
        const { id, one, other } = yield* opened
        const activityID = ActivityID.make("act_named")
        const mine = yield* (yield* owners(one)).acquire(id)
        yield* started(one, id, activityID)
        const told = yield* Effect.fork(mine.stopRequested)
        const asked = yield* Effect.fork((yield* owners(other)).requestStop(id, mine.token, activityID))
        yield* TestClock.adjust("2 seconds")
        assert.strictEqual(yield* Fiber.join(told), activityID)
        assert.isTrue(Option.isNone(yield* Fiber.poll(asked)))
        yield* (yield* Effect.provide(EventLog, one)).append(id, [
          draft("session.next.activity.settled", { activityID, outcome: "interrupted" })
        ])
        yield* TestClock.adjust("1 second")
        yield* Fiber.join(asked)
        const owned = yield* Effect.fork((yield* owners(other)).isOwned(id))
        yield* aRenewal
        assert.isTrue(yield* Fiber.join(owned))
      })
    )

    it.scoped(
      "EX-O9, EX-O5: a request for one activity takes the place of none for all, nor one for what has ended of any",
      () =>
        Effect.gen(function* () {
          const { id, one, other } = yield* opened
          const [first, second] = [ActivityID.make("act_first"), ActivityID.make("act_second")]
          const mine = yield* (yield* owners(one)).acquire(id)
          yield* started(one, id, second)
          const stop = (activityID?: ActivityID) =>
            Effect.flatMap(owners(other), (owner) => Effect.fork(owner.requestStop(id, mine.token, activityID)))
          yield* stop(second)
          yield* TestClock.adjust("100 millis")
          // It has ended: nobody is asked, and the request before it stands.
          yield* Fiber.join(yield* stop(first))
          const told = yield* Effect.fork(mine.stopRequested)
          yield* TestClock.adjust("2 seconds")
          assert.strictEqual(yield* Fiber.join(told), second)
          yield* stop()
          yield* TestClock.adjust("100 millis")
          yield* stop(second)
          yield* TestClock.adjust("100 millis")
          // A request is heard again until its activity has ended.
          const toldAgain = yield* Effect.fork(
            Effect.repeat(mine.stopRequested, { until: (activityID) => activityID === undefined })
          )
          yield* TestClock.adjust("2 seconds")
          yield* Fiber.join(toldAgain)
        })
    )
  })
}
