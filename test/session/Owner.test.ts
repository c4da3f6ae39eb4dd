/** Ownership: EX-O1..EX-O7 (WK-12, CO-6). Two contexts on one file stand for two processes; time is the TestClock's. */
import { join } from "node:path"
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { type Context, Effect, Exit, FastCheck, Fiber, Option, Scope, TestClock, TestServices } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import * as OwnerRows from "../../packages/log/src/coordination/OwnerRows.ts"
import * as OwnerID from "../../packages/log/src/coordination/OwnerID.ts"
import { SessionOwner } from "../../packages/log/src/coordination/SessionOwner.ts"
import { ActivityID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { newSession, open, type Opened, say, temporaryFolder } from "../support/Harness.ts"
import { giveTo, goneOwner, stranger } from "../support/Owners.ts"
import { lacks } from "../support/Parts.ts"

const two = Effect.gen(function* () {
  const filename = join(yield* temporaryFolder, "daybook.db")
  // What runs in the background of a process keeps the machine's time: only leases are under test.
  const live = TestServices.provideLive(open({ filename, leaseMs: 3_000 }))
  const [one, other] = [yield* live, yield* live]
  const { id } = yield* Effect.provide(newSession(), one)
  return { one, other, id }
})

const owners = (process: Context.Context<Opened>) => Effect.provide(SessionOwner, process)
/** A moment after which every owner has renewed. */
const aRenewal = TestClock.adjust("500 millis")

/** Waits for the session, which is there only after so much time and not before. */
const takenAfter = Effect.fnUntraced(function* (process: Context.Context<Opened>, id: SessionID, millis: number) {
  const taking = yield* Effect.forkScoped((yield* owners(process)).acquire(id))
  yield* TestClock.adjust(`${millis - 1} millis`)
  assert.isTrue(Option.isNone(yield* Fiber.poll(taking)))
  yield* TestClock.adjust("101 millis")
  return yield* Fiber.join(taking)
})

it.scoped("EX-O2: a lease that says nothing sensible is brought into bounds, in the row and where it is chosen", () =>
  Effect.gen(function* () {
    for (const [given, counts] of [
      [-5, 1_000],
      [2_000, 2_000],
      [9e15, 60_000],
      [Number.POSITIVE_INFINITY, 60_000],
      [Number.NaN, 15_000]
    ] as const) {
      assert.strictEqual(OwnerRows.clamp(given), counts)
    }
    const { id, other } = yield* two
    const sql = yield* Effect.provide(SqlClient.SqlClient, other)
    yield* sql`UPDATE event_sequence SET owner_id = ${stranger}, lease_until = 9e15, lease_ms = 0`
    yield* takenAfter(other, id, 1_000)
  })
)

const look = FastCheck.record({
  gapMs: FastCheck.integer({ min: 0, max: 40_000 }),
  renews: FastCheck.boolean(),
  working: FastCheck.boolean()
})

it.prop(
  "EX-O2, EX-402: silence is what was seen of it: a look adds two intervals at most, none at an owner at work, and a renewal begins anew",
  [FastCheck.array(look, { maxLength: 60 })],
  ([looks]) => {
    let at = 0n
    let beat = 0
    let expected = 0
    let seen = OwnerRows.observe(undefined, { sign: "0", at, working: false })
    for (const { gapMs, renews, working } of looks) {
      at += BigInt(gapMs) * 1_000_000n
      if (renews) beat += 1
      expected = renews ? 0 : expected + (working ? 0 : Math.min(gapMs, 200))
      seen = OwnerRows.observe(seen, { sign: String(beat), at, working })
      assert.strictEqual(seen.silentMs, expected)
    }
  }
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

it.effect.skipIf(lacks("linux"))("EX-O3: a process id that another process has by now is no owner's", () =>
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

it.scoped("EX-O14: the silence that one wait of a process saw counts for its next one", () =>
  Effect.gen(function* () {
    const { id, other } = yield* two
    const sql = yield* Effect.provide(SqlClient.SqlClient, other)
    yield* sql`UPDATE event_sequence SET owner_id = ${stranger}, lease_until = 9e15, lease_ms = 3000, owner_epoch = 7`
    const asked = yield* Effect.fork((yield* owners(other)).isOwned(id))
    yield* TestClock.adjust("3100 millis")
    assert.isFalse(yield* Fiber.join(asked))
    assert.strictEqual((yield* (yield* owners(other)).acquireUnlessBusy(id)).token.epoch, 8)
  })
)

it.scoped("EX-E10: what a silent owner left is settled after one lease of silence", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
    const started = draft("session.next.activity.started", { activityID: ActivityID.make("act_1"), trigger: "queue" })
    yield* Effect.provide(
      Effect.flatMap(EventLog, (log) => log.append(id, [started])),
      one
    )
    const sql = yield* Effect.provide(SqlClient.SqlClient, one)
    yield* sql`UPDATE event_sequence SET owner_id = ${stranger}, lease_ms = 3000`
    const settling = yield* Effect.fork(
      Effect.provide(
        Effect.flatMap(Sessions, (sessions) => sessions.settle(id)),
        other
      )
    )
    yield* TestClock.adjust("2900 millis")
    assert.isTrue(Option.isNone(yield* Fiber.poll(settling)))
    yield* TestClock.adjust("200 millis")
    assert.isTrue(yield* Fiber.join(settling))
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
