/**
 * Overwrites the unused bytes of a database's pages. `secure_delete` overwrites what a statement deletes, but not what
 * SQLite leaves behind when it moves rows between pages: a copy can stay on the old page, between its pointers and its
 * cells, and outlives the row. No statement reaches those bytes, and a VACUUM would block every writer. Spec: LG-64,
 * LG-66; the file format: https://sqlite.org/fileformat2.html. Readers ignore unused bytes. They are written only while
 * this connection holds the write lock and the write-ahead log is empty: no other connection writes the page, and the
 * file has its newest version, LG-50, LG-51, LG-540.
 */
import { fstatSync, fsyncSync, readSync, statSync, writeSync } from "node:fs"
import { isMainThread } from "node:worker_threads"
import type * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import { Clock, Effect } from "effect"
import * as EventLoop from "../support/EventLoop.ts"
import { descriptorOf } from "./PrivateFile.ts"
import { immediately, isBusy, retryBusy } from "./Transaction.ts"

// Tries whether the database can be written.

/** Writes the header of the database as it is. Other connections forget the pages that they have read. */
const rewriteHeader = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const [row] = yield* sql<{ readonly user_version: number }>`PRAGMA user_version`
  yield* sql.unsafe(`PRAGMA user_version = ${row?.user_version ?? 0}`)
})

/** How long a write may wait for other writers. */
const patience = "2 seconds"

const locked = () =>
  new SqlError.SqlError({ cause: Object.assign(new Error("the database is locked"), { code: "SQLITE_BUSY" }) })

/** Commits a write that changes nothing. */
export const probe = (sql: SqlClient.SqlClient): Effect.Effect<void, SqlError.SqlError> =>
  Effect.timeoutFail(retryBusy(immediately(sql)(rewriteHeader(sql))), { duration: patience, onTimeout: locked })

// Empties the write-ahead log, with a few attempts while another process writes or checkpoints.

const checkpointAttempts = 8

/** Other processes end their step meanwhile. */
const pause = Effect.withClock(Effect.sleep("15 millis"), Clock.make())

/** Repeats what other processes may prevent, a few times. Returns whether it succeeded. */
const insist = <E, R>(attempt: Effect.Effect<boolean, E, R>): Effect.Effect<boolean, E, R> =>
  Effect.gen(function* () {
    for (let left = checkpointAttempts; left > 0; left--) {
      if (yield* attempt) return true
      yield* pause
    }
    return false
  })

/** Copies the write-ahead log into the file and truncates it. Returns whether no reader or busy writers prevented it. */
export const truncate = (sql: SqlClient.SqlClient): Effect.Effect<boolean, SqlError.SqlError> =>
  insist(
    Effect.map(
      sql<{ readonly busy: number }>`PRAGMA wal_checkpoint(TRUNCATE)`,
      ([checkpoint]) => checkpoint?.busy === 0
    )
  )

/** How a database's file is divided into pages. */
export interface Layout {
  readonly pageSize: number
  /** Bytes of a page without the reserved bytes at its end. */
  readonly usable: number
  /** Whether some pages map the others, for `auto_vacuum`. */
  readonly mapped: boolean
}

/** Reads the first 100 bytes of a database. */
export const layoutOf = (header: Buffer): Layout => {
  const size = header.readUInt16BE(16)
  const pageSize = size === 1 ? 65_536 : size
  return { pageSize, usable: pageSize - header.readUInt8(20), mapped: header.readUInt32BE(52) > 0 }
}

/** The place of SQLite's locks: the page there is never used. */
const lockByte = 0x4000_0000

/** Whether a page, numbered from 1, maps other pages. */
export const isMap = (page: number, { mapped, pageSize, usable }: Layout): boolean => {
  if (!mapped || page < 2) return false
  const every = Math.floor(usable / 5) + 1
  const map = Math.floor((page - 2) / every) * every + 2
  return page === (map === lockByte / pageSize + 1 ? map + 1 : map)
}

/** The first byte of a page of a tree, with the length of the page's header. An overflow page starts with a page number. */
const headerLengths: ReadonlyMap<number, number> = new Map([
  [2, 12],
  [5, 12],
  [10, 8],
  [13, 8]
])

/** From this page number on, the first byte of an overflow page could be that of a tree's page. */
const mostPages = 2 ** 25

/** The unused bytes of a page, from and to; undefined if it is not a valid page of a tree. */
export const unusedIn = (page: Buffer, usable: number): readonly [number, number] | undefined => {
  const header = headerLengths.get(page.readUInt8(0))
  if (header === undefined) return undefined
  const [free, cells, start] = [page.readUInt16BE(1), page.readUInt16BE(3), page.readUInt16BE(5) || 65_536]
  const end = header + 2 * cells
  if (end > start || start > usable || (free !== 0 && free < start)) return undefined
  for (let at = header; at < end; at += 2) {
    const cell = page.readUInt16BE(at)
    if (cell < start || cell > usable - 4) return undefined
  }
  return [end, start]
}

const zeros = Buffer.alloc(65_536)

/** Unused bytes of a page that are not zero. */
const leftIn = (page: Buffer, usable: number) => {
  const unused = unusedIn(page, usable)
  return unused === undefined || page.compare(zeros, 0, unused[1] - unused[0], unused[0], unused[1]) === 0
    ? undefined
    : unused
}

const failed = (cause: unknown) => new SqlError.SqlError({ cause, message: "the pages could not be read or written" })

const onDisk = <A>(run: () => A) => Effect.try({ try: run, catch: failed })

/** Reads after which other work gets the event loop. A read and its search take about a millisecond. */
const readsAtOnce = 4

/** Pages of one read, and the most that are found before they are overwritten in one transaction. */
const [pagesAtOnce, mostFound] = [256, 512]

interface OpenDatabase {
  readonly file: number
  readonly filename: string
  readonly layout: Layout
  readonly pages: number
}

/** Reads some pages up to one. Returns the numbers of those with something left in them. */
const find = Effect.fnUntraced(function* ({ file, layout }: OpenDatabase, from: number, through: number) {
  const { pageSize, usable } = layout
  const bytes = Buffer.allocUnsafe((through - from + 1) * pageSize)
  const length = yield* onDisk(() => readSync(file, bytes, 0, bytes.length, (from - 1) * pageSize))
  const found: Array<number> = []
  // The file may have become shorter.
  for (let page = from; page < from + Math.floor(length / pageSize); page++) {
    const at = (page - from) * pageSize
    // The first page begins with the file's header, and holds the schema.
    if (page > 1 && !isMap(page, layout) && leftIn(bytes.subarray(at, at + pageSize), usable) !== undefined)
      found.push(page)
  }
  return found
})

const isEmpty = (path: string) => onDisk(() => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0)

const headerOf = (file: number) =>
  onDisk(() => {
    const header = Buffer.alloc(100)
    readSync(file, header, 0, header.length, 0)
    return header
  })

/** Overwrites synchronously: the process cannot lose the lock in between. Returns the number of pages with something left. */
const overwritePages = (file: number, { pageSize, usable }: Layout, pages: ReadonlyArray<number>): number => {
  const bytes = Buffer.allocUnsafe(pageSize)
  let overwritten = 0
  for (const page of pages) {
    const at = (page - 1) * pageSize
    const left = readSync(file, bytes, 0, pageSize, at) === pageSize ? leftIn(bytes, usable) : undefined
    if (left === undefined) continue
    writeSync(file, zeros, 0, left[1] - left[0], at + left[0])
    overwritten += 1
  }
  return overwritten
}

/** Attempts of a step to get the lock while the write-ahead log is empty, and of a pass to find pages where they were. */
const attempts = 20

/** Whether the file at the path is still the connection's: their numbers of pages and of changed schemas agree. */
const isSame = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, file: number) {
  const [row] = yield* sql<{ readonly pages: number; readonly free: number; readonly schema: number }>`
    SELECT page_count AS pages, freelist_count AS free, schema_version AS schema
    FROM pragma_page_count, pragma_freelist_count, pragma_schema_version`
  const header = yield* headerOf(file)
  return (
    row?.pages === header.readUInt32BE(28) &&
    row.free === header.readUInt32BE(36) &&
    row.schema === header.readUInt32BE(40)
  )
})

/** What a step did. `moved`: some pages hold something else now, so their old contents may be in other pages. */
type Step = "overwritten" | "moved" | "prevented"

/** Overwrites pages in one transaction. It cannot while a reader needs the write-ahead log. */
const overwriteStep = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { file, filename, layout }: OpenDatabase,
  pages: ReadonlyArray<number>
) {
  const overwritten = Effect.gen(function* () {
    if (!(yield* isEmpty(`${filename}-wal`)) || !(yield* isSame(sql, file))) return undefined
    // First: if a later statement fails, this connection has no page from before.
    yield* sql`PRAGMA shrink_memory`
    const count = yield* onDisk(() => overwritePages(file, layout, pages))
    yield* onDisk(() => fsyncSync(file))
    yield* rewriteHeader(sql)
    return count
  })
  for (let attempt = 0; attempt < attempts; attempt++) {
    if (!(yield* truncate(sql))) break
    const count = yield* retryBusy(immediately(sql)(overwritten))
    if (count !== undefined) return count === pages.length ? "overwritten" : "moved"
  }
  return "prevented"
})

/** Opens the file beside SQLite. Undefined if it has too many pages for `headerLengths`. */
const openBeside = Effect.fnUntraced(function* (filename: string) {
  const file = yield* onDisk(() => descriptorOf(filename))
  const layout = layoutOf(yield* headerOf(file))
  const pages = yield* onDisk(() => Math.floor(fstatSync(file).size / layout.pageSize))
  const opened: OpenDatabase = { file, filename, layout, pages }
  return pages < mostPages ? opened : undefined
})

/**
 * Finds and overwrites from the end of the file to its beginning, because a vacuum of another process moves pages, with their
 * unused bytes, towards the beginning. Returns whether nothing prevented it.
 */
const pass = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, opened: OpenDatabase) {
  let [top, moves, reads] = [opened.pages, 0, 0]
  let found: ReadonlyArray<number> = []
  for (let through = opened.pages; through > 0;) {
    const from = Math.max(1, through - pagesAtOnce + 1)
    found = [...found, ...(yield* find(opened, from, through))]
    if (++reads % readsAtOnce === 0) yield* EventLoop.turn
    through = from - 1
    if (found.length === 0 || (found.length < mostFound && through > 0)) continue
    const step: Step = yield* overwriteStep(sql, opened, found)
    if (step === "prevented" || (step === "moved" && ++moves === attempts)) return false
    // The pages may be at places that were read before.
    if (step === "moved") through = top
    top = through
    found = []
  }
  return true
})

/**
 * Overwrites the unused bytes of all pages of a client's database. It reads the whole file, beside other work, and writes
 * in short transactions. Returns whether nothing is left; false while a reader or busy writers prevent it. A file of 2^25
 * pages or more is not read.
 *
 * Keeps a descriptor of the file until the last connection of all processes is closed. In a worker thread Node closes it
 * when the thread ends, and the system releases the locks of the whole process on that file: no other thread may have
 * opened it.
 */
export const overwrite = (sql: SqlClient.SqlClient, filename: string): Effect.Effect<boolean, SqlError.SqlError> =>
  Effect.gen(function* () {
    const opened = yield* openBeside(filename)
    if (opened === undefined) return true
    // A process that was killed between its step and its commit has left other connections the pages from before.
    const forgotten = yield* insist(
      Effect.catchIf(Effect.as(immediately(sql)(rewriteHeader(sql)), true), isBusy, () => Effect.succeed(false))
    )
    return forgotten && (yield* pass(sql, opened))
  })

/** The same for a database that several threads may use: a worker thread leaves it to the next process that erases. */
export const overwriteShared = (
  sql: SqlClient.SqlClient,
  filename: string
): Effect.Effect<boolean, SqlError.SqlError> => (isMainThread ? overwrite(sql, filename) : Effect.succeed(true))
