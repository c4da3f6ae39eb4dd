/** The contract `Measuring.ts`, on a file, and the file's own size. */
import { statSync } from "node:fs"
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Stats from "../../packages/log/src/maintenance/Stats.ts"
import { logAt, temporaryDatabase } from "../support/Database.ts"
import { begin, session } from "../support/Logs.ts"
import { measuring } from "./contract/Measuring.ts"

measuring(
  Effect.map(temporaryDatabase, (database) => ({
    log: logAt(database),
    stats: (options) => Stats.stats({ database, ...options })
  }))
)

it.scopedLive("ST-50: tables and free pages add up to the file", () =>
  Effect.gen(function* () {
    const database = yield* temporaryDatabase
    const pages = yield* Effect.gen(function* () {
      const [log, sql, gone] = [yield* EventLog, yield* SqlClient.SqlClient, session()]
      yield* begin(session(), 200)
      yield* begin(gone, 300)
      yield* log.remove(gone)
      yield* sql`PRAGMA wal_checkpoint(TRUNCATE)`
      const [row] = yield* sql<{ readonly n: number }>`SELECT page_count AS n FROM pragma_page_count`
      return row?.n ?? 0
    }).pipe(Effect.provide(logAt(database)))
    const { fileBytes, freeBytes = 0, tables = [], walBytes } = yield* Stats.stats({ database })
    assert.deepStrictEqual([fileBytes, fileBytes, walBytes], [pages * 4096, statSync(database).size, 0])
    assert.isAbove(freeBytes, 0)
    assert.deepStrictEqual(tables[0]?.table, "event")
    // Only the pages that hold the map of moved pages belong to no table.
    const rest = fileBytes - freeBytes - tables.reduce((sum, table) => sum + table.bytes, 0)
    assert.isTrue(rest >= 0 && rest <= 4096 * Math.ceil(pages / 800), `${rest}`)
  })
)
