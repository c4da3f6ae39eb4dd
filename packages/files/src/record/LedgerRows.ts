/** Reads and writes the rows of `ledger.sqlite`. Spec: FI-65..FI-68 in specs/files.md. */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"
import type { Cursor, FileRecord, FileRecords, SessionRecord } from "./Records.ts"

/** The rows of the open file. Statements fail with `SqlError`. */
type Sql = SqlClient.SqlClient

interface FileRow {
  readonly name: string
  readonly stamp: string
  readonly size: number
  readonly crc: number
  readonly next_size: number | null
  readonly next_crc: number | null
  readonly lasting: number
}

type SessionRow = Omit<SessionRecord, "index" | "behind" | "checkpointSeq" | "checkpointSize"> & {
  readonly house: string
  readonly behind: number
  readonly checkpoint_seq: number
  readonly checkpoint_size: number
}

const toSession = ({ behind, checkpoint_seq, checkpoint_size, house, ...row }: SessionRow): SessionRecord => ({
  ...row,
  index: house,
  checkpointSeq: checkpoint_seq,
  checkpointSize: checkpoint_size,
  behind: behind === 1
})

const toFile = ({ crc, lasting, name, next_crc, next_size, size, stamp }: FileRow): readonly [string, FileRecord] => [
  name,
  {
    stamp,
    size,
    crc,
    lasting: lasting === 1,
    next: next_size === null || next_crc === null ? null : { size: next_size, crc: next_crc }
  }
]

const fromFile = (folder: string, name: string, record: FileRecord) => ({
  folder,
  name,
  stamp: record.stamp,
  size: record.size,
  crc: record.crc,
  next_size: record.next?.size ?? null,
  next_crc: record.next?.crc ?? null,
  lasting: record.lasting ? 1 : 0
})

/** Splits rows to bound the parameters of a statement. */
const chunksOf = <A>(items: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(items.length / 64) }, (_, i) => items.slice(i * 64, (i + 1) * 64))

interface CursorRow {
  readonly position: number
  readonly event_id: string | null
  readonly session_id: string | null
  readonly removals: number
}

export const cursor = (sql: Sql) =>
  Effect.map(sql<CursorRow>`SELECT position, event_id, session_id, removals FROM cursor`, ([row]): Cursor => ({
    position: row?.position ?? 0,
    eventID: row?.event_id ?? null,
    sessionID: row?.session_id ?? null,
    removals: row?.removals ?? 0
  }))

export const setCursor = (sql: Sql, { eventID, position, removals, sessionID }: Cursor) =>
  sql`UPDATE cursor SET position = ${position}, event_id = ${eventID}, session_id = ${sessionID}, removals = ${removals}`

export const session = (sql: Sql, id: string) =>
  Effect.map(sql<SessionRow>`SELECT * FROM session WHERE id = ${id}`, ([row]) => row && toSession(row))

export const checkpoint = (sql: Sql, id: string) =>
  Effect.map(sql<{ readonly text: string }>`SELECT text FROM checkpoint WHERE id = ${id}`, ([row]) => row?.text)

export const sessions = (sql: Sql, after: string, limit: number) =>
  Effect.map(sql<SessionRow>`SELECT * FROM session WHERE id > ${after} ORDER BY id LIMIT ${limit}`, (rows) =>
    rows.map(toSession)
  )

export const behind = (sql: Sql, limit: number) =>
  Effect.map(sql<{ readonly id: string }>`SELECT id FROM session WHERE behind = 1 ORDER BY id LIMIT ${limit}`, (rows) =>
    rows.map(({ id }) => id)
  )

export const setBehind = (sql: Sql, id: string) => sql`UPDATE session SET behind = 1 WHERE id = ${id}`

export const entries = (sql: Sql, index: string) =>
  Effect.map(
    sql<{ readonly entry: string }>`SELECT entry FROM session WHERE house = ${index} AND entry IS NOT NULL`,
    (rows) => rows.map(({ entry }) => entry)
  )

export const indexes = (sql: Sql) =>
  Effect.map(sql<{ readonly house: string }>`SELECT DISTINCT house FROM session ORDER BY house`, (rows) =>
    rows.map(({ house }) => house)
  )

export const folders = (sql: Sql, index: string) =>
  Effect.map(
    sql<{ readonly folder: string }>`SELECT folder FROM session WHERE house = ${index}`,
    (rows) => new Set(rows.map(({ folder }) => folder))
  )

export const files = (sql: Sql, folder: string) =>
  Effect.map(
    sql<FileRow>`SELECT name, stamp, size, crc, next_size, next_crc, lasting FROM file WHERE folder = ${folder}`,
    (rows): FileRecords => new Map(rows.map(toFile))
  )

/** Stores the files of a folder; an undefined one is deleted. */
export const putFiles = (sql: Sql, folder: string, records: ReadonlyMap<string, FileRecord | undefined>) => {
  const rows = [...records].flatMap(([name, record]) => (record === undefined ? [] : [fromFile(folder, name, record)]))
  const gone = [...records].flatMap(([name, record]) => (record === undefined ? [name] : []))
  return Effect.zipRight(
    Effect.forEach(chunksOf(rows), (chunk) => sql`INSERT OR REPLACE INTO file ${sql.insert(chunk)}`, {
      discard: true
    }),
    Effect.forEach(
      chunksOf(gone),
      (chunk) => sql`DELETE FROM file WHERE folder = ${folder} AND name IN ${sql.in(chunk)}`,
      { discard: true }
    )
  )
}

/** Stores a session, and its checkpoint if there is one. */
export const putSession = (
  sql: Sql,
  { behind, checkpointSeq, checkpointSize, index, ...record }: SessionRecord,
  text: string | undefined
) => {
  const row = {
    ...record,
    house: index,
    checkpoint_seq: checkpointSeq,
    checkpoint_size: checkpointSize,
    behind: behind ? 1 : 0
  }
  const stored = sql`INSERT OR REPLACE INTO session ${sql.insert(row)}`
  if (text === undefined) return Effect.asVoid(stored)
  return Effect.asVoid(
    Effect.zipRight(stored, sql`INSERT OR REPLACE INTO checkpoint ${sql.insert({ id: record.id, text })}`)
  )
}

export const forget = (sql: Sql, id: string) =>
  Effect.zipRight(sql`DELETE FROM checkpoint WHERE id = ${id}`, sql`DELETE FROM session WHERE id = ${id}`)
