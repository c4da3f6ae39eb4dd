/**
 * Gives free pages back to the file system in small steps, so that nothing waits long for the write lock, and measures
 * the database. Never a full VACUUM: it would copy the file and hold the lock meanwhile. PostgreSQL frees by itself what is
 * deleted. Spec: RT-30..RT-33, PG-44.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect } from "effect"
import { isPostgres } from "../storage/Dialect.ts"
import { immediately, retryBusy, snapshot } from "../storage/Transaction.ts"
import { paced, type Pace } from "./Pace.ts"

export interface Space {
  readonly pageSize: number
  readonly pages: number
  readonly freePages: number
}

const pragma = (sql: SqlClient.SqlClient, name: string): Effect.Effect<number, SqlError.SqlError> =>
  Effect.map(sql.unsafe(`PRAGMA ${name}`).values, (rows) => Number(rows[0]?.[0] ?? 0))

/** Measures the database, including what is still in the write-ahead log. */
export const measure = (sql: SqlClient.SqlClient): Effect.Effect<Space, SqlError.SqlError> =>
  Effect.all({
    pageSize: pragma(sql, "page_size"),
    pages: pragma(sql, "page_count"),
    freePages: pragma(sql, "freelist_count")
  })

/** PostgreSQL's tables with their indexes and long values, the largest first. */
export const tables = (sql: SqlClient.SqlClient) =>
  sql<{ readonly table: string; readonly bytes: number }>`SELECT relname AS "table",
    pg_total_relation_size(oid) AS bytes FROM pg_class
    WHERE relnamespace = to_regnamespace(current_schema()) AND relkind = 'r' ORDER BY bytes DESC, relname`

const sumOf = (found: ReadonlyArray<{ readonly bytes: number }>): number =>
  found.reduce((sum, { bytes }) => sum + bytes, 0)

/** The size of the database: the file, or PostgreSQL's tables with their indexes. */
export const sizeOf = (sql: SqlClient.SqlClient): Effect.Effect<number, SqlError.SqlError> =>
  isPostgres(sql) ? Effect.map(tables(sql), sumOf) : Effect.map(measure(sql), ({ pageSize, pages }) => pages * pageSize)

/** Rows, and the bytes of their long columns as they are stored. */
interface Stored {
  readonly rows: number
  readonly bytes: number
}

/** What a row of `event` or `content` takes in PostgreSQL beside its long columns: its header, numbers and index entries. */
const rowBytes = 136

/** The most that a cut frees in PostgreSQL: its compressed blocks take a part of that. */
export const mostFreed = ({ bytes, events }: { readonly bytes: number; readonly events: number }): number =>
  bytes + events * rowBytes

const storedIn = (sql: SqlClient.SqlClient, table: string, bytes: string): Effect.Effect<Stored, SqlError.SqlError> =>
  Effect.map(
    sql.unsafe<Stored>(`SELECT count(*) AS rows, coalesce(sum(${bytes}), 0) AS bytes FROM ${table}`),
    ([found]) => found ?? { rows: 0, bytes: 0 }
  )

export const storedBlocks = (sql: SqlClient.SqlClient) =>
  storedIn(sql, "content", "pg_column_size(packed) + coalesce(pg_column_size(prompts), 0)")

/** What the tables would take if the space of deleted events were given back. */
export const usedBytesOf = (
  all: ReadonlyArray<{ readonly table: string; readonly bytes: number }>,
  { blocks, events }: { readonly blocks: Stored; readonly events: Stored }
): number =>
  sumOf(all.filter(({ table }) => table !== "event" && table !== "content")) +
  [events, blocks].reduce((sum, { bytes, rows }) => sum + mostFreed({ bytes, events: rows }), 0)

/** Reads in one snapshot that may take longer than a statement otherwise may on PostgreSQL. */
export const unhurried =
  (sql: SqlClient.SqlClient) =>
  <A, E, R>(reads: Effect.Effect<A, E, R>) =>
    snapshot(sql)(Effect.zipRight(sql`SET LOCAL statement_timeout = 0`, reads))

/** The size of the database once its free pages are given back. On PostgreSQL it reads the row of every event. */
export const usedBytes = (sql: SqlClient.SqlClient): Effect.Effect<number, SqlError.SqlError> =>
  isPostgres(sql)
    ? unhurried(sql)(
        Effect.all({
          all: tables(sql),
          events: storedIn(sql, "event", "pg_column_size(data)"),
          blocks: storedBlocks(sql)
        })
      ).pipe(Effect.map(({ all, ...stored }) => usedBytesOf(all, stored)))
    : Effect.map(measure(sql), ({ freePages, pageSize, pages }) => (pages - freePages) * pageSize)

/** Pages per step: each may be moved from the end of the file into a hole. */
const stepPages = 64

/** Steps between two checkpoints: the write-ahead log stays small, and its pages are copied back in small amounts. */
const stepsPerCheckpoint = 4

/** One step. The driver runs the pragma for a single page, so it is repeated in one transaction. */
const giveBack = (sql: SqlClient.SqlClient) =>
  retryBusy(
    immediately(sql)(
      Effect.gen(function* () {
        const free = yield* pragma(sql, "freelist_count")
        for (let page = 0; page < Math.min(stepPages, free); page++) yield* sql`PRAGMA incremental_vacuum(1)`.raw
        // A database whose `auto_vacuum` was changed outside Daybook keeps its free pages.
        return free - (yield* pragma(sql, "freelist_count"))
      })
    )
  )

/** Copies what it can from the write-ahead log into the file, without waiting for readers or writers. */
export const checkpoint = (sql: SqlClient.SqlClient) =>
  isPostgres(sql) ? Effect.void : Effect.asVoid(sql`PRAGMA wal_checkpoint(PASSIVE)`)

/** Gives free pages back, step by step. `progress` gets each step's pages. Interruption stops between steps. */
export const shrink = Effect.fn("Retention.shrink")(function* (
  sql: SqlClient.SqlClient,
  pace: Pace,
  progress: (pages: number) => Effect.Effect<void> = () => Effect.void
) {
  if (isPostgres(sql)) return
  let steps = 0
  for (;;) {
    const freed = yield* paced(pace)(giveBack(sql))
    if (freed === 0) break
    yield* progress(freed)
    if (++steps % stepsPerCheckpoint === 0) yield* paced(pace)(checkpoint(sql))
  }
  if (steps > 0) yield* Effect.ignore(sql`PRAGMA wal_checkpoint(TRUNCATE)`)
})
