/** The index: kept current by several processes, rebuilt, and never older or newer than its log. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Effect, Layer, Metric, TestClock } from "effect"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { Search } from "../../packages/log/src/search/Search.ts"
import * as SqlSearch from "../../packages/log/src/search/SqlSearch.ts"
import { openIndex, searchPath } from "../../packages/log/src/storage/SearchFile.ts"
import * as Metrics from "../../packages/log/src/support/Metrics.ts"
import { logAt, temporaryDatabase } from "../support/Database.ts"
import { admitted, created, message, session } from "../support/Logs.ts"
import { places, searchAt } from "./support/Searching.ts"

const said = Effect.fnUntraced(function* (text: string) {
  const [log, id] = [yield* EventLog, session()]
  yield* log.append(id, [created, admitted(message(), text)])
  return id
})

/** Every row of the index, without the blocks of its segments, which depend on the steps. */
const rowsOf = (filename: string) => {
  const db = new Sqlite(searchPath(filename), { readonly: true })
  const rows = ["document", "session", "day", "state"].map((table) => db.prepare(`SELECT * FROM ${table}`).all())
  db.close()
  return rows
}

it.scoped("SE-1, SE-2: the index is a private file beside the database, and holds no text", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    yield* Effect.provide(Effect.zipRight(said("a heron in the meadow"), places("heron")), searchAt(filename))
    const path = searchPath(filename)
    assert.strictEqual(statSync(path).mode & 0o777, 0o600)
    const db = new Sqlite(path, { readonly: true })
    const text = db.prepare("SELECT text FROM terms").pluck().all()
    assert.deepStrictEqual(text, [null])
  })
)

it.scoped("SE-4: two that update at the same time index every text once", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    const expected = yield* Effect.gen(function* () {
      for (let index = 0; index < 300; index++) yield* said(`heron ${index}`)
      const search = yield* Search
      yield* search.update()
      return rowsOf(filename)
    }).pipe(Effect.provide(searchAt(filename)))
    rmSync(searchPath(filename))
    const one = Effect.provide(
      Effect.flatMap(Search, (search) => search.update()),
      searchAt(filename)
    )
    yield* Effect.all([one, one, one], { concurrency: "unbounded" })
    assert.deepStrictEqual(rowsOf(filename), expected)
    yield* Effect.provide(
      Effect.map(places("heron"), ({ length }) => assert.strictEqual(length, 10)),
      searchAt(filename)
    )
  })
)

it.scoped(
  "SE-5: a rebuilt index equals the first one; a deleted, damaged or foreign one is built again or refused",
  () =>
    Effect.gen(function* () {
      const filename = yield* temporaryDatabase
      const path = searchPath(filename)
      const search = Effect.provide(places("heron"), searchAt(filename))
      yield* Effect.provide(said("a heron"), searchAt(filename))
      const first = yield* search
      const rows = rowsOf(filename)
      yield* Effect.provide(
        Effect.flatMap(Search, (found) => found.rebuild()),
        searchAt(filename)
      )
      assert.deepStrictEqual(rowsOf(filename), rows)
      for (const damage of [() => rmSync(path), () => writeFileSync(path, "not a database".repeat(1_000))]) {
        damage()
        assert.deepStrictEqual(yield* search, first)
      }
      const db = new Sqlite(path)
      db.pragma("user_version = 99")
      db.close()
      assert.deepStrictEqual(yield* search, first)
      rmSync(path)
      const other = new Sqlite(path)
      other.exec("CREATE TABLE theirs (x)")
      other.close()
      const refused = yield* Effect.flip(search)
      assert.strictEqual(refused._tag, "DatabaseError")
      assert.include(refused.message, "is not a search index of Daybook")
    })
)

it.scoped("SE-5: an index with damaged pages is built again by itself, and by a rebuild, also while it is open", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    const path = searchPath(filename)
    const damage = () => {
      const db = new Sqlite(path)
      db.pragma("wal_checkpoint(TRUNCATE)")
      db.close()
      const whole = readFileSync(path)
      whole.fill(0xa5, 2 * 4096, 8 * 4096)
      writeFileSync(path, whole)
    }
    const first = yield* Effect.provide(Effect.zipRight(said("a heron"), places("heron")), searchAt(filename))
    yield* Effect.gen(function* () {
      const search = yield* Search
      damage()
      assert.deepStrictEqual(yield* places("heron"), first)
      damage()
      assert.deepStrictEqual((yield* search.search({ query: "heron" })).items, [])
      assert.deepStrictEqual(yield* places("heron"), first)
      damage()
      yield* search.rebuild()
      assert.deepStrictEqual(yield* places("heron"), first)
    }).pipe(Effect.provide(searchAt(filename)))
    damage()
    assert.deepStrictEqual(yield* Effect.provide(places("heron"), searchAt(filename)), first)
  })
)

it.scoped("SE-5: an index whose file or folder cannot be used is named with the reason", () =>
  Effect.gen(function* () {
    const path = searchPath(yield* temporaryDatabase)
    mkdirSync(path)
    for (const [where, reason] of [
      ["/proc/daybook/log.search", /: its folder cannot be made \(ENOENT\)$/],
      [path, /: it is a folder and cannot be used as a file; /]
    ] as const) {
      const { message } = yield* Effect.flip(openIndex(where))
      assert.match(message, reason)
      assert.include(message, `${where}: the search index cannot be used: `)
    }
  })
)

it.scoped("SE-7: an index of another log, or of a past that a copy replaced, is emptied before it is used", () =>
  Effect.gen(function* () {
    const [filename, other] = [yield* temporaryDatabase, yield* temporaryDatabase]
    const at = <A, E>(file: string, effect: Effect.Effect<A, E, EventLog | Search>) =>
      Effect.provide(effect, searchAt(file))
    yield* at(filename, said("a heron"))
    copyFileSync(filename, `${filename}.copy`)
    yield* at(filename, Effect.zipRight(said("a stork"), places("stork")))
    // The copy comes back, and gives the stork's positions to a crane.
    for (const suffix of ["-wal", "-shm"]) rmSync(`${filename}${suffix}`, { force: true })
    copyFileSync(`${filename}.copy`, filename)
    yield* at(filename, said("a crane"))
    assert.strictEqual((yield* at(filename, places("crane"))).length, 1)
    assert.strictEqual((yield* at(filename, places("stork"))).length, 0)
    assert.strictEqual((yield* at(filename, places("heron"))).length, 1)
    yield* at(other, said("a gull"))
    copyFileSync(searchPath(filename), searchPath(other))
    assert.strictEqual((yield* at(other, places("heron"))).length, 0)
    assert.strictEqual((yield* at(other, places("gull"))).length, 1)
  })
)

it.scoped("SE-20: events after a removal are indexed although positions are missing", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    const id = yield* Effect.provide(said("a heron"), logAt(filename))
    yield* Effect.gen(function* () {
      const log = yield* EventLog
      yield* said("a stork")
      yield* log.remove(id)
      yield* log.append(yield* said("a crane"), [draft("session.next.renamed", { title: "Birds" })])
      assert.strictEqual((yield* places("a -title")).length, 2)
      assert.deepStrictEqual((yield* places("title:bird")).length, 1)
    }).pipe(Effect.provide(searchAt(filename)))
    assert.isTrue(existsSync(searchPath(filename)))
  })
)

it.scoped("SE-9: the index follows the log a second after new events, in the background, and its lag is a metric", () =>
  Effect.gen(function* () {
    yield* Layer.build(SqlSearch.layerFollowing)
    const search = yield* Search
    const hits = Effect.map(search.search({ query: "heron" }), ({ items }) => items.length)
    yield* TestClock.adjust("50 millis")
    yield* said("a heron")
    yield* TestClock.adjust("999 millis")
    assert.strictEqual(yield* hits, 0)
    yield* TestClock.adjust("100 millis")
    assert.strictEqual(yield* hits, 1)
    assert.strictEqual((yield* Metric.value(Metrics.searchLag)).value, 0)
  }).pipe(Effect.provide(Layer.unwrapScoped(Effect.map(temporaryDatabase, searchAt))))
)
