/** Verification and rebuild, on PostgreSQL. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Chunk, Deferred, Effect, Fiber, Layer, Stream } from "effect"
import { describe } from "vitest"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Doctor from "../../packages/log/src/maintenance/Doctor.ts"
import * as Rebuild from "../../packages/log/src/maintenance/Rebuild.ts"
import * as Stats from "../../packages/log/src/maintenance/Stats.ts"
import * as Space from "../../packages/log/src/retention/Space.ts"
import { immediately } from "../../packages/log/src/storage/Transaction.ts"
import * as Postgres from "../../packages/postgres/src/Postgres.ts"
import { rebuilding } from "../projection/contract/Rebuilding.ts"
import { measuring } from "../storage/contract/Measuring.ts"
import { verification } from "../storage/contract/Verification.ts"
import { begin, renamed, session } from "../support/Logs.ts"
import { lacks } from "../support/Parts.ts"
import { freshSchema, postgresLog, postgresLogAt } from "../support/Postgres.ts"

const findings = Effect.map(Stream.runCollect(Doctor.verify), Chunk.toReadonlyArray)

const damages = [
  [
    "a last position that an event is beyond",
    "UPDATE log_head SET position = 2",
    /the last position is 2, an event has 4/
  ],
  ["a last session that a head is beyond", "UPDATE log_head SET session = 0", /the last session is 0, a head has 1/],
  ["a log without last numbers", "DELETE FROM log_head", /the row of the last position is missing/],
  ["events without a session", "UPDATE event SET session = 77", /rows of event belong to session number 77/],
  [
    "messages without a session",
    "INSERT INTO session_message (id, session, seq, type, time_created) VALUES ('m', 88, 0, 'user', 0)",
    /rows of session_message belong to session number 88/
  ]
] as const

describe.skipIf(lacks("postgres"))("PostgreSQL", () => {
  verification(postgresLog)
  rebuilding(postgresLog)
  measuring(
    Effect.map(freshSchema, (settings) => ({
      log: postgresLogAt(settings),
      stats: (options) => Effect.provide(Stats.serverStats(options), Postgres.layerConnections(settings))
    }))
  )

  it.scopedLive("PG-45, PG-46: what is counted as in use is the size of the tables after VACUUM FULL", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* begin(session(), 1)
      // Payloads of 50 to 5000 bytes, some of them compressed or kept apart, and blocks as a prune makes them.
      yield* sql`INSERT INTO event (position, session, seq, type, created, checksum, data)
        SELECT e.position + n, e.session, 1 + n, e.type, e.created, 0, json_build_object('title',
          (SELECT string_agg(md5((n * 1000 + i)::text), '') FROM generate_series(0, CASE n % 40 WHEN 0 THEN 150 ELSE n % 9 END) i))
        FROM generate_series(1, 20000) n CROSS JOIN event e WHERE e.seq = 1`
      yield* sql`DELETE FROM event WHERE seq > 1 AND seq < 14000`
      yield* sql`INSERT INTO content (session, first, last, packed)
        SELECT 1, 50 * n, 50 * n + 49, decode(string_agg(md5((n * 1000 + i)::text), ''), 'hex')
        FROM generate_series(1, 280) n CROSS JOIN generate_series(1, 100) i GROUP BY n`
      const before = yield* Stats.serverStats({})
      const used = yield* Space.usedBytes(sql)
      assert.strictEqual(before.freeBytes, before.fileBytes - used)
      assert.strictEqual(before.fileBytes, yield* Space.sizeOf(sql))
      // Of the other tables nothing is known: their rows stay.
      yield* Effect.forEach(["event", "content"], (table) => sql.unsafe(`VACUUM (FULL) ${table}`))
      const after = yield* Space.sizeOf(sql)
      assert.isBelow(after, before.fileBytes * 0.7)
      assert.isBelow(Math.abs(used - after) / after, 0.15, `${used} in use, ${after} after VACUUM FULL`)
    }).pipe(Effect.provide(Layer.fresh(postgresLog)))
  )

  for (const [name, statement, what] of damages) {
    it.effect(`PG-40: ${name} is found`, () =>
      Effect.gen(function* () {
        yield* begin(session(), 3)
        yield* (yield* SqlClient.SqlClient).unsafe(statement)
        const [found] = yield* findings
        assert.match(found?.what ?? "", what)
        assert.strictEqual(found?.severity, "error")
      }).pipe(Effect.provide(postgresLog))
    )
  }

  it.effect("PG-41: a rebuild waits for its session's head, and appends of other sessions pass meanwhile", () =>
    Effect.gen(function* () {
      const [log, sql, id, other] = [yield* EventLog, yield* SqlClient.SqlClient, session(), session()]
      yield* begin(id, 3)
      yield* begin(other)
      yield* sql`UPDATE session SET title = 'broken' WHERE id = ${id}`
      const [held, enough] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holding = Effect.all([
        sql`SELECT 1 FROM event_sequence WHERE session_id = ${id} FOR UPDATE`,
        Deferred.succeed(held, undefined),
        Deferred.await(enough)
      ])
      const holder = yield* Effect.fork(immediately(sql)(holding))
      yield* Deferred.await(held)
      const rebuilding = yield* Effect.fork(Rebuild.rebuild(id))
      const waiting = Effect.map(
        sql`SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FROM event_sequence%'`,
        ({ length }) => length > 0
      )
      yield* Effect.repeat(waiting, { until: (is) => is })
      yield* log.append(other, [renamed("meanwhile")])
      yield* Deferred.succeed(enough, undefined)
      yield* Fiber.join(holder)
      yield* Fiber.join(rebuilding)
      assert.deepStrictEqual(yield* findings, [])
    }).pipe(Effect.provide(Layer.fresh(postgresLog)))
  )
})
