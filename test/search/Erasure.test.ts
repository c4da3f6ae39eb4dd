/** A session that is removed from a log in a file leaves no word in the files of its index. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Effect } from "effect"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { Search } from "../../packages/log/src/search/Search.ts"
import { searchPath } from "../../packages/log/src/storage/SearchFile.ts"
import { logAt, temporaryDatabase } from "../support/Database.ts"
import { admitted, begin, created, message, session } from "../support/Logs.ts"
import { leaveCopies, secret } from "../log/support/Copies.ts"
import { plant, tracesIn } from "../log/support/Traces.ts"
import { places, searchAt } from "./support/Searching.ts"

/** A word that prefix compression cannot hide: no other word begins like its rest. */
const word = "xylophonist"

it.scopedLive("SE-20: after a removal no file of the database or the index holds a word of the session", () =>
  Effect.gen(function* () {
    const [filename, id, other] = [yield* temporaryDatabase, session(), session()]
    const folder = join(filename, "..")
    yield* Effect.gen(function* () {
      const [log, search] = [yield* EventLog, yield* Search]
      yield* begin(other)
      yield* plant(id, other, 30)
      yield* log.append(id, [admitted(message(), `the ${word} plays`)])
      yield* log.append(other, [admitted(message(), "the drummer plays")])
      yield* search.update()
      assert.isNotEmpty(tracesIn(folder, "ylophonist"))
      assert.isTrue(yield* log.remove(id))
      for (const trace of ["ylophonist", "heron", "eadow"]) assert.deepStrictEqual(tracesIn(folder, trace), {}, trace)
      assert.deepStrictEqual(yield* places(word), [])
      assert.strictEqual((yield* places("drummer")).length, 1)
    }).pipe(Effect.provide(searchAt(filename)))
  })
)

it.scopedLive("SE-20: a process without search erases the session too, one removal after another", () =>
  Effect.gen(function* () {
    const [filename, other] = [yield* temporaryDatabase, session()]
    const folder = join(filename, "..")
    const ids = [session(), session(), session()]
    yield* Effect.gen(function* () {
      const [log, search] = [yield* EventLog, yield* Search]
      yield* begin(other)
      for (const [at, id] of ids.entries()) {
        yield* log.append(id, [created, admitted(message(), `${word}${at} ${word}`)])
        yield* search.update()
      }
      yield* log.append(other, [admitted(message(), "the drummer plays")])
      yield* search.update()
    }).pipe(Effect.provide(searchAt(filename)))
    assert.isNotEmpty(tracesIn(folder, "ylophonist"))
    yield* Effect.gen(function* () {
      const log = yield* EventLog
      for (const id of ids) yield* log.remove(id)
      assert.deepStrictEqual(tracesIn(folder, "ylophonist"), {})
    }).pipe(Effect.provide(logAt(filename)))
    yield* Effect.provide(
      Effect.map(places("drummer"), ({ length }) => assert.strictEqual(length, 1)),
      searchAt(filename)
    )
  })
)

/** A session whose one prompt is indexed. */
const indexed = Effect.gen(function* () {
  const [log, search, id] = [yield* EventLog, yield* Search, session()]
  yield* log.append(id, [created, admitted(message(), word)])
  yield* search.update()
  return { log, id }
})

it.scopedLive("SE-20: copies in unused bytes of the index's pages are overwritten too", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    const folder = join(filename, "..")
    yield* Effect.gen(function* () {
      const { id, log } = yield* indexed
      const index = new Sqlite(searchPath(filename))
      leaveCopies(index)
      index.close()
      assert.isNotEmpty(tracesIn(folder, secret))
      yield* log.remove(id)
      assert.deepStrictEqual(tracesIn(folder, secret), {})
    }).pipe(Effect.provide(searchAt(filename)))
  })
)

it.scopedLive("SE-21: a removal is swept only when a reader of the index no longer needs the text", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    const folder = join(filename, "..")
    yield* Effect.gen(function* () {
      const { id, log } = yield* indexed
      const reader = new Sqlite(searchPath(filename), { readonly: true })
      reader.exec("BEGIN")
      reader.prepare("SELECT * FROM document").all()
      yield* log.remove(id)
      const unswept = new Sqlite(filename, { readonly: true }).prepare("SELECT swept FROM session_removal").pluck()
      assert.strictEqual(unswept.get(), 0)
      reader.close()
      const last = session()
      yield* begin(last)
      yield* log.remove(last)
      assert.strictEqual(unswept.get(), 1)
      assert.deepStrictEqual(tracesIn(folder, "ylophonist"), {})
    }).pipe(Effect.provide(searchAt(filename)))
  })
)

it.scopedLive("SE-20: a removal without an index creates none", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      const [log, id] = [yield* EventLog, session()]
      yield* begin(id)
      yield* log.remove(id)
    }).pipe(Effect.provide(logAt(filename)))
    assert.isFalse(existsSync(searchPath(filename)))
  })
)
