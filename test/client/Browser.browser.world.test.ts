/** The client in headless Chromium: its bundle follows a session, over a connection that breaks too. */
import { assert, beforeAll, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Browser } from "playwright-core"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { begin, renamed, session } from "../contracts/Samples.ts"
import { Served, serve, token } from "../server/http/support/ServedApi.ts"
import { sharedBrowser, visit } from "../watch/support/Chromium.ts"
import * as Cutter from "./support/Cutter.ts"
import { bundled } from "./support/Follower.ts"
import * as Rude from "./support/Rude.ts"
import { layer as served } from "./support/ServedClient.ts"
import { lacks } from "../support/Parts.ts"

let browser: Browser
beforeAll(async () => {
  browser = await sharedBrowser()
})

const act = <A>(use: () => Promise<A>): Effect.Effect<A> => Effect.promise(use)

const html = '<!doctype html><title>Client</title><script type="module" src="client.js"></script><ol></ol>'
const say = 'document.querySelector("ol").append(Object.assign(document.createElement("li"), { textContent: seq }))'

describe.skipIf(lacks("chromium"))("the client in a browser", () => {
  layer(served(), { excludeTestServices: true })((it) => {
    it.scoped("HT-63: its bundle replays and follows, each event once, over a connection that breaks", () =>
      Effect.gen(function* () {
        const [log, { url }, id] = [yield* EventLog, yield* Served, session()]
        yield* begin(id, 30)
        const cutter = yield* Cutter.make(url, () => undefined)
        const script = yield* bundled(id, "location.origin", say)
        const { faults, page, requests } = yield* visit(browser, `${cutter.url}/reference`)
        // A page of the server's own origin, without a policy that would refuse the script.
        yield* act(() =>
          page.route("**/client.html", (route) => route.fulfill({ contentType: "text/html", body: html }))
        )
        yield* act(() =>
          page.route("**/client.js", (route) => route.fulfill({ contentType: "text/javascript", body: script }))
        )
        yield* act(() => page.goto(`${cutter.url}/client.html`))
        const shown = (count: number) =>
          act(() => page.locator(`li:nth-of-type(${count})`).waitFor({ state: "attached" }))
        yield* shown(30)
        yield* log.append(id, [renamed("while it follows")])
        yield* shown(31)
        yield* cutter.cut
        yield* log.append(id, [renamed("while it is away")])
        yield* shown(32)
        const seqs = yield* act(() => page.locator("li").allTextContents())
        assert.deepEqual(
          seqs,
          Array.from({ length: 32 }, (_, index) => String(index + 1))
        )
        assert.isAtLeast(requests.filter((each) => each.endsWith("/events")).length, 2)
        assert.deepEqual(
          faults.filter((fault) => !/ERR_|Failed to load/.test(fault)),
          []
        )
      })
    )

    it.scoped("HT-505: a page of a permitted other origin follows events, and changes the session", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id, 3)
        let script = ""
        const site = yield* Rude.serve((_number, response, { url: path }) => {
          const isScript = path?.endsWith(".js") === true
          response.writeHead(200, { "content-type": isScript ? "text/javascript" : "text/html" })
          response.end(isScript ? script : html)
        })
        const { url } = yield* serve({ origins: [site.url] })
        script = yield* bundled(id, JSON.stringify(url), say)
        const { page } = yield* visit(browser, `${site.url}/client.html`)
        const shown = (count: number) =>
          act(() => page.locator(`li:nth-of-type(${count})`).waitFor({ state: "attached" }))
        yield* shown(3)
        yield* log.append(id, [renamed("while it follows")])
        yield* shown(4)
        const status = yield* act(() =>
          page.evaluate(
            async ([at, authorization]) => {
              const headers = { authorization, "content-type": "application/json" }
              return (await fetch(at, { method: "PUT", headers, body: '{"title":"from elsewhere"}' })).status
            },
            [`${url}/sessions/${id}/title`, `Bearer ${token}`] as const
          )
        )
        assert.strictEqual(status, 204)
        yield* shown(5)
      })
    )
  })
})
