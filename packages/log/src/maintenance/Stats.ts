/**
 * Measures where a database's bytes are: by table, type of event, session and day. It reads one snapshot and writes
 * nothing; of a large database it reads a sample. Spec: ST-50..ST-52.
 *
 * @module @daybook/log/maintenance/Stats
 */
import { statSync } from "node:fs"
import { Effect, Schema } from "effect"
import type { Stats } from "../domain/StoreStats.ts"
import { SessionNotFound } from "../log/EventLog.ts"
import type * as Connection from "../storage/Connection.ts"
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

const bySize = <A extends Sum>(items: ReadonlyArray<A>): ReadonlyArray<A> => items.toSorted((a, b) => b.bytes - a.bytes)

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
  { days, sessions, types }: Sums
): Omit<Stats, "sampled" | "tables"> => {
  const total = [...types.values()].reduce(
    (sum, { bytes, events }) => ({ events: sum.events + events, bytes: sum.bytes + bytes }),
    {
      events: 0,
      bytes: 0
    }
  )
  const pageSize = numberOf(db, "PRAGMA page_size")
  const fileBytes = numberOf(db, "PRAGMA page_count") * pageSize
  const content = "SELECT sum(octet_length(packed) + coalesce(octet_length(prompts), 0)) FROM content"
  const largest = bySize([...sessions].map(([key, sum]) => ({ key, ...sum }))).slice(0, shownSessions)
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
    types: bySize([...types].map(([type, sum]) => ({ type: typeNamed(db, type), ...sum }))),
    days: [...days]
      .toSorted(([a], [b]) => b - a)
      .slice(0, shownDays)
      .map(([day, sum]) => ({ day: new Date(day * dayMs).toISOString().slice(0, 10), ...sum })),
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
