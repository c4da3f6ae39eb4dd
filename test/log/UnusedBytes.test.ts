/**
 * Method: rows of two kinds are written in a seeded order and one kind is deleted, until SQLite has left copies of deleted
 * rows in its pages; every byte of the file is searched. The property fills the unused bytes instead, so that a wrong place
 * would damage rows.
 */
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Reactivity from "@effect/experimental/Reactivity"
import * as SqlClient from "@effect/sql/SqlClient"
import { assert, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Effect, Exit, FastCheck as fc } from "effect"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Database from "../../packages/log/src/storage/Database.ts"
import { isMap, layoutOf, overwrite, unusedIn } from "../../packages/log/src/storage/UnusedBytes.ts"
import { logAt, temporaryDatabase, temporaryFolder } from "../support/Database.ts"
import { begin, session } from "../support/Logs.ts"
import { leaveCopies, numbers, secret } from "./support/Copies.ts"
import { tracesIn } from "./support/Traces.ts"

/** A file whose unused bytes hold the secret, and a client of it. */
const planted = Effect.gen(function* () {
  const filename = join(yield* temporaryFolder, "notes.db")
  const other = yield* Effect.acquireRelease(
    Effect.sync(() => new Sqlite(filename)),
    (db) => Effect.sync(() => db.close())
  )
  other.pragma("auto_vacuum = INCREMENTAL")
  other.pragma("journal_mode = WAL")
  leaveCopies(other)
  const sql = yield* Database.open({ filename })
  yield* sql`PRAGMA secure_delete = ON`
  yield* sql`PRAGMA busy_timeout = 0`
  const traces = () => Object.values(tracesIn(join(filename, ".."), secret)).reduce((sum, count) => sum + count, 0)
  return { filename, other, sql, traces }
}).pipe(Effect.provide(Reactivity.layer))

it.scoped("LG-64: copies of deleted rows in unused bytes are overwritten, and the rows stay", () =>
  Effect.gen(function* () {
    const { filename, sql, traces } = yield* planted
    const rows = yield* sql`SELECT * FROM note`
    assert.isAbove(traces(), 0)
    assert.isTrue(yield* overwrite(sql, filename))
    assert.strictEqual(traces(), 0)
    assert.deepStrictEqual(yield* sql`SELECT * FROM note`, rows)
    assert.deepStrictEqual(yield* sql`PRAGMA integrity_check`, [{ integrity_check: "ok" }])
  })
)

const readAll = "SELECT sum(length(text)) AS total FROM note"
// The same length: SQLite changes the row in its place, and writes the page as it knows it.
const changeAll = "UPDATE note SET text = upper(text)"

it.scoped("LG-64: the connection does not write the copies back from pages that it had read", () =>
  Effect.gen(function* () {
    const { filename, sql, traces } = yield* planted
    yield* sql.unsafe(readAll)
    assert.isTrue(yield* overwrite(sql, filename))
    yield* sql.unsafe(changeAll)
    yield* sql`PRAGMA wal_checkpoint(TRUNCATE)`
    assert.strictEqual(traces(), 0)
  })
)

it.scoped("LG-64: another connection does not write the copies back from pages that it had read", () =>
  Effect.gen(function* () {
    const { filename, other, sql, traces } = yield* planted
    const readBefore = Effect.zipRight(
      Effect.sync(() => other.prepare(readAll).all()),
      sql.reserve
    )
    // The last instant at which another connection can read the copies: before the transaction.
    const reading = new Proxy(sql, {
      get: (client, key) => (key === "reserve" ? readBefore : Reflect.get(client, key))
    })
    assert.isTrue(yield* overwrite(reading, filename))
    other.prepare(changeAll).run()
    yield* sql`PRAGMA wal_checkpoint(TRUNCATE)`
    assert.strictEqual(traces(), 0)
  })
)

it.scoped("LG-64: a commit between the checkpoint and the lock is copied into the file first", () =>
  Effect.gen(function* () {
    const { filename, other, sql, traces } = yield* planted
    const change = other.prepare(changeAll)
    let changed = false
    const changing = new Proxy(sql, {
      get: (client, key) => {
        if (key === "reserve" && !changed) changed = change.run().changes > 0
        return Reflect.get(client, key)
      }
    })
    assert.isTrue(yield* overwrite(changing, filename))
    yield* sql`PRAGMA wal_checkpoint(TRUNCATE)`
    assert.deepStrictEqual([changed, traces()], [true, 0])
  })
)

it.scoped("LG-64: while a reader needs the write-ahead log nothing is overwritten", () =>
  Effect.gen(function* () {
    const { filename, other, sql, traces } = yield* planted
    yield* sql`UPDATE note SET text = upper(text) WHERE key % 2 = 1`
    other.exec("BEGIN; SELECT count(*) FROM note")
    yield* sql`UPDATE note SET text = lower(text) WHERE key % 2 = 1`
    const before = traces()
    assert.isFalse(yield* overwrite(sql, filename))
    assert.strictEqual(traces(), before)
    other.exec("COMMIT")
    assert.isTrue(yield* overwrite(sql, filename))
    assert.strictEqual(traces(), 0)
  })
)

it.scoped("LG-64: nothing is overwritten while another connection holds the write lock", () =>
  Effect.gen(function* () {
    const { filename, other, sql, traces } = yield* planted
    other.exec("BEGIN IMMEDIATE")
    const before = traces()
    assert.isFalse(yield* overwrite(sql, filename))
    assert.strictEqual(traces(), before)
  })
)

it.scoped("LG-64: a file that has replaced the database is not changed", () =>
  Effect.gen(function* () {
    const { filename, sql } = yield* planted
    const another = `${filename}.another`
    const db = new Sqlite(another)
    leaveCopies(db)
    db.close()
    renameSync(another, filename)
    const before = readFileSync(filename)
    assert.isFalse(yield* overwrite(sql, filename))
    assert.isTrue(readFileSync(filename).equals(before))
  })
)

it.scopedLive("LG-64: a removal overwrites the copies of earlier deletions in the log's database", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      const [log, sql, id] = [yield* EventLog, yield* SqlClient.SqlClient, session()]
      yield* begin(id, 3)
      const other = new Sqlite(filename)
      leaveCopies(other)
      other.close()
      assert.isNotEmpty(tracesIn(join(filename, ".."), secret))
      yield* log.remove(id)
      assert.deepStrictEqual(tracesIn(join(filename, ".."), secret), {})
      assert.deepStrictEqual(yield* sql`PRAGMA integrity_check`, [{ integrity_check: "ok" }])
    }).pipe(Effect.provide(logAt(filename)))
  })
)

it.scoped("LG-66: copies on a page that a vacuum moves after it was read are overwritten at its new place", () =>
  Effect.gen(function* () {
    const { filename, other, sql, traces } = yield* planted
    const pages = () => other.pragma("page_count", { simple: true })
    const before = pages()
    let transactions = 0
    const vacuuming = new Proxy(sql, {
      get: (client, key) => {
        // The second transaction overwrites the pages that were found.
        if (key === "reserve" && ++transactions === 2) other.pragma("incremental_vacuum")
        return Reflect.get(client, key)
      }
    })
    assert.isTrue(yield* overwrite(vacuuming, filename))
    yield* sql`PRAGMA wal_checkpoint(TRUNCATE)`
    assert.deepStrictEqual([transactions > 2, traces()], [true, 0])
    assert.isBelow(Number(pages()), Number(before))
  })
)

it.scoped("LG-66: after a death between the overwriting and its commit no connection writes the copies back", () =>
  Effect.gen(function* () {
    const { filename, other, sql, traces } = yield* planted
    other.prepare(readAll).all()
    yield* sql.unsafe(readAll)
    let commits = 0
    const dying = new Proxy(sql, {
      get: (client, key) =>
        // The second transaction overwrites, and does not commit.
        key === "unsafe" && ++commits === 2 ? () => Effect.die("killed") : Reflect.get(client, key)
    })
    assert.isTrue(Exit.isFailure(yield* Effect.exit(overwrite(dying, filename))))
    assert.strictEqual(traces(), 0)
    assert.isTrue(yield* overwrite(sql, filename))
    other.prepare(changeAll).run()
    yield* sql.unsafe(changeAll)
    yield* sql`PRAGMA wal_checkpoint(TRUNCATE)`
    assert.strictEqual(traces(), 0)
  })
)

it.scoped("LG-67: what another connection prevents at one moment is tried again", () =>
  Effect.gen(function* () {
    const { filename, other, sql, traces } = yield* planted
    let transactions = 0
    const busy = new Proxy(sql, {
      get: (client, key) => {
        if (key === "reserve") {
          transactions += 1
          if (transactions === 1) other.exec("BEGIN IMMEDIATE")
          if (transactions === 2) other.exec("ROLLBACK")
        }
        return Reflect.get(client, key)
      }
    })
    assert.isTrue(yield* overwrite(busy, filename))
    assert.strictEqual(traces(), 0)
  })
)

/** How many descriptors of this process are of files in the folder. */
const descriptorsIn = (folder: string) =>
  readdirSync("/proc/self/fd").filter((name) => {
    try {
      return readlinkSync(join("/proc/self/fd", name)).startsWith(folder)
    } catch {
      // The listing's own.
      return false
    }
  }).length

/** Whether this process has a lock on the file. */
const isLocked = (filename: string) =>
  readFileSync("/proc/locks", "utf8")
    .split("\n")
    .some((line) => line.includes(` ${process.pid} `) && line.includes(`:${statSync(filename).ino} `))

const removed = Effect.gen(function* () {
  const [log, id] = [yield* EventLog, session()]
  yield* begin(id, 3)
  yield* log.remove(id)
})

it.scopedLive("LG-65: a process that has closed a database keeps no descriptor of it, also after a removal", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    yield* Effect.provide(removed, logAt(filename))
    assert.strictEqual(descriptorsIn(join(filename, "..")), 0)
  })
)

it.scopedLive("LG-65: while another connection is open the descriptor stays, and with it that connection's locks", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    yield* Effect.provide(removed, logAt(filename))
    const other = yield* Effect.acquireRelease(
      Effect.sync(() => new Sqlite(filename)),
      (db) => Effect.sync(() => db.close())
    )
    other.prepare("SELECT count(*) FROM event").get()
    yield* Effect.provide(removed, logAt(filename))
    assert.isTrue(isLocked(filename))
  })
)

/** Tables, indexes, long rows and freed pages of every kind of page size, with and without a map of pages. */
const databases = fc.record({
  pageSize: fc.constantFrom(512, 1024, 4096, 65_536),
  vacuum: fc.constantFrom("NONE", "FULL", "INCREMENTAL"),
  seed: fc.integer({ min: 1, max: 1_000_000 }),
  rows: fc.integer({ min: 0, max: 600 }),
  longest: fc.integer({ min: 1, max: 3_000 })
})

it("LG-64: no byte that SQLite reads is taken for an unused one", () => {
  const folder = mkdtempSync(join(tmpdir(), "daybook-test-"))
  let [number, filled] = [0, 0]
  try {
    fc.assert(
      fc.property(databases, ({ longest, pageSize, rows, seed, vacuum }) => {
        const filename = join(folder, `${number++}.db`)
        const random = numbers(seed)
        const db = new Sqlite(filename)
        db.pragma(`page_size = ${pageSize}`)
        db.pragma(`auto_vacuum = ${vacuum}`)
        db.exec(`CREATE TABLE a (key INTEGER PRIMARY KEY, text TEXT); CREATE INDEX a_text ON a (text);
          CREATE TABLE b (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID`)
        const [a, b] = [db.prepare("INSERT INTO a (text) VALUES (?)"), db.prepare("INSERT INTO b VALUES (?, ?)")]
        db.transaction(() => {
          for (let n = 0; n < rows; n++) {
            a.run(String.fromCharCode(97 + 25 * random()).repeat(random() * longest))
            b.run(`${random()}`, Buffer.alloc(random() * longest, random() * 255))
          }
        })()
        db.exec("DELETE FROM a WHERE key % 3 = 0; DELETE FROM b WHERE key LIKE '%7'")
        const dump = () => [db.prepare("SELECT * FROM a ORDER BY text, key").all(), db.prepare("SELECT * FROM b").all()]
        const before = JSON.stringify(dump())
        db.close()
        const file = readFileSync(filename)
        const layout = layoutOf(file)
        for (let page = 2; page <= file.length / layout.pageSize; page++) {
          if (isMap(page, layout)) continue
          const bytes = file.subarray((page - 1) * layout.pageSize, page * layout.pageSize)
          const unused = unusedIn(bytes, layout.usable)
          if (unused === undefined) continue
          bytes.fill(0xff, ...unused)
          filled += unused[1] - unused[0]
        }
        writeFileSync(filename, file)
        const again = new Sqlite(filename)
        const check = again.pragma("integrity_check", { simple: true })
        const after = JSON.stringify([
          again.prepare("SELECT * FROM a ORDER BY text, key").all(),
          again.prepare("SELECT * FROM b").all()
        ])
        again.close()
        rmSync(filename)
        assert.strictEqual(check, "ok")
        assert.strictEqual(after, before)
      }),
      { numRuns: 60 }
    )
    assert.isAbove(filled, 10_000)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
