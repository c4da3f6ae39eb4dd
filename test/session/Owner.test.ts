/** Ownership: EX-O1..EX-O7 (WK-12, CO-6). Two contexts on one file stand for two processes; time is the TestClock's. */
import { join } from "node:path"
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { type Context, Effect, Exit, FastCheck, Fiber, Option, Scope, TestClock, TestServices } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import * as Lease from "../../packages/log/src/coordination/Lease.ts"
import * as OwnerID from "../../packages/log/src/coordination/OwnerID.ts"
import { SessionOwner } from "../../packages/log/src/coordination/SessionOwner.ts"
import { ActivityID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog, type OwnerToken } from "../../packages/log/src/log/EventLog.ts"
import { newSession, open, type Opened, say, temporaryFolder } from "../support/Harness.ts"
import { giveTo, goneOwner, stranger, withTimersStopped, withWallClock } from "../support/Owners.ts"

const two = Effect.gen(function* () {
  const filename = join(yield* temporaryFolder, "daybook.db")
  // What runs in the background of a process keeps the machine's time: only leases are under test.
  const live = TestServices.provideLive(open({ filename, leaseMs: 3_000 }))
  const [one, other] = [yield* live, yield* live]
  const { id } = yield* Effect.provide(newSession(), one)
  return { one, other, id }
})

const owners = (process: Context.Context<Opened>) => Effect.provide(SessionOwner, process)
const write = (process: Context.Context<Opened>, id: SessionID, owner: OwnerToken) =>
  Effect.provide(
    Effect.flatMap(EventLog, (log) => log.append(id, [draft("session.next.renamed", { title: "mine" })], { owner })),
    process
  )

/** A moment after which every owner has renewed. */
const aRenewal = TestClock.adjust("500 millis")

const busy = (process: Context.Context<Opened>, id: SessionID) =>
  Effect.gen(function* () {
    const asked = yield* Effect.fork(Effect.flip(Effect.scoped((yield* owners(process)).acquireUnlessBusy(id))))
    yield* aRenewal
    return yield* Fiber.join(asked)
  })

/** Owns the session as a process that was stopped does: it renews nothing. */
const acquireStopped = (process: Context.Context<Opened>, id: SessionID) =>
  Effect.flatMap(owners(process), (owner) => withTimersStopped(owner.acquire(id)))

/** Waits for the session, which is there only after so much time and not before. */
const takenAfter = (process: Context.Context<Opened>, id: SessionID, millis: number) =>
  Effect.gen(function* () {
    const taking = yield* Effect.forkScoped((yield* owners(process)).acquire(id))
    yield* TestClock.adjust(`${millis - 1} millis`)
    assert.isTrue(Option.isNone(yield* Fiber.poll(taking)))
    yield* TestClock.adjust("101 millis")
    return yield* Fiber.join(taking)
  })

it.scoped("EX-O1: one owner at a time; it lets go when its scope closes, and the epoch grows", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
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

it.scoped("EX-O2: an owner that renews nothing is replaced after its whole lease was observed, and not before", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
    const stale = yield* acquireStopped(one, id)
    // However long it was silent before anyone looked: only what was seen counts.
    yield* TestClock.adjust("1 hour")
    assert.isAbove((yield* takenAfter(other, id, 3_000)).token.epoch, stale.token.epoch)
  })
)

it.scoped("EX-O8: an owner renews until it has let go, its cleanup included, and keeps the session", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
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
  it.scoped(`EX-O2: an owner whose clock is ${what} keeps the session for as long as it renews, and no longer`, () =>
    Effect.gen(function* () {
      const { id, one, other } = yield* two
      const scope = yield* Scope.make()
      yield* Scope.extend(
        Effect.flatMap(owners(one), (owner) => withWallClock(millis)(owner.acquire(id))),
        scope
      )
      const taking = yield* Effect.forkScoped((yield* owners(other)).acquire(id))
      yield* TestClock.adjust("5 seconds")
      assert.isTrue(Option.isNone(yield* Fiber.poll(taking)))
      yield* Fiber.interrupt(taking)
      yield* Scope.close(scope, Exit.void)
      yield* Effect.flatMap(owners(one), (owner) => withTimersStopped(withWallClock(millis)(owner.acquire(id))))
      yield* takenAfter(other, id, 3_000)
    })
  )
}

it.scoped("EX-O2: a clock that steps while a process waits changes nothing for it", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
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

it.scoped("EX-O2: a lease that says nothing sensible is brought into bounds, in the row and where it is chosen", () =>
  Effect.gen(function* () {
    for (const [given, counts] of [
      [-5, 1_000],
      [2_000, 2_000],
      [9e15, 60_000],
      [Number.POSITIVE_INFINITY, 60_000],
      [Number.NaN, 15_000]
    ] as const) {
      assert.strictEqual(Lease.clamp(given), counts)
    }
    const { id, other } = yield* two
    const sql = yield* Effect.provide(SqlClient.SqlClient, other)
    yield* sql`UPDATE event_sequence SET owner_id = ${stranger}, lease_until = 9e15, lease_ms = 0`
    yield* takenAfter(other, id, 1_000)
  })
)

const look = FastCheck.record({ gapMs: FastCheck.integer({ min: 0, max: 40_000 }), renews: FastCheck.boolean() })

it.prop(
  "EX-O2: silence is what was seen of it: a look adds two intervals at most, and a renewal begins anew",
  [FastCheck.array(look, { maxLength: 60 })],
  ([looks]) => {
    let at = 0n
    let beat = 0
    let expected = 0
    let seen = Lease.observe(undefined, "0", at)
    for (const { gapMs, renews } of looks) {
      at += BigInt(gapMs) * 1_000_000n
      if (renews) beat += 1
      expected = renews ? 0 : expected + Math.min(gapMs, 200)
      seen = Lease.observe(seen, String(beat), at)
      assert.strictEqual(seen.silentMs, expected)
      assert.strictEqual(seen.renewed, beat > 0)
    }
  }
)

it.scoped("WK-12: an owner that wakes up after its lease is refused inside the append, and learns that it lost", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
    const stale = yield* acquireStopped(one, id)
    const fresh = yield* takenAfter(other, id, 3_000)
    const log = yield* Effect.provide(EventLog, one)
    const before = yield* log.latest(id)
    assert.deepInclude(yield* Effect.flip(write(one, id, stale.token)), { _tag: "OwnerLost", ...stale.token })
    assert.strictEqual(yield* log.latest(id), before)
    assert.strictEqual((yield* Effect.provide(Sessions, one).pipe(Effect.flatMap((s) => s.get(id)))).title, undefined)
    yield* write(other, id, fresh.token)
  })
)

it.scoped("WK-12: an owner whose session was taken over learns it with its next renewal", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
    const mine = yield* (yield* owners(one)).acquire(id)
    yield* Effect.provide(giveTo(stranger), other)
    const told = yield* Effect.fork(mine.stopRequested)
    yield* aRenewal
    assert.deepInclude(yield* Effect.flip(Fiber.join(told)), { _tag: "OwnerLost", ...mine.token })
  })
)

it.scoped("WK-12: letting go late does not take the session from the owner that came after", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
    const scope = yield* Scope.make()
    yield* Scope.extend(acquireStopped(one, id), scope)
    const fresh = yield* takenAfter(other, id, 3_000)
    yield* Scope.close(scope, Exit.void)
    yield* write(other, id, fresh.token)
    assert.strictEqual((yield* busy(one, id))._tag, "SessionBusy")
  })
)

it.scoped("EX-O3: a process of this machine that is gone owns nothing, whatever its lease says", () =>
  Effect.gen(function* () {
    const { id, other } = yield* two
    const sql = yield* Effect.provide(SqlClient.SqlClient, other)
    yield* sql`UPDATE event_sequence SET owner_id = ${goneOwner}, lease_until = 9e15, lease_ms = 60000, owner_epoch = 7`
    assert.isFalse(yield* (yield* owners(other)).isOwned(id))
    assert.isTrue(Option.isNone(yield* (yield* owners(other)).foreign(id)))
    assert.strictEqual((yield* (yield* owners(other)).acquireUnlessBusy(id)).token.epoch, 8)
  })
)

const [host = "", pid = "", world = "", start = ""] = OwnerID.make().ownerID().split("/")

for (const [what, ownerID] of [
  ["of another machine", stranger],
  ["of another boot or pid namespace of this machine", `${host}/4194999/another-boot:1:1/1/abc`],
  ["that 0.1.0 named", `${host}/4194999/abc`],
  ["whose id says nothing", "someone"],
  ["whose process id is none", `${host}/-1/${world}/1/abc`],
  ["of this very process and another runtime", `${host}/${pid}/${world}/${start}/abc`]
] as const) {
  it.scoped(`EX-O3: of an owner ${what} only its silence tells`, () =>
    Effect.gen(function* () {
      const { id, other } = yield* two
      yield* Effect.provide(
        Effect.flatMap(
          SqlClient.SqlClient,
          (sql) => sql`UPDATE event_sequence SET owner_id = ${ownerID}, lease_ms = 3000`
        ),
        other
      )
      assert.isTrue(Option.isSome(yield* (yield* owners(other)).foreign(id)))
      yield* takenAfter(other, id, 3_000)
    })
  )
}

it.effect.skipIf(process.platform !== "linux")(
  "EX-O3: a process id that another process has by now is no owner's",
  () =>
    Effect.sync(() => {
      const here = OwnerID.make()
      assert.isFalse(here.isGone([host, pid, world, start, "abc"].join("/")))
      assert.isTrue(here.isGone([host, pid, world, `${Number(start) - 1}`, "abc"].join("/")))
      assert.isFalse(OwnerID.make("another").isGone([host, pid, world, `${Number(start) - 1}`, "abc"].join("/")))
    })
)

it.scoped("EX-O3: a session that this process could not release is free for it", () =>
  Effect.gen(function* () {
    const { id, one } = yield* two
    const scope = yield* Scope.make()
    const { token } = yield* Scope.extend((yield* owners(one)).acquire(id), scope)
    yield* Scope.close(scope, Exit.void)
    const sql = yield* Effect.provide(SqlClient.SqlClient, one)
    yield* sql`UPDATE event_sequence SET owner_id = ${token.ownerID}`
    assert.isFalse(yield* (yield* owners(one)).isOwned(id))
    yield* (yield* owners(one)).acquireUnlessBusy(id)
  })
)

it.scoped(
  "EX-O7: whether sessions are owned is known after the next renewals, or a lease of silence, for all at once",
  () =>
    Effect.gen(function* () {
      const { id, one, other } = yield* two
      yield* (yield* owners(one)).acquire(id)
      const others = yield* Effect.forEach(Array.from({ length: 300 }), () => Effect.provide(newSession(), one))
      const [free, silent, gone] = others.map((session) => session.id)
      if (free === undefined || silent === undefined || gone === undefined) return
      const sql = yield* Effect.provide(SqlClient.SqlClient, one)
      yield* sql`UPDATE event_sequence SET owner_id = ${stranger}, lease_ms = 3000
      WHERE session_id NOT IN ${sql.in([id, free])}`
      yield* sql`UPDATE event_sequence SET owner_id = ${goneOwner} WHERE session_id = ${gone}`
      const all = [id, ...others.map((session) => session.id), SessionID.make("ses_nowhere")]
      const asked = yield* Effect.fork((yield* owners(other)).owned(all))
      yield* TestClock.adjust("2900 millis")
      assert.isTrue(Option.isNone(yield* Fiber.poll(asked)))
      yield* TestClock.adjust("200 millis")
      assert.deepStrictEqual([...(yield* Fiber.join(asked))], [id])
    })
)

it.scoped("EX-O4: who waits for a session gets it when it is free", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
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
    const { id, one, other } = yield* two
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
    const { id, one, other } = yield* two
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

/** The activity as the log has it while it runs. */
const started = (process: Context.Context<Opened>, id: SessionID, activityID: ActivityID) =>
  Effect.provide(
    Effect.flatMap(EventLog, (log) =>
      log.append(id, [draft("session.next.activity.started", { activityID, trigger: "queue" })])
    ),
    process
  )

it.scoped("EX-O9, EX-O5: a request for an activity names it, and is waited for only until that one has ended", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
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
      const { id, one, other } = yield* two
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
      const toldAgain = yield* Effect.fork(mine.stopRequested)
      yield* TestClock.adjust("2 seconds")
      assert.isUndefined(yield* Fiber.join(toldAgain))
    })
)

it.scoped("EX-O6: admission needs no owner: a prompt is taken while another process works", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
    yield* (yield* owners(one)).acquire(id)
    const input = yield* Effect.provide(say(id, "hi", { resume: false }), other)
    assert.strictEqual(input.admittedSeq, 1)
  })
)
