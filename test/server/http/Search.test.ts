/** Searches over TCP. */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Search } from "../../../packages/log/src/search/Search.ts"
import * as SqlSearch from "../../../packages/log/src/search/SqlSearch.ts"
import * as Store from "../../../packages/log/src/Store.ts"
import { newSession, runtime, say, temporaryFolder } from "../../support/Harness.ts"
import * as ServedApi from "./support/ServedApi.ts"
import { answer, Served } from "./support/ServedApi.ts"

it.scopedLive(
  "HT-39: a search has the result of the search service, with events that were not indexed before, and a faulty one is 400",
  () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "daybook.sqlite")
      const searching = Layer.provide(SqlSearch.layer, Store.layerReading({ filename }))
      yield* Effect.gen(function* () {
        const { id } = yield* newSession()
        yield* say(id, "an unusual aardvark", { resume: false })
      }).pipe(Effect.provide(runtime({ filename })))
      yield* Effect.gen(function* () {
        const search = yield* Search
        const served = yield* ServedApi.serve({ search })
        const at = Effect.provideService(Served, served)
        const found = yield* at(answer("/search?query=aardvark"))
        // The score falls with time.
        const timeless = (page: unknown) => JSON.stringify(page).replaceAll(/"score":[\d.]+/g, "")
        assert.strictEqual(timeless(found.body), timeless(yield* search.search({ query: "aardvark" })))
        assert.lengthOf((yield* search.search({ query: "aardvark" })).items, 1)
        const prompts = yield* at(answer("/prompts?words=unus"))
        assert.deepEqual(prompts.body, JSON.parse(JSON.stringify(yield* search.prompts({ words: "unus" }))))
        const faulty = yield* at(answer("/search?query=%22"))
        assert.strictEqual(faulty.status, 400)
        assert.deepInclude(faulty.body, { _tag: "InvalidInput" })
      }).pipe(Effect.provide(Layer.merge(searching, runtime({ filename }))))
    })
)

it.scopedLive("HT-39: a server without an index says so", () =>
  Effect.gen(function* () {
    const { body, status } = yield* answer("/search?query=x")
    assert.strictEqual(status, 501)
    assert.deepInclude(body, { _tag: "NotServed", what: "search" })
  }).pipe(Effect.provide(ServedApi.layer()))
)
