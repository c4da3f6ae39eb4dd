/**
 * Measures where a database's bytes are: by table, type of event, session and day. It reads one snapshot and writes
 * nothing; of a large database it reads a sample. PostgreSQL sums where the rows are. Spec: ST-50..ST-52, PG-45.
 *
 * @module @daybook/log/maintenance/Stats
 */
import { statSync } from "node:fs"
import type * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import type { Stats } from "../domain/StoreStats.ts"
import { SessionNotFound } from "../log/EventLog.ts"
import { unavailable } from "../log/EventRow.ts"
import * as Space from "../retention/Space.ts"
import type * as Connection from "../storage/Connection.ts"
import { ReadSql } from "../storage/Database.ts"
import * as Dialect from "../storage/Dialect.ts"
import * as EventLoop from "../support/EventLoop.ts"
import { attempt, type BackupFailed, snapshotOf } from "./Backup.ts"

export { DayStats, SessionStats, Stats, TableStats, TypeStats } from "../domain/StoreStats.ts"

export interface StatsOptions {
  readonly database: string
  readonly sessionID?: string | undefined
  /** Reads everything, however large the database is. */
  readonly exact?: boolean
  /** Maximum number of positions to read without `exact`; of more, as many as this are sampled. Default: 500,000. */
  readonly sample?: number
}

const standardSample = 500_000
/** Up to so many bytes, every page is counted. */
const mostBytes = 1024 ** 3

const shownDays = 30
const shownSessions = 10

type Row = readonly [session: number, type: number, created: number, bytes: number]

const isRow = Schema.is(Schema.Tuple(Schema.Number, Schema.Number, Schema.Number, Schema.Number))

/** Reads a single number; 0 for null. */
const numberOf = (db: Connection.Database, text: string, ...parameters: ReadonlyArray<unknown>): number => {
  const value = db
    .prepare(text)
    .pluck()
    .get(...parameters)
  return typeof value === "number" ? value : 0
}

const columns = "e.session, e.type, e.created, octet_length(e.data)"

/** Without the events of sessions whose removal is not finished. */
const shown = "e.session NOT IN (SELECT session FROM event_sequence WHERE session_id IS NULL)"

/** The measured events, and how many each of them represents. */
const measured = (
  db: Connection.Database,
  { exact = false, sample = standardSample }: StatsOptions,
  session: number | undefined
) => {
  if (session !== undefined) {
    const rows = db.prepare(`SELECT ${columns} FROM event e WHERE e.session = ?`).raw()
    return { weight: 1, rows: () => rows.iterate(session) }
  }
  const first = numberOf(db, "SELECT min(position) FROM event")
  const range = numberOf(db, "SELECT max(position) FROM event") - first + 1
  if (exact || range <= sample) {
    const rows = db.prepare(`SELECT ${columns} FROM event e WHERE ${shown}`).raw()
    return { weight: 1, rows: () => rows.iterate() }
  }
  // One position of each stretch, at changing places in it; positions without an event count too.
  const stretch = Math.ceil(range / sample)
  const text = `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE (i + 1) * @stretch < @range)
    SELECT ${columns} FROM n CROSS JOIN event e ON e.position = @first + i * @stretch + (i * 7919) % @stretch
      WHERE ${shown}`
  const rows = db.prepare(text).raw()
  return { weight: stretch, rows: () => rows.iterate({ first, stretch, range }) }
}

type Sum = { events: number; bytes: number }

interface Sums {
  readonly types: ReadonlyMap<number, Sum>
  readonly sessions: ReadonlyMap<number, Sum>
  readonly days: ReadonlyMap<number, Sum>
}

/** The events and bytes of one type, session or day. */
type Part<Key> = { readonly key: Key; readonly events: number; readonly bytes: number }

const partsOf = <Key>(sums: ReadonlyMap<Key, Sum>): ReadonlyArray<Part<Key>> =>
  [...sums].map(([key, { bytes, events }]) => ({ key, events, bytes }))

const add = <Key>(sums: Map<Key, Sum>, key: Key, bytes: number, weight: number): void => {
  const sum = sums.get(key)
  if (sum === undefined) sums.set(key, { events: weight, bytes: bytes * weight })
  else {
    sum.events += weight
    sum.bytes += bytes * weight
  }
}

const dayMs = 24 * 60 * 60 * 1000

/** How long rows are read before the event loop runs: a server measures beside its clients. */
const turnMs = 8

/** Takes rows for a turn; true at their end. */
const turn = (rows: Iterator<unknown>, take: (row: unknown) => void): boolean => {
  const end = performance.now() + turnMs
  do {
    const { done, value } = rows.next()
    if (done === true) return true
    take(value)
  } while (performance.now() < end)
  return false
}

const eachRow = (path: string, query: () => IterableIterator<unknown>, take: (row: unknown) => void) =>
  Effect.acquireUseRelease(
    attempt(path, query),
    (rows) =>
      Effect.repeat(
        Effect.zipLeft(
          attempt(path, () => turn(rows, take)),
          EventLoop.turn
        ),
        { until: (done) => done }
      ),
    (rows) => Effect.sync(() => void rows.return?.())
  )

const sumsOf = (path: string, rows: () => IterableIterator<unknown>, weight: number) => {
  const sums = { types: new Map<number, Sum>(), sessions: new Map<number, Sum>(), days: new Map<number, Sum>() }
  const take = (row: unknown) => {
    if (!isRow(row)) return
    const [session, type, created, bytes]: Row = row
    add(sums.types, type, bytes, weight)
    add(sums.sessions, session, bytes, weight)
    add(sums.days, Math.floor(created / dayMs), bytes, weight)
  }
  return Effect.as(eachRow(path, rows, take), sums)
}

const bySize = <Key>(sums: ReadonlyMap<Key, Sum>): ReadonlyArray<Part<Key>> =>
  partsOf(sums).toSorted((a, b) => b.bytes - a.bytes)

/** What the sums show, without the names of types and sessions. */
const shownOf = ({ days, sessions, types }: Sums) => ({
  total: {
    events: partsOf(types).reduce((sum, { events }) => sum + events, 0),
    bytes: partsOf(types).reduce((sum, { bytes }) => sum + bytes, 0)
  },
  types: bySize(types),
  days: partsOf(days)
    .toSorted((a, b) => b.key - a.key)
    .slice(0, shownDays)
    .map(({ key, ...sum }) => ({ day: new Date(key * dayMs).toISOString().slice(0, 10), ...sum })),
  largest: bySize(sessions).slice(0, shownSessions)
})

const isPage = Schema.is(Schema.Tuple(Schema.String, Schema.Number))
const isObject = Schema.is(Schema.Tuple(Schema.String, Schema.String))

/** The pages of every table and of its indexes. */
const tablesOf = (db: Connection.Database, path: string) => {
  const objects = db.prepare("SELECT name, tbl_name FROM sqlite_master").raw().all().filter(isObject)
  const [tables, sizes] = [new Map(objects), new Map<string, number>()]
  const take = (row: unknown) => {
    if (!isPage(row)) return
    const table = tables.get(row[0]) ?? row[0]
    sizes.set(table, (sizes.get(table) ?? 0) + row[1])
  }
  return Effect.map(
    eachRow(path, () => db.prepare("SELECT name, pgsize FROM dbstat").raw().iterate(), take),
    () => [...sizes].map(([table, bytes]) => ({ table, bytes })).toSorted((a, b) => b.bytes - a.bytes)
  )
}

const Named = Schema.Struct({ sessionID: Schema.String, title: Schema.NullOr(Schema.String) })

const sessionNamed = (db: Connection.Database, session: number) =>
  Schema.decodeUnknownSync(Named)(
    db
      .prepare(
        `SELECT h.session_id AS sessionID, s.title FROM event_sequence h LEFT JOIN session s ON s.id = h.session_id
          WHERE h.session = ?`
      )
      .get(session)
  )

const typeNamed = (db: Connection.Database, type: number): string =>
  String(db.prepare("SELECT name FROM event_type WHERE type = ?").pluck().get(type) ?? "unknown")

const walBytes = (path: string): number => statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0

/** Everything of the report but the tables. */
const countsOf = (
  db: Connection.Database,
  { database }: StatsOptions,
  session: number | undefined,
  sums: Sums
): Omit<Stats, "sampled" | "tables"> => {
  const { days, largest, total, types } = shownOf(sums)
  const pageSize = numberOf(db, "PRAGMA page_size")
  const fileBytes = numberOf(db, "PRAGMA page_count") * pageSize
  const content = "SELECT sum(octet_length(packed) + coalesce(octet_length(prompts), 0)) FROM content"
  return {
    fileBytes,
    walBytes: walBytes(database),
    freeBytes: numberOf(db, "PRAGMA freelist_count") * pageSize,
    sessions:
      session === undefined
        ? numberOf(db, "SELECT count(*) FROM event_sequence WHERE seq >= 0 AND session_id NOTNULL")
        : 1,
    ...total,
    contentBytes: session === undefined ? numberOf(db, content) : numberOf(db, `${content} WHERE session = ?`, session),
    types: types.map(({ key, ...sum }) => ({ type: typeNamed(db, key), ...sum })),
    days,
    largest: largest.map(({ bytes, events, key }) => ({ ...sessionNamed(db, key), events, bytes }))
  }
}

const measure = Effect.fnUntraced(function* (
  db: Connection.Database,
  options: StatsOptions,
  session: number | undefined
): Effect.fn.Return<Stats, BackupFailed> {
  const { database, exact = false } = options
  const { rows, weight } = yield* attempt(database, () => measured(db, options, session))
  const sums = yield* sumsOf(database, rows, weight)
  const counts = yield* attempt(database, () => countsOf(db, options, session, sums))
  const isCounted = session === undefined && (exact || counts.fileBytes <= mostBytes)
  return { ...counts, sampled: weight > 1, ...(isCounted ? { tables: yield* tablesOf(db, database) } : {}) }
})

/** Measures a database, or one session of it. Appends of other processes continue, and so does the event loop. */
export const stats = Effect.fn("Stats.stats")(function* (options: StatsOptions) {
  const { database, sessionID } = options
  const db = yield* snapshotOf(database)
  const session =
    sessionID === undefined
      ? undefined
      : yield* attempt(database, () =>
          numberOf(db, "SELECT session FROM event_sequence WHERE session_id = ? AND seq >= 0", sessionID)
        )
  if (session === 0) return yield* new SessionNotFound({ sessionID: sessionID ?? "" })
  return yield* measure(db, options, session)
}, Effect.scoped)

// PostgreSQL sums where the rows are, and knows the sizes of its tables.

type Sql = SqlClient.SqlClient

/** The events to measure, as a table `e`, and how many each of them represents. */
const measuredThere = Effect.fnUntraced(function* (
  sql: Sql,
  { exact = false, sample = standardSample }: ServerStatsOptions,
  session: number | undefined
) {
  if (session !== undefined) return { weight: 1, from: sql`event e WHERE e.session = ${session}` }
  const [row] = yield* sql<{ readonly first: number; readonly last: number }>`
    SELECT coalesce(min(position), 0) AS first, coalesce(max(position), -1) AS last FROM event`
  const { first, last } = row ?? { first: 0, last: -1 }
  const range = last - first + 1
  if (exact || range <= sample) return { weight: 1, from: sql`event e WHERE ${sql.literal(shown)}` }
  // As in a file: one position of each stretch.
  const stretch = Math.ceil(range / sample)
  const position = `${first} + n.i * ${stretch} + (n.i * 7919) % ${stretch}`
  return {
    weight: stretch,
    from: sql.literal(
      `generate_series(0::bigint, ${Math.floor((range - 1) / stretch)}) AS n (i) JOIN event e ON e.position = ${position}
        WHERE ${shown}`
    )
  }
})

/** The sums of one type, session or day: the others are null. */
interface SumRow extends Sum {
  readonly type: number | null
  readonly session: number | null
  readonly day: number | null
  /** The bytes of the payloads as they are stored. */
  readonly stored: number
}

const sumsThere = Effect.fnUntraced(function* (
  sql: Sql,
  { from, weight }: Effect.Effect.Success<ReturnType<typeof measuredThere>>
) {
  const day = sql.literal(`e.created / ${dayMs}`)
  const rows = yield* sql<SumRow>`SELECT e.type, e.session, ${day} AS day, count(*) AS events,
    sum(${sql.literal(Dialect.bytesOf(sql, "e.data"))}) AS bytes, sum(pg_column_size(e.data)) AS stored
    FROM ${from} GROUP BY GROUPING SETS ((e.type), (e.session), (${day}))`
  const sums = { types: new Map<number, Sum>(), sessions: new Map<number, Sum>(), days: new Map<number, Sum>() }
  let stored = 0
  for (const { bytes, day, events, session, stored: own, type } of rows) {
    const sum = { events: events * weight, bytes: bytes * weight }
    if (type !== null) {
      sums.types.set(type, sum)
      stored += own * weight
    }
    if (session !== null) sums.sessions.set(session, sum)
    if (day !== null) sums.days.set(day, sum)
  }
  return { sums, stored }
})

/** The names of types and sessions. */
const namesThere = Effect.fnUntraced(function* (sql: Sql, sessions: ReadonlyArray<number>) {
  const types = yield* sql<{ readonly type: number; readonly name: string }>`SELECT type, name FROM event_type`
  const named = yield* sql<typeof Named.Type & { readonly session: number }>`
    SELECT h.session, h.session_id AS "sessionID", s.title FROM ${Dialect.numbers(sql, sessions)}
    JOIN event_sequence h ON h.session = j.value LEFT JOIN session s ON s.id = h.session_id`
  return {
    types: new Map(types.map(({ name, type }) => [type, name])),
    sessions: new Map(named.map(({ session, ...name }) => [session, name]))
  }
})

const countThere = (sql: Sql, text: string) =>
  Effect.map(sql.unsafe<{ readonly n: number }>(text), ([row]) => row?.n ?? 0)

const measureThere = Effect.fnUntraced(function* (sql: Sql, options: ServerStatsOptions) {
  const { sessionID } = options
  const [own] =
    sessionID === undefined
      ? []
      : yield* sql<{ readonly session: number }>`
          SELECT session FROM event_sequence WHERE session_id = ${sessionID} AND seq >= 0`
  if (sessionID !== undefined && own === undefined) return yield* new SessionNotFound({ sessionID })
  const session = own?.session
  const events = yield* measuredThere(sql, options, session)
  const { stored, sums } = yield* sumsThere(sql, events)
  const { days, largest, total, types } = shownOf(sums)
  const names = yield* namesThere(
    sql,
    largest.map(({ key }) => key)
  )
  const tables = yield* Space.tables(sql)
  const fileBytes = tables.reduce((sum, { bytes }) => sum + bytes, 0)
  const content = "SELECT coalesce(sum(octet_length(packed) + coalesce(octet_length(prompts), 0)), 0) AS n FROM content"
  const used = Space.usedBytesOf(tables, {
    events: { rows: total.events, bytes: stored },
    blocks: yield* Space.storedBlocks(sql)
  })
  return {
    fileBytes,
    ...(session === undefined ? { freeBytes: Math.max(0, fileBytes - used) } : {}),
    sessions:
      session === undefined
        ? yield* countThere(sql, "SELECT count(*) AS n FROM event_sequence WHERE seq >= 0 AND session_id IS NOT NULL")
        : 1,
    ...total,
    contentBytes: yield* countThere(sql, session === undefined ? content : `${content} WHERE session = ${session}`),
    types: types.map(({ key, ...sum }) => ({ type: names.types.get(key) ?? "unknown", ...sum })),
    days,
    largest: largest.map(({ key, ...sum }) => ({
      ...(names.sessions.get(key) ?? { sessionID: "", title: null }),
      ...sum
    })),
    sampled: events.weight > 1,
    ...(session === undefined ? { tables } : {})
  } satisfies Stats
})

export type ServerStatsOptions = Omit<StatsOptions, "database">

/** `stats` of the log in PostgreSQL whose connections are in the context. Appends continue. */
export const serverStats = Effect.fn("Stats.serverStats")(function* (options: ServerStatsOptions) {
  const sql = yield* ReadSql
  return yield* Effect.catchTag(Space.unhurried(sql)(measureThere(sql, options)), "SqlError", unavailable("measure"))
})
