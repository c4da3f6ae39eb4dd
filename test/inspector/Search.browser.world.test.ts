/** A search in the inspector, in headless Chromium, with the index of a store in a file. */
import { join } from "node:path"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Browser } from "playwright-core"
import { bundled } from "../../packages/inspector/scripts/page.mjs"
import * as Inspector from "../../packages/inspector/src/Inspector.ts"
import { Search } from "../../packages/log/src/search/Search.ts"
import * as SqlSearch from "../../packages/log/src/search/SqlSearch.ts"
import * as Store from "../../packages/log/src/Store.ts"
import * as ServedApi from "../server/http/support/ServedApi.ts"
import { runtime, temporaryFolder } from "../support/Harness.ts"
import { sharedBrowser } from "../watch/support/Chromium.ts"
import * as Sample from "./support/Sample.ts"
import * as ServedInspector from "./support/ServedInspector.ts"
import { lacks } from "../support/Parts.ts"

let browser: Browser
beforeAll(async () => {
  browser = await sharedBrowser()
})

const act = <A>(use: () => Promise<A>): Effect.Effect<A> => Effect.promise(use)

describe.skipIf(lacks("chromium"))("a search in the inspector", () => {
  it.scopedLive("IP-7: a text is found in its session with its matches marked, and leads to its place", () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "daybook.sqlite")
      const searching = Layer.provide(SqlSearch.layer, Store.layerReading({ filename }))
      yield* Effect.provide(Sample.store("ses_found", Sample.rich("found")), runtime({ filename }))
      yield* Effect.gen(function* () {
        const search = yield* Search
        yield* search.update()
        const pages = Inspector.pages(yield* act(() => bundled()))
        const served = yield* ServedApi.serve({ search, pages })
        const { faults, page } = yield* Effect.provideService(ServedInspector.visit(browser), ServedApi.Served, served)
        yield* act(() => page.getByRole("searchbox", { name: "Search sessions" }).fill("rounding"))
        const found = page.getByRole("region", { name: "Texts found" })
        yield* act(() => found.locator("mark", { hasText: "rounding" }).first().waitFor())
        yield* act(() => found.getByRole("link").first().click())
        yield* act(() => page.locator("strong", { hasText: "rounding" }).waitFor())
        assert.include(page.url(), "#/sessions/ses_found/transcript?at=")
        assert.deepEqual(faults, [])
      }).pipe(Effect.provide(Layer.merge(searching, runtime({ filename }))))
    })
  )
})
