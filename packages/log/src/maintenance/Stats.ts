/**
 * Measures where a database's bytes are: by table, type of event, session and day. It reads one snapshot and writes
 * nothing; of a large database it reads a sample. Spec: ST-50..ST-52.
 *
 * @module @daybook/log/maintenance/Stats
 */
import { statSync } from "node:fs"
import type Sqlite from "better-sqlite3"
import { Effect, Schema } from "effect"
import { SessionNotFound } from "../log/EventLog.ts"
import { attempt, snapshotOf } from "./Copy.ts"

/** Events, and the bytes of their payloads. */
const Amount = { events: Schema.Int, bytes: Schema.Int }

/** The events of one type. */
export const TypeStats = Schema.Struct({ type: Schema.String, ...Amount })
/** The events of one day (UTC). */
export const DayStats = Schema.Struct({ day: Schema.String, ...Amount })
/** The events of one session. */
export const SessionStats = Schema.Struct({ sessionID: Schema.String, title: Schema.NullOr(Schema.String), ...Amount })
/** A table with its indexes: the bytes of its pages. */
export const TableStats = Schema.Struct({ table: Schema.String, bytes: Schema.Int })

/** Where the bytes are. */
export const Stats = Schema.Struct({
  /** Bytes of the database's file and of its write-ahead log. */
  fileBytes: Schema.Int,
  walBytes: Schema.Int,
  /** Bytes of pages that hold nothing. */
  freeBytes: Schema.Int,
  sessions: Schema.Int,
  ...Amount,
  /** Bytes of the compressed events below the floors. */
  contentBytes: Schema.Int,
  /** The numbers by type, session and day are estimated from a sample. */
  sampled: Schema.Boolean,
  /** The largest first; absent if the whole file would have to be read. */
  tables: Schema.optionalWith(Schema.Array(TableStats), { exact: true }),
  types: Schema.Array(TypeStats),
  /** The last 30 days with events, the newest first. */
  days: Schema.Array(DayStats),
  /** The ten largest sessions. */
  largest: Schema.Array(SessionStats)
})
export type Stats = typeof Stats.Type

/** What to measure. */
export interface StatsOptions {
  readonly database: string
  /** Only this session's events. */
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
const numberOf = (db: Sqlite.Database, text: string, ...parameters: ReadonlyArray<unknown>): number => {
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
  db: Sqlite.Database,
  { exact = false, sample = standardSample }: StatsOptions,
  session: number | undefined
) => {
  if (session !== undefined) {
    return { weight: 1, rows: db.prepare(`SELECT ${columns} FROM event e WHERE e.session = ?`).raw().iterate(session) }
  }
  const first = numberOf(db, "SELECT min(position) FROM event")
  const range = numberOf(db, "SELECT max(position) FROM event") - first + 1
  if (exact || range <= sample) {
    return { weight: 1, rows: db.prepare(`SELECT ${columns} FROM event e WHERE ${shown}`).raw().iterate() }
  }
  // One position of each stretch, at changing places in it; positions without an event count too.
  const stretch = Math.ceil(range / sample)
  const text = `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE (i + 1) * @stretch < @range)
    SELECT ${columns} FROM n CROSS JOIN event e ON e.position = @first + i * @stretch + (i * 7919) % @stretch
      WHERE ${shown}`
  return { weight: stretch, rows: db.prepare(text).raw().iterate({ first, stretch, range }) }
}

interface Sum {
  events: number
  bytes: number
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

/** Sums the rows by type, session and day. */
const sumsOf = (rows: Iterable<unknown>, weight: number) => {
  const [types, sessions, days] = [new Map<number, Sum>(), new Map<number, Sum>(), new Map<number, Sum>()]
  for (const row of rows) {
    if (!isRow(row)) continue
    const [session, type, created, bytes]: Row = row
    add(types, type, bytes, weight)
    add(sessions, session, bytes, weight)
    add(days, Math.floor(created / dayMs), bytes, weight)
  }
  return { types, sessions, days }
}

const bySize = <A extends Sum>(items: ReadonlyArray<A>): ReadonlyArray<A> => items.toSorted((a, b) => b.bytes - a.bytes)

/** The pages of every table and of its indexes. */
const tablesOf = (db: Sqlite.Database) =>
  Schema.decodeUnknownSync(Schema.Array(TableStats))(
    db
      .prepare(
        `SELECT coalesce(m.tbl_name, d.name) AS "table", sum(d.pgsize) AS bytes
          FROM dbstat d LEFT JOIN sqlite_master m ON m.name = d.name WHERE d.aggregate = TRUE
          GROUP BY 1 ORDER BY bytes DESC`
      )
      .all()
  )

const Named = Schema.Struct({ sessionID: Schema.String, title: Schema.NullOr(Schema.String) })

const sessionNamed = (db: Sqlite.Database, session: number) =>
  Schema.decodeUnknownSync(Named)(
    db
      .prepare(
        `SELECT h.session_id AS sessionID, s.title FROM event_sequence h LEFT JOIN session s ON s.id = h.session_id
          WHERE h.session = ?`
      )
      .get(session)
  )

const typeNamed = (db: Sqlite.Database, type: number): string =>
  String(db.prepare("SELECT name FROM event_type WHERE type = ?").pluck().get(type) ?? "unknown")

const walBytes = (path: string): number => statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0

const measure = (db: Sqlite.Database, options: StatsOptions, session: number | undefined): Stats => {
  const { rows, weight } = measured(db, options, session)
  const { days, sessions, types } = sumsOf(rows, weight)
  const total = [...types.values()].reduce(
    (sum, { bytes, events }) => ({ events: sum.events + events, bytes: sum.bytes + bytes }),
    {
      events: 0,
      bytes: 0
    }
  )
  const pageSize = numberOf(db, "PRAGMA page_size")
  const fileBytes = numberOf(db, "PRAGMA page_count") * pageSize
  const content = "SELECT sum(octet_length(lines) + coalesce(octet_length(prompts), 0)) FROM content"
  const largest = bySize([...sessions].map(([key, sum]) => ({ key, ...sum }))).slice(0, shownSessions)
  return {
    fileBytes,
    walBytes: walBytes(options.database),
    freeBytes: numberOf(db, "PRAGMA freelist_count") * pageSize,
    sessions:
      session === undefined
        ? numberOf(db, "SELECT count(*) FROM event_sequence WHERE seq >= 0 AND session_id NOTNULL")
        : 1,
    ...total,
    contentBytes: session === undefined ? numberOf(db, content) : numberOf(db, `${content} WHERE session = ?`, session),
    sampled: weight > 1,
    ...(session === undefined && (options.exact === true || fileBytes <= mostBytes) ? { tables: tablesOf(db) } : {}),
    types: bySize([...types].map(([type, sum]) => ({ type: typeNamed(db, type), ...sum }))),
    days: [...days]
      .toSorted(([a], [b]) => b - a)
      .slice(0, shownDays)
      .map(([day, sum]) => ({ day: new Date(day * dayMs).toISOString().slice(0, 10), ...sum })),
    largest: largest.map(({ bytes, events, key }) => ({ ...sessionNamed(db, key), events, bytes }))
  }
}

/** Measures a database, or one session of it. Appends of other processes continue. */
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
  return yield* attempt(database, () => measure(db, options, session))
}, Effect.scoped)
