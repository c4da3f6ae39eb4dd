/** Where the bytes of a database are, for each place of a log. Spec: ST-50..ST-52 in specs/storage.md. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, type Scope, Struct } from "effect"
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import type { Stats } from "../../../packages/log/src/domain/StoreStats.ts"
import { EventLog, type SessionNotFound } from "../../../packages/log/src/log/EventLog.ts"
import { isPostgres } from "../../../packages/log/src/storage/Dialect.ts"
import type { LogLayer } from "../../support/Database.ts"
import { begin, readAll, renamed, session } from "../../support/Logs.ts"
import { begun, pruned } from "../../support/Pruning.ts"

/** A new log, and what measures it while nobody writes. */
export interface Measured {
  readonly log: LogLayer
  readonly stats: (options: {
    readonly sessionID?: SessionID
    readonly sample?: number
    readonly exact?: boolean
  }) => Effect.Effect<Stats, { readonly _tag: string } | SessionNotFound>
}

/** The bytes of a payload as the log stores it. */
const stored = (data: unknown): number => Buffer.byteLength(JSON.stringify(data))

const payloads = (events: ReadonlyArray<{ readonly data: unknown }>): number =>
  events.reduce((sum, { data }) => sum + stored(data), 0)

export const measuring = (place: Effect.Effect<Measured, never, Scope.Scope>) => {
  it.scopedLive("ST-50: bytes by type, day and session add up to the payloads", () =>
    Effect.gen(function* () {
      const { log: layer, stats } = yield* place
      const [small, large, gone] = [session(), session(), session()]
      yield* Effect.gen(function* () {
        const log = yield* EventLog
        yield* begin(small, 2)
        yield* begin(large)
        yield* log.append(large, [renamed("ü".repeat(40_000)), renamed("y")])
        yield* begin(gone, 30)
        yield* log.remove(gone)
        const events = [...(yield* readAll(small)), ...(yield* readAll(large))]
        const bytes = payloads(events)
        const found = yield* stats({})
        assert.deepInclude(found, { sessions: 2, events: events.length, bytes, sampled: false, contentBytes: 0 })
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
        assert.include(tables.map(Struct.get("table")), "session")
        const sum = tables.reduce((sum, { bytes }) => sum + bytes, 0)
        assert.isAtMost(sum, found.fileBytes)
        assert.isAbove(sum, found.fileBytes / 2)
        assert.isAtLeast(found.freeBytes ?? -1, 0)
      }).pipe(Effect.provide(layer))
    })
  )

  it.scopedLive(
    "ST-51: of one session only its events and blocks are counted; a session that does not exist is SessionNotFound",
    () =>
      Effect.gen(function* () {
        const { log, stats } = yield* place
        const [one, other] = [session(), session()]
        yield* Effect.gen(function* () {
          yield* begun(other, 9)
          yield* begun(one, 3)
          yield* pruned(one)
          const left = (yield* stats({ sessionID: one })).contentBytes
          assert.isAbove(left, 0)
          yield* pruned(other)
          const found = yield* stats({ sessionID: one })
          assert.strictEqual(found.contentBytes, left)
          assert.isAbove((yield* stats({})).contentBytes, left)
          const sql = yield* SqlClient.SqlClient
          const rows = yield* sql<{ readonly n: number; readonly bytes: number | null }>`
            SELECT count(*) AS n, sum(${sql.literal(isPostgres(sql) ? "octet_length(data::text)" : "octet_length(data)")})
            AS bytes FROM event WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${one})`
          assert.deepInclude(found, {
            sessions: 1,
            events: rows[0]?.n ?? 0,
            bytes: rows[0]?.bytes ?? 0,
            sampled: false
          })
          assert.isUndefined(found.tables)
          assert.isAtMost(found.largest.length, 1)
          const refused = yield* Effect.flip(stats({ sessionID: session() }))
          assert.strictEqual(refused._tag, "SessionNotFound")
        }).pipe(Effect.provide(log))
      })
  )

  it.scopedLive(
    "ST-52: of more events than the bound a sample is read, whose estimates are near the exact numbers",
    () =>
      Effect.gen(function* () {
        const { log, stats } = yield* place
        yield* Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          yield* begin(session(), 1)
          // Rows as the log stores them, but many at once: the numbers need no valid checksums.
          yield* sql`WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
            INSERT INTO event (position, session, seq, type, created, checksum, data)
            SELECT e.position + n.i - 1, e.session, n.i, e.type, e.created, 0, e.data
            FROM n CROSS JOIN event e WHERE e.seq = 1`
          const [sampled, exact] = [yield* stats({ sample: 1_000 }), yield* stats({ sample: 1_000, exact: true })]
          assert.deepStrictEqual([sampled.sampled, exact.sampled, exact.events], [true, false, 30_001])
          for (const [one, other] of [
            [sampled.events, exact.events],
            [sampled.bytes, exact.bytes]
          ] as const) {
            assert.isBelow(Math.abs(one - other) / other, 0.05)
          }
        }).pipe(Effect.provide(log))
      })
  )
}
