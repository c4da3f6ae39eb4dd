/** Search over a log in PostgreSQL: the contract, and an index on each of two machines. */
import { existsSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Context, Effect, Layer, TestClock } from "effect"
import { describe } from "vitest"
import * as Daybook from "../../packages/embedded/src/Daybook.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { verify } from "../../packages/log/src/search/Indexing.ts"
import { Search } from "../../packages/log/src/search/Search.ts"
import * as SqlSearch from "../../packages/log/src/search/SqlSearch.ts"
import * as Postgres from "../../packages/postgres/src/Postgres.ts"
import { promptHistoryContract } from "../contracts/PromptHistoryContract.ts"
import { searchContract } from "../contracts/SearchContract.ts"
import { tracesIn } from "../log/support/Traces.ts"
import { places } from "../search/support/Searching.ts"
import { temporaryFolder } from "../support/Database.ts"
import { admitted, created, message, session } from "../support/Logs.ts"
import { lacks } from "../support/Parts.ts"
import { freshSchema, postgresLog, postgresLogAt, query, withSettlingClock } from "../support/Postgres.ts"
import * as ScriptedModel from "../support/ScriptedModel.ts"

/** A word that prefix compression cannot hide. */
const word = "xylophonist"

const searchAt = (settings: Postgres.Settings) => Layer.provideMerge(SqlSearch.layer, postgresLogAt(settings))

/** The path of an index in a folder that does not exist yet. */
const indexFile = Effect.map(temporaryFolder, (folder) => join(folder, "machine", "book.search"))

/** A machine: a node with an index in a file. */
const machine = (settings: Postgres.Settings) =>
  Effect.gen(function* () {
    const searchIndex = yield* indexFile
    return { searchIndex, context: yield* Layer.build(Layer.fresh(searchAt({ ...settings, searchIndex }))) }
  })

const said = Effect.fnUntraced(function* (...prompts: ReadonlyArray<string>) {
  const [log, id] = [yield* EventLog, session()]
  yield* log.append(id, [created, ...prompts.map((text) => admitted(message(), text))])
  return id
})

const count = (query: string) => Effect.map(places(query), ({ length }) => length)

describe.skipIf(lacks("postgres"))("search on PostgreSQL", () => {
  const layer = Layer.provideMerge(SqlSearch.layer, postgresLog)
  searchContract({ layer })
  promptHistoryContract({ layer })

  it.scopedLive("PG-50: two machines find the same, each in a private file of its own, made from nothing", () =>
    Effect.gen(function* () {
      const settings = yield* freshSchema
      const one = yield* machine(settings)
      const id = yield* Effect.provide(said("a heron"), one.context)
      assert.strictEqual(yield* Effect.provide(count("heron"), one.context), 1)
      const other = yield* machine(settings)
      assert.deepStrictEqual(yield* Effect.provide(places("heron"), other.context), [[id, 1, "user"]])
      yield* Effect.provide(said("a heron and a stork"), other.context)
      assert.strictEqual(yield* Effect.provide(count("heron"), one.context), 2)
      for (const { searchIndex } of [one, other]) {
        assert.strictEqual(statSync(searchIndex).mode & 0o777, 0o600)
        assert.strictEqual(statSync(dirname(searchIndex)).mode & 0o777, 0o700)
      }
    })
  )

  it.scopedLive("PG-50: without a file the index is temporary, and each process builds its own", () =>
    Effect.gen(function* () {
      const settings = yield* freshSchema
      const open = Layer.build(Layer.fresh(searchAt(settings)))
      const [one, other] = [yield* open, yield* open]
      yield* Effect.provide(said("a heron"), one)
      assert.strictEqual(yield* Effect.provide(count("heron"), one), 1)
      assert.strictEqual((yield* Context.get(other, Search).progress).position, 0)
      assert.strictEqual(yield* Effect.provide(count("heron"), other), 1)
      assert.deepStrictEqual(yield* Effect.provide(verify, other), [])
    })
  )

  it.scopedLive(
    "SE-7: an index of another schema, or of one that was made anew, counts as empty, and is built again",
    () =>
      Effect.gen(function* () {
        const [settings, others, searchIndex] = [yield* freshSchema, yield* freshSchema, yield* indexFile]
        const at = <A, E>(
          given: Postgres.Settings,
          effect: Effect.Effect<A, E, Layer.Layer.Success<ReturnType<typeof searchAt>>>
        ) => Effect.scoped(Effect.provide(effect, Layer.fresh(searchAt({ ...given, searchIndex }))))
        const before = Effect.gen(function* () {
          const search = yield* Search
          const [found, prompts] = [yield* search.search({ query: "heron" }), yield* search.prompts()]
          return [found.items.length, found.behind, prompts.items.length]
        })
        yield* at(settings, Effect.zipRight(said("a heron", "a stork"), count("heron")))
        for (const given of [others, settings]) {
          if (given === settings) yield* query(String(given.url), `DROP SCHEMA ${given.schema} CASCADE`)
          yield* at(given, said("a gull"))
          assert.deepStrictEqual(yield* at(given, before), [0, 2, 0])
          assert.deepStrictEqual(yield* at(given, verify), [])
          assert.strictEqual(yield* at(given, count("heron")), 0)
          assert.strictEqual(yield* at(given, count("gull")), 1)
        }
      })
  )

  it.scopedLive(
    "PG-51: what one machine removes is in no result of another, and no byte of its index after its next update",
    () =>
      Effect.gen(function* () {
        const settings = yield* freshSchema
        const [one, other] = [yield* machine(settings), yield* machine(settings)]
        const search = Context.get(other.context, Search)
        const traces = () => tracesIn(dirname(other.searchIndex), "ylophonist")
        yield* Effect.provide(said("the drummer plays"), one.context)
        for (const text of [`the ${word} plays`, `another ${word} plays`]) {
          const id = yield* Effect.provide(said(text), one.context)
          assert.strictEqual(yield* Effect.provide(count(word), other.context), 1)
          assert.strictEqual(yield* Effect.provide(count(word), one.context), 1)
          yield* Context.get(one.context, EventLog).remove(id)
          assert.deepStrictEqual(tracesIn(dirname(one.searchIndex), "ylophonist"), {})
          assert.deepStrictEqual((yield* search.search({ query: word })).items, [])
          assert.deepStrictEqual((yield* search.prompts({ words: word })).items, [])
          assert.deepStrictEqual(yield* Effect.provide(verify, other.context), [])
          assert.isNotEmpty(traces())
          yield* search.update()
          assert.deepStrictEqual(traces(), {})
        }
        assert.strictEqual(yield* Effect.provide(count("drummer"), other.context), 1)
        assert.deepStrictEqual(yield* Effect.provide(verify, other.context), [])
      })
  )

  it.scopedLive("PG-51: while a reader of the index needs a removed session's words, each update tries again", () =>
    Effect.gen(function* () {
      const { context, searchIndex } = yield* machine(yield* freshSchema)
      const id = yield* Effect.provide(said(`the ${word} plays`), context)
      yield* Effect.provide(count(word), context)
      const reader = new Sqlite(searchIndex, { readonly: true })
      reader.exec("BEGIN")
      reader.prepare("SELECT * FROM document").all()
      yield* Context.get(context, EventLog).remove(id)
      yield* Context.get(context, Search).update()
      assert.isNotEmpty(tracesIn(dirname(searchIndex), "ylophonist"))
      reader.close()
      yield* Context.get(context, Search).update()
      assert.deepStrictEqual(tracesIn(dirname(searchIndex), "ylophonist"), {})
    })
  )

  it.scoped("SE-9, PG-50: the option `search` keeps the file current, also with what another node stores", () =>
    Effect.gen(function* () {
      const [settings, searchIndex] = [yield* freshSchema, yield* indexFile]
      yield* withSettlingClock
      const database = Postgres.config({ ...settings, searchIndex })
      yield* Layer.build(Daybook.layer({ database, search: true }).pipe(Layer.provide(ScriptedModel.layer())))
      const other = yield* Layer.build(Layer.fresh(searchAt({ ...settings, searchIndex })))
      yield* TestClock.adjust("50 millis")
      yield* Effect.provide(said("a heron"), other)
      yield* TestClock.adjust("3 seconds")
      const { behind, items } = yield* Context.get(other, Search).search({ query: "heron" })
      assert.deepStrictEqual([behind, items.length], [0, 1])
    })
  )

  it.scopedLive("SE-60: missing texts are found, and a rebuild adds them", () =>
    Effect.gen(function* () {
      const { context, searchIndex } = yield* machine(yield* freshSchema)
      yield* Effect.provide(Effect.zipRight(said("a heron"), count("heron")), context)
      const db = new Sqlite(searchIndex)
      db.exec("DELETE FROM document")
      db.close()
      assert.deepStrictEqual(yield* Effect.provide(verify, context), ["the search index misses 1 text"])
      yield* Context.get(context, Search).rebuild()
      assert.deepStrictEqual(yield* Effect.provide(verify, context), [])
      assert.isTrue(existsSync(searchIndex))
    })
  )
})
