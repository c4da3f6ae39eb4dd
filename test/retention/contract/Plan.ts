/** Where a session may be cut, how far, and what holds the floor back. Spec: specs/log.md. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Clock, Effect, Stream, TestClock } from "effect"
import { draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import * as Plan from "../../../packages/log/src/retention/Plan.ts"
import * as Retention from "../../../packages/log/src/retention/Retention.ts"
import { isPostgres } from "../../../packages/log/src/storage/Dialect.ts"
import type { LogLayer } from "../../support/Database.ts"
import { admitted, begin, call, created, message, readAll, session, step, storeAs } from "../../support/Logs.ts"
import { begun, cutWithin, fill, turns } from "../../support/Pruning.ts"
import { checkpoint } from "../../support/TurnLogs.ts"

const settled = { type: "session.next.activity.settled", version: 1 }

/** The sequence numbers at which activities ended. */
const ends = (id: Parameters<typeof readAll>[0]) =>
  Effect.map(readAll(id), (events) => events.flatMap(({ seq, type }) => (type === settled.type ? [seq] : [])))

export const planning = (layer: LogLayer) => {
  it.effect("RT-1: a cut is at the end of an activity, the last one within the bounds", () =>
    Effect.gen(function* () {
      const id = session()
      yield* begun(id, 4)
      const [first = 0, second = 0, third = 0, last] = yield* ends(id)
      assert.strictEqual((yield* cutWithin(id)).to, last)
      assert.strictEqual((yield* cutWithin(id, { to: second })).to, second)
      assert.strictEqual((yield* cutWithin(id, { to: third - 1 })).to, second)
      assert.strictEqual((yield* cutWithin(id, { to: first - 1 })).to, -1)
    }).pipe(Effect.provide(layer))
  )

  const messageID = message()
  const open = {
    "a waiting prompt": [admitted(message())],
    "a running activity": [
      draft("session.next.activity.started", { activityID: "act_open" as never, trigger: "resume" })
    ],
    "an open step": [step(messageID)],
    "an open call": call({ messageID, callID: "c", tool: "bash", input: {} }).slice(0, 1),
    "a running shell": [draft("session.next.shell.started", { messageID, callID: "s", command: "sleep" })],
    "a running compaction": [draft("session.next.compaction.started", { messageID, reason: "manual" })]
  }

  for (const [name, drafts] of Object.entries(open)) {
    it(`RT-2: nothing is cut after ${name} until it ends`, () => {
      const names = [...drafts, { type: settled.type }].map(({ type }) => `${type}.1`)
      const states = names.reduce<ReadonlyArray<Plan.Open>>(
        (all, stored) => [...all, Plan.openAfter(all.at(-1) ?? Plan.nothingOpen, stored)],
        []
      )
      const still = name === "a running activity" ? states.at(-2) : states.at(-1)
      assert.isFalse(Plan.isSafe(still ?? Plan.nothingOpen, `${settled.type}.1`))
      assert.isTrue(Plan.isSafe(Plan.nothingOpen, `${settled.type}.1`))
    })
  }

  it.effect("RT-2: a waiting prompt and an event of an unknown type hold every later cut back", () =>
    Effect.gen(function* () {
      const [id, unknown] = [session(), session()]
      const [one = [], two = []] = turns(2)
      yield* fill(id, [[created], one, [admitted(message(), "later")], two])
      assert.strictEqual((yield* cutWithin(id)).to, (yield* ends(id))[0])
      yield* begun(unknown, 3)
      const [first = 0] = yield* ends(unknown)
      yield* storeAs(unknown, first + 2, { type: "session.next.of.tomorrow.1" })
      assert.strictEqual((yield* cutWithin(unknown)).to, first)
    }).pipe(Effect.provide(layer))
  )

  it.effect("RT-3: `to: compaction` cuts at the last end of an activity before the last checkpoint", () =>
    Effect.gen(function* () {
      const id = session()
      const [one = [], two = [], three = []] = turns(3)
      yield* fill(id, [[created], one, two, checkpoint("so far"), three])
      assert.strictEqual((yield* cutWithin(id, { to: "compaction" })).to, (yield* ends(id))[1])
      const plain = session()
      yield* begun(plain, 2)
      assert.strictEqual((yield* cutWithin(plain, { to: "compaction" })).events, 0)
    }).pipe(Effect.provide(layer))
  )

  it.effect("RT-4: `keep` counts from the time of each event, and the longest unused session comes first", () =>
    Effect.gen(function* () {
      const [old, used] = [session("z"), session("a")]
      yield* begun(old, 2)
      yield* begun(used, 2)
      const [last = 0, before = 0] = [(yield* ends(old)).at(-1), (yield* ends(used)).at(-1)]
      yield* TestClock.adjust("10 days")
      yield* fill(used, turns(1))
      const day = 86_400_000
      const plan = (keep: number) =>
        Stream.runCollect(Retention.plan({ keep, holders: () => Effect.succeed([]) })).pipe(
          Effect.map((cuts) => [...cuts].map(({ sessionID, to }) => [sessionID, to] as const))
        )
      assert.deepStrictEqual(yield* plan(5 * day), [
        [old, last],
        [used, before]
      ])
      assert.deepStrictEqual(yield* plan(11 * day), [])
      assert.strictEqual(yield* Clock.currentTimeMillis, 10 * day)
    }).pipe(Effect.provide(layer))
  )

  it.effect("RT-5: a reader holds the floor at or before its cursor, and the cut names it", () =>
    Effect.gen(function* () {
      const id = session()
      yield* begun(id, 4)
      const [, second = 0, third = 0, last = 0] = yield* ends(id)
      const reader = { name: "search", after: third - 1 }
      const cut = yield* cutWithin(id, {}, [reader, { name: "bot", after: last }])
      assert.deepInclude(cut, { to: second, held: [reader] })
      assert.deepInclude(yield* cutWithin(id, {}, [{ name: "bot", after: last }]), { to: last, held: [] })
      assert.deepInclude(yield* cutWithin(id, {}, [{ name: "new", after: -1 }]), { to: -1, events: 0 })
    }).pipe(Effect.provide(layer))
  )

  it.effect("RT-5: a plan counts the events and the bytes of their payloads, and changes nothing", () =>
    Effect.gen(function* () {
      const id = session()
      yield* begun(id, 3)
      yield* begin(session(), 5)
      const log = yield* EventLog
      const events = yield* readAll(id)
      const cuts = yield* Stream.runCollect(Retention.plan({ holders: () => Effect.succeed([]) }))
      const payloads = events.reduce((sum, { data }) => sum + Buffer.byteLength(JSON.stringify(data)), 0)
      const sql = yield* SqlClient.SqlClient
      // PostgreSQL counts what it stores (PG-44): short payloads as they are, each with a length before it.
      const lengths = isPostgres(sql)
        ? yield* sql<{ readonly bytes: number }>`SELECT sum(pg_column_size(data) - octet_length(data::text)) AS bytes
            FROM event WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${id})`
        : [{ bytes: 0 }]
      const bytes = payloads + (lengths[0]?.bytes ?? 0)
      assert.deepStrictEqual(
        [...cuts].map(({ bytes, events, sessionID }) => ({ bytes, events, sessionID })),
        [{ bytes, events: events.length, sessionID: id }]
      )
      assert.deepStrictEqual((yield* log.read({ sessionID: id })).events, events.slice(0, 512))
    }).pipe(Effect.provide(layer))
  )
}
