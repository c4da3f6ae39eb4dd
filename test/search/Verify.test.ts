/** `verify` finds what is wrong with the index, and nothing in a sound one. */
import { assert, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Effect } from "effect"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { Search } from "../../packages/log/src/search/Search.ts"
import { verify } from "../../packages/log/src/search/Indexing.ts"
import { searchPath } from "../../packages/log/src/storage/SearchFile.ts"
import { temporaryDatabase } from "../support/Database.ts"
import { session } from "../support/Logs.ts"
import { begun, pruned } from "../support/Pruning.ts"
import { places, searchAt } from "./support/Searching.ts"

/** A database whose index has texts of a whole, a pruned and a removed session. */
const indexed = Effect.gen(function* () {
  const filename = yield* temporaryDatabase
  yield* Effect.gen(function* () {
    const [log, search, ids] = [yield* EventLog, yield* Search, [session(), session(), session()] as const]
    for (const id of ids) yield* begun(id, 4, 2)
    yield* search.update()
    yield* pruned(ids[1])
    yield* log.remove(ids[2])
    yield* begun(session(), 2, 2)
  }).pipe(Effect.provide(searchAt(filename)))
  return filename
})

const findings = (filename: string) => Effect.provide(verify, searchAt(filename))

it.scoped(
  "SE-60: a sound index has no findings, also with pruned, removed and later sessions; without one there is none",
  () =>
    Effect.gen(function* () {
      const filename = yield* indexed
      assert.deepStrictEqual(yield* findings(filename), [])
      assert.deepStrictEqual(yield* findings(yield* temporaryDatabase), [])
    })
)

it.scoped("SE-60: missing and extra texts and a damaged index are found, and a rebuild repairs them", () =>
  Effect.gen(function* () {
    const filename = yield* indexed
    const change = (statement: string) => {
      const db = new Sqlite(searchPath(filename))
      db.unsafeMode()
      db.exec(statement)
      db.close()
    }
    const rebuilt = Effect.provide(
      Effect.flatMap(Search, (search) => search.rebuild()),
      searchAt(filename)
    )
    change("DELETE FROM document WHERE position = 2")
    assert.deepStrictEqual(yield* findings(filename), ["the search index misses 1 text"])
    yield* rebuilt
    assert.deepStrictEqual(yield* findings(filename), [])
    change("INSERT INTO document SELECT 9999, session, 9999, role, created, size FROM document LIMIT 1")
    assert.deepStrictEqual(yield* findings(filename), ["the search index has 2 texts that the log has not"])
    yield* rebuilt
    change("DELETE FROM terms WHERE rowid = 2")
    assert.deepStrictEqual(yield* findings(filename), ["the search index has 1 text that the log has not"])
    yield* rebuilt
    change("UPDATE terms_data SET block = zeroblob(40) WHERE id > 100")
    assert.include((yield* findings(filename)).join(), "is damaged")
    yield* rebuilt
    assert.deepStrictEqual(yield* findings(filename), [])
  })
)

it.scoped(
  "SE-61: missing texts of all pages are counted; other words of a text are not seen, and a rebuild mends them",
  () =>
    Effect.gen(function* () {
      const filename = yield* temporaryDatabase
      const rebuilt = Effect.flatMap(Search, (search) => search.rebuild()).pipe(Effect.provide(searchAt(filename)))
      yield* begun(session(), 300, 1).pipe(Effect.provide(searchAt(filename)))
      yield* rebuilt
      const change = (...statements: ReadonlyArray<string>) => {
        const db = new Sqlite(searchPath(filename))
        db.unsafeMode()
        const { count, last } = db.prepare("SELECT count(*) AS count, max(position) AS last FROM document").get() as {
          readonly count: number
          readonly last: number
        }
        for (const statement of statements) db.prepare(statement).run({ last })
        db.close()
        return count
      }
      const hits = Effect.map(places("heron"), ({ length }) => length).pipe(Effect.provide(searchAt(filename)))
      assert.isAbove(change(), 2 * 512)
      change("DELETE FROM document WHERE position > :last - 3 OR position < 4")
      assert.match((yield* findings(filename)).join(), /^the search index misses [3-6] texts$/)
      yield* rebuilt
      change("DELETE FROM terms WHERE rowid = :last", "INSERT INTO terms (rowid, text) VALUES (:last, 'heron')")
      assert.deepStrictEqual(yield* findings(filename), [])
      assert.strictEqual(yield* hits, 1)
      yield* rebuilt
      assert.strictEqual(yield* hits, 0)
    })
)
