/**
 * Method: `removeSession` alone is a removal that stopped after its first transaction, as after a kill; each call of
 * `continueRemoval` is one more step.
 */
import { join } from "node:path"
import * as SqlClient from "@effect/sql/SqlClient"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Stream, Struct } from "effect"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { selectByID } from "../../packages/log/src/log/EventRow.ts"
import { continueRemoval, removeSession } from "../../packages/log/src/log/Removals.ts"
import * as Backup from "../../packages/log/src/maintenance/Backup.ts"
import * as Doctor from "../../packages/log/src/maintenance/Doctor.ts"
import * as Stats from "../../packages/log/src/maintenance/Stats.ts"
import { end } from "../contracts/FeedContract.ts"
import * as Database from "../../packages/log/src/storage/Database.ts"
import { logAt, memoryLog, temporaryDatabase } from "../support/Database.ts"
import { admitted, begin, contents, created, foreign, message, readAll, renamed, session } from "../support/Logs.ts"
import { plant, sentence, tracesIn } from "./support/Traces.ts"

/** The sessions in the feed after a position, in order. */
const sessionsInFeed = Effect.fnUntraced(function* (start: number) {
  const log = yield* EventLog
  const found = new Set<SessionID>()
  for (let after = start; ;) {
    const { events, hasMore, position } = yield* log.readFeed({ after })
    for (const { sessionID } of events) found.add(sessionID)
    if (!hasMore) return [...found]
    after = position
  }
})

/** What is stored of removed sessions. */
const left = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly events: number; readonly bytes: number }>`
    SELECT count(e.position) AS events, coalesce(sum(octet_length(e.data)), 0) AS bytes
    FROM event_sequence s LEFT JOIN event e ON e.session = s.session WHERE s.session_id IS NULL GROUP BY s.session`
)

it.effect("LG-60: no reader sees a session while its rows are deleted, and its ids can be used again", () =>
  Effect.gen(function* () {
    const [log, sql] = [yield* EventLog, yield* SqlClient.SqlClient]
    const [id, other, prompt] = [session(), session(), message()]
    yield* begin(other)
    const start = yield* end
    yield* plant(id, other, 120)
    yield* log.append(id, [admitted(prompt)])
    const { incarnation } = yield* log.head(id)
    assert.isTrue(yield* removeSession(sql, id))
    assert.isNotEmpty(yield* left)
    assert.strictEqual((yield* Effect.flip(readAll(id)))._tag, "SessionNotFound")
    assert.deepStrictEqual(yield* sessionsInFeed(start), [other])
    const page = yield* log.readFeed({ after: start, limit: 3 })
    assert.strictEqual(page.events.length, 3)
    assert.deepStrictEqual(yield* Stream.runCollect(Doctor.verify).pipe(Effect.map((found) => [...found])), [])
    assert.deepStrictEqual(
      yield* sql`SELECT 1 FROM events WHERE data LIKE ${`%${sentence}%`} AND session_id IS NOT ${other}`,
      []
    )
    assert.isFalse(yield* log.remove(id))
    const [first] = yield* log.append(id, [created, admitted(prompt), renamed("again")])
    assert.strictEqual(first.seq, 0)
    assert.notStrictEqual((yield* log.head(id)).incarnation, incarnation)
    assert.deepStrictEqual(yield* sessionsInFeed(start), [other, id])
    while (yield* continueRemoval(sql));
    assert.isEmpty(yield* left)
    assert.strictEqual((yield* readAll(id)).length, 3)
    assert.deepStrictEqual(yield* Stream.runCollect(Doctor.verify).pipe(Effect.map((found) => [...found])), [])
    assert.deepStrictEqual((yield* log.removals()).map(Struct.get("sessionID")), [id])
  }).pipe(Effect.provide(memoryLog))
)

it.effect("LG-61: a step deletes at most 1,000 events and 1 MiB of payloads, or one longer payload", () =>
  Effect.gen(function* () {
    const [log, sql, id] = [yield* EventLog, yield* SqlClient.SqlClient, session()]
    yield* begin(id)
    const short = renamed("short")
    const many = Array.from({ length: 499 }, () => short)
    for (let n = 0; n < 5; n++) yield* log.append(id, [short, ...many])
    for (let n = 0; n < 20; n++) yield* log.append(id, [renamed("x".repeat(n === 7 ? 3_000_000 : 300_000))])
    const sizes = [yield* sql`SELECT octet_length(data) AS bytes FROM event ORDER BY seq`].flat()
    const total = { events: sizes.length, bytes: sizes.reduce((sum, { bytes }) => sum + Number(bytes), 0) }
    let before = total
    const steps: Array<typeof total> = []
    assert.isTrue(yield* removeSession(sql, id))
    do {
      const now = (yield* left)[0] ?? { events: 0, bytes: 0 }
      steps.push({ events: before.events - now.events, bytes: before.bytes - now.bytes })
      before = now
    } while (yield* continueRemoval(sql))
    const works = steps.filter(({ events }) => events > 0)
    assert.strictEqual(
      works.reduce((sum, { events }) => sum + events, 0),
      total.events
    )
    for (const { bytes, events } of works) {
      assert.isAtMost(events, 1_000)
      if (events > 1) assert.isAtMost(bytes, 1024 * 1024)
    }
    // Full steps: two and a half thousand short events, then three long ones a step, but for the longest.
    assert.isAtMost(works.length, 12)
  }).pipe(Effect.provide(memoryLog))
)

it.effect("LG-61: a short session is removed in one transaction, with every row", () =>
  Effect.gen(function* () {
    const [sql, id, other] = [yield* SqlClient.SqlClient, session(), session()]
    yield* begin(other, 3)
    const before = yield* contents
    yield* plant(id, id, 10)
    assert.isTrue(yield* removeSession(sql, id))
    assert.deepStrictEqual(yield* contents, before)
  }).pipe(Effect.provide(memoryLog))
)

it.effect("LG-61: an id of a foreign event is taken until the rows of its removed session are deleted", () =>
  Effect.gen(function* () {
    const [log, sql, id, other] = [yield* EventLog, yield* SqlClient.SqlClient, session(), session()]
    const copied = yield* Effect.provide(Effect.zipRight(begin(id, 2), foreign(id)), Layer.fresh(memoryLog))
    yield* begin(other)
    yield* plant(id, other, 120)
    yield* removeSession(sql, id)
    // As if the removed session was replayed from there.
    const [event] = copied
    yield* sql`UPDATE event SET id = ${event?.id ?? ""} WHERE position = (SELECT max(e.position) FROM event e
      JOIN event_sequence s ON s.session = e.session WHERE s.session_id IS NULL)`
    assert.isNull((yield* selectByID(sql, event?.id ?? ""))?.session_id)
    const refused = yield* Effect.flip(log.replay(copied))
    assert.include(refused.message, "being removed")
    while (yield* continueRemoval(sql));
    yield* log.replay(copied)
    assert.strictEqual((yield* readAll(id)).length, copied.length)
  }).pipe(Effect.provide(memoryLog))
)

it.scopedLive("LG-52: a removal that stopped after any step is finished by the next log", () =>
  Effect.gen(function* () {
    for (const steps of [0, 1, 2]) {
      const [filename, id, other] = [yield* temporaryDatabase, session(), session()]
      const folder = join(filename, "..")
      yield* Effect.zipRight(begin(other), plant(id, other, 250)).pipe(Effect.provide(logAt(filename)))
      // Without a log, whose sweep would go on with the removal.
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* removeSession(sql, id)
        for (let n = 0; n < steps; n++) assert.isTrue(yield* continueRemoval(sql))
      }).pipe(Effect.provide(Database.layer({ filename })))
      // After the last step no row is left, but perhaps a copy in the unused bytes of a page.
      if (steps < 2) assert.isNotEmpty(tracesIn(folder))
      yield* Effect.gen(function* () {
        const log = yield* EventLog
        // A removal returns after the sweep of every removal before it.
        const last = session()
        yield* begin(last)
        yield* log.remove(last)
        assert.isEmpty(yield* left)
        assert.deepStrictEqual(tracesIn(folder), {})
        assert.strictEqual((yield* readAll(other)).length, 251)
      }).pipe(Effect.provide(logAt(filename)))
    }
  })
)

it.scopedLive("LG-60: statistics and a copy leave out the session, and the copy's next log deletes its rows", () =>
  Effect.gen(function* () {
    const [database, copied, id, other] = [yield* temporaryDatabase, yield* temporaryDatabase, session(), session()]
    yield* Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* begin(other)
      yield* plant(id, other, 120)
      yield* removeSession(sql, id)
      for (const exact of [true, false]) {
        const { events, largest, sessions } = yield* Stats.stats({ database, exact, sample: 10_000 })
        assert.deepStrictEqual([events, sessions, largest.map(({ sessionID }) => sessionID)], [121, 1, [other]])
      }
      yield* Backup.backup({ database, file: copied, verify: true })
    }).pipe(Effect.provide(logAt(database)))
    yield* Effect.gen(function* () {
      const log = yield* EventLog
      yield* log.remove(other)
      assert.isEmpty(yield* left)
      assert.deepStrictEqual(tracesIn(join(copied, "..")), {})
    }).pipe(Effect.provide(logAt(copied)))
  })
)
