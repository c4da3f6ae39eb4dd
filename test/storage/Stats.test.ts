/** Where the bytes are, against what the events and SQLite say. */
import { statSync } from "node:fs"
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Stats from "../../packages/log/src/maintenance/Stats.ts"
import { logAt, temporaryDatabase } from "../support/Database.ts"
import { begin, readAll, renamed, session } from "../support/Logs.ts"

/** The bytes of a payload as the log stores it. */
const stored = (data: unknown): number => Buffer.byteLength(JSON.stringify(data))

it.scopedLive(
  "ST-50: bytes by type, day and session add up to the payloads, and tables and free pages to the file",
  () =>
    Effect.gen(function* () {
      const database = yield* temporaryDatabase
      const [small, large, gone] = [session(), session(), session()]
      const { events, pages } = yield* Effect.gen(function* () {
        const [log, sql] = [yield* EventLog, yield* SqlClient.SqlClient]
        yield* begin(small, 2)
        yield* begin(large)
        yield* log.append(large, [renamed("ü".repeat(40_000)), renamed("y")])
        yield* begin(gone, 300)
        yield* log.remove(gone)
        yield* sql`PRAGMA wal_checkpoint(TRUNCATE)`
        const [row] = yield* sql<{ readonly n: number }>`SELECT page_count AS n FROM pragma_page_count`
        return { events: [...(yield* readAll(small)), ...(yield* readAll(large))], pages: row?.n ?? 0 }
      }).pipe(Effect.provide(logAt(database)))
      const found = yield* Stats.stats({ database })
      const bytes = events.reduce((sum, { data }) => sum + stored(data), 0)
      assert.deepInclude(found, { sessions: 2, events: events.length, bytes, sampled: false, contentBytes: 0 })
      assert.strictEqual(found.fileBytes, pages * 4096)
      assert.strictEqual(found.fileBytes, statSync(database).size)
      assert.isAbove(found.freeBytes, 0)
      for (const parts of [found.types, found.days, found.largest]) {
        assert.deepStrictEqual(
          [parts.reduce((sum, part) => sum + part.events, 0), parts.reduce((sum, part) => sum + part.bytes, 0)],
          [events.length, bytes]
        )
      }
      assert.deepStrictEqual(
        found.types.map(({ events, type }) => [type, events]),
        [
          ["session.next.renamed.1", 4],
          ["session.created.1", 2]
        ]
      )
      assert.deepStrictEqual(
        found.largest.map(({ sessionID, title }) => [sessionID, title]),
        [
          [large, "y"],
          [small, "title 2"]
        ]
      )
      const tables = found.tables ?? []
      assert.deepStrictEqual(tables[0]?.table, "event")
      // Only the pages that hold the map of moved pages belong to no table.
      const rest = found.fileBytes - found.freeBytes - tables.reduce((sum, table) => sum + table.bytes, 0)
      assert.isTrue(rest >= 0 && rest <= 4096 * Math.ceil(pages / 800), `${rest}`)
    })
)

it.scopedLive(
  "ST-51: of one session only its events are counted; a session that does not exist is SessionNotFound",
  () =>
    Effect.gen(function* () {
      const database = yield* temporaryDatabase
      const [one, other] = [session(), session()]
      const events = yield* Effect.provide(
        Effect.zipRight(begin(other, 9), Effect.zipRight(begin(one, 3), readAll(one))),
        logAt(database)
      )
      // A block of compressed events below each floor, of different sizes.
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`INSERT INTO content (session, first, last, prompts, packed)
        SELECT session, 0, 1, zeroblob(4), zeroblob(iif(session_id = ${one}, 70, 500)) FROM event_sequence`
      }).pipe(Effect.provide(logAt(database)))
      assert.strictEqual((yield* Stats.stats({ database })).contentBytes, 70 + 500 + 2 * 4)
      const found = yield* Stats.stats({ database, sessionID: one })
      assert.strictEqual(found.contentBytes, 70 + 4)
      const bytes = events.reduce((sum, { data }) => sum + stored(data), 0)
      assert.deepInclude(found, { sessions: 1, events: 4, bytes, sampled: false })
      assert.isUndefined(found.tables)
      assert.deepStrictEqual(found.largest.map(Struct.get("sessionID")), [one])
      const refused = yield* Effect.flip(Stats.stats({ database, sessionID: session() }))
      assert.strictEqual(refused._tag, "SessionNotFound")
    })
)

it.scopedLive("ST-52: of more events than the bound a sample is read, whose estimates are near the exact numbers", () =>
  Effect.gen(function* () {
    const database = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const id = session()
      yield* begin(id, 1)
      // Rows as the log stores them, but many at once: the numbers need no valid checksums.
      yield* sql`WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
        INSERT INTO event (session, seq, type, created, checksum, data)
        SELECT e.session, n.i, e.type, e.created, 0, e.data FROM n CROSS JOIN event e ON e.seq = 1`
    }).pipe(Effect.provide(logAt(database)))
    const [sampled, exact] = [
      yield* Stats.stats({ database, sample: 1_000 }),
      yield* Stats.stats({ database, exact: true })
    ]
    assert.deepStrictEqual([sampled.sampled, exact.sampled, exact.events], [true, false, 30_001])
    for (const [one, other] of [
      [sampled.events, exact.events],
      [sampled.bytes, exact.bytes]
    ] as const) {
      assert.isBelow(Math.abs(one - other) / other, 0.05)
    }
  })
)
