/** Ownership: EX-O1..EX-O6 (WK-12, CO-6). Two contexts on one file stand for two processes; time is the TestClock's. */
import { ActivityID, draft, EventLog, SessionOwner, Sessions, type OwnerToken, type SessionID } from "@daybook/core"
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { type Context, Effect, Exit, Fiber, Option, Scope, TestClock, TestServices } from "effect"
import { hostname } from "node:os"
import { join } from "node:path"
import { newSession, open, say, temporaryFolder, type Opened } from "../support/Harness.ts"

const two = Effect.gen(function* () {
  const filename = join(yield* temporaryFolder, "daybook.db")
  // What runs in the background of a process keeps the machine's time: only leases are under test.
  const live = TestServices.provideLive(open({ filename }))
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

it.scoped("EX-O1: one owner at a time; it lets go when its scope closes, and the epoch grows", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
    const scope = yield* Scope.make()
    const first = yield* Scope.extend((yield* owners(one)).acquireNow(id), scope)
    const busy = yield* Effect.flip((yield* owners(other)).acquireNow(id))
    assert.deepInclude(busy, { _tag: "SessionBusy", sessionID: id, ownerID: first.token.ownerID })
    assert.isTrue(yield* (yield* owners(one)).isOwned(id))
    assert.isTrue(Option.isNone(yield* (yield* owners(one)).foreign(id)))
    assert.deepStrictEqual(yield* (yield* owners(other)).foreign(id), Option.some(first.token))
    yield* Scope.close(scope, Exit.void)
    assert.isFalse(yield* (yield* owners(other)).isOwned(id))
    const second = yield* (yield* owners(other)).acquireNow(id)
    assert.isAbove(second.token.epoch, first.token.epoch)
  })
)

it.scoped("EX-O2: a lease that is not renewed ends after fifteen seconds, and not before", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
    // Nobody runs `stopRequested`: this owner is stopped.
    yield* (yield* owners(one)).acquireNow(id)
    yield* TestClock.adjust("14999 millis")
    assert.strictEqual((yield* Effect.flip((yield* owners(other)).acquireNow(id)))._tag, "SessionBusy")
    yield* TestClock.adjust("1 millis")
    yield* (yield* owners(other)).acquireNow(id)
  })
)

it.scoped("EX-O2: an owner at work renews, and keeps the session for as long as it works", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
    const mine = yield* (yield* owners(one)).acquireNow(id)
    yield* Effect.forkScoped(mine.stopRequested)
    for (let second = 0; second < 20; second += 1) yield* TestClock.adjust("1 second")
    assert.strictEqual((yield* Effect.flip((yield* owners(other)).acquireNow(id)))._tag, "SessionBusy")
    yield* write(one, id, mine.token)
  })
)

it.scoped("WK-12: an owner that wakes up after its lease is refused inside the append, and learns that it lost", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
    const stale = yield* (yield* owners(one)).acquireNow(id)
    yield* TestClock.adjust("15 seconds")
    const fresh = yield* (yield* owners(other)).acquireNow(id)
    const log = yield* Effect.provide(EventLog, one)
    const before = yield* log.latest(id)
    assert.deepInclude(yield* Effect.flip(write(one, id, stale.token)), { _tag: "OwnerLost", ...stale.token })
    assert.strictEqual(yield* log.latest(id), before)
    assert.strictEqual((yield* Effect.provide(Sessions, one).pipe(Effect.flatMap((s) => s.get(id)))).title, undefined)
    const told = yield* Effect.fork(stale.stopRequested)
    yield* TestClock.adjust("1 second")
    assert.strictEqual((yield* Effect.flip(Fiber.join(told)))._tag, "OwnerLost")
    yield* write(other, id, fresh.token)
  })
)

it.scoped("WK-12: letting go late does not take the session from the owner that came after", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
    const scope = yield* Scope.make()
    yield* Scope.extend((yield* owners(one)).acquireNow(id), scope)
    yield* TestClock.adjust("15 seconds")
    const fresh = yield* (yield* owners(other)).acquireNow(id)
    yield* Scope.close(scope, Exit.void)
    yield* write(other, id, fresh.token)
    assert.strictEqual((yield* Effect.flip((yield* owners(one)).acquireNow(id)))._tag, "SessionBusy")
  })
)

it.scoped("EX-O3: a process of this machine that is gone owns nothing, whatever its lease says", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
    const sql = yield* Effect.provide(SqlClient.SqlClient, one)
    // No process has this id: it is above every limit of the system's.
    yield* sql`UPDATE event_sequence SET owner_id = ${`${hostname()}/4194999/abc`}, lease_until = 9e12, owner_epoch = 7`
    assert.isFalse(yield* (yield* owners(other)).isOwned(id))
    assert.strictEqual((yield* (yield* owners(other)).acquireNow(id)).token.epoch, 8)
    yield* sql`UPDATE event_sequence SET owner_id = 'elsewhere.example/1/abc', lease_until = 9e12`
    assert.strictEqual((yield* Effect.flip((yield* owners(other)).acquireNow(id)))._tag, "SessionBusy")
  })
)

it.scoped("EX-O4: who waits for a session gets it when it is free", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
    const scope = yield* Scope.make()
    yield* Scope.extend((yield* owners(one)).acquireNow(id), scope)
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
    const mine = yield* Scope.extend((yield* owners(one)).acquireNow(id), scope)
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
    const first = yield* Scope.extend((yield* owners(one)).acquireNow(id), scope)
    const stopped = yield* Effect.fork(first.stopRequested)
    const asked = yield* Effect.fork((yield* owners(other)).requestStop(id, first.token))
    yield* TestClock.adjust("2 seconds")
    yield* Fiber.join(stopped)
    yield* Scope.close(scope, Exit.void)
    yield* TestClock.adjust("1 second")
    yield* Fiber.join(asked)
    const second = yield* (yield* owners(one)).acquireNow(id)
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

it.scoped("EX-O5: a request for an activity names it, and is waited for only until that one has ended", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
    const activityID = ActivityID.make("act_named")
    const mine = yield* (yield* owners(one)).acquireNow(id)
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
    assert.isTrue(yield* (yield* owners(other)).isOwned(id))
  })
)

it.scoped("EX-O5: a request for one activity takes the place of none for all, nor one for what has ended of any", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
    const [first, second] = [ActivityID.make("act_first"), ActivityID.make("act_second")]
    const mine = yield* (yield* owners(one)).acquireNow(id)
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
    yield* (yield* owners(one)).acquireNow(id)
    const input = yield* Effect.provide(say(id, "hi", { resume: false }), other)
    assert.strictEqual(input.admittedSeq, 1)
  })
)
