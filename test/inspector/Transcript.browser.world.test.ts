/** The transcript in headless Chromium: pages that are loaded while one scrolls, and texts that are being written. */
import { assert, beforeAll, describe, layer } from "@effect/vitest"
import { Array as Arr, Deferred, Effect } from "effect"
import type { Browser, Page } from "playwright-core"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { newSession, say, scene } from "../support/Harness.ts"
import * as ScriptedModel from "../support/ScriptedModel.ts"
import { sharedBrowser } from "../watch/support/Chromium.ts"
import * as Sample from "./support/Sample.ts"
import * as ServedInspector from "./support/ServedInspector.ts"
import { lacks } from "../support/Parts.ts"

let browser: Browser
beforeAll(async () => {
  browser = await sharedBrowser()
})

const act = <A>(use: () => Promise<A>): Effect.Effect<A> => Effect.promise(use)

/** A reader who scrolls up in every frame until the page has the element. */
const scrollUpTo = (page: Page, selector: string) =>
  act(() =>
    page.evaluate(`new Promise((resolve) => {
      const step = () => {
        document.querySelector(".transcript").scrollTop = 0
        if (document.querySelector(${JSON.stringify(selector)}) === null) requestAnimationFrame(step)
        else resolve()
      }
      step()
    })`)
  )

describe.skipIf(lacks("chromium"))("the transcript", () => {
  layer(ServedInspector.layer(), { excludeTestServices: true })((it) => {
    it.scoped("IP-8: it begins at its end, and loads earlier pages up to the first message while one scrolls", () =>
      Effect.gen(function* () {
        // 24 events a turn, one message each: four pages.
        yield* Sample.store("ses_pages", Sample.long("pages", 3_400))
        const { page, requests } = yield* ServedInspector.visit(browser, "/sessions/ses_pages/transcript")
        const pages = () => requests.filter((url) => url.endsWith("/messages")).length
        const list = page.getByRole("region", { name: "Transcript" })
        yield* act(() =>
          list
            .getByText(/^Turn 14\d: /)
            .last()
            .waitFor()
        )
        assert.strictEqual(pages(), 1)
        yield* act(() => list.locator('li[aria-setsize="40"]').first().waitFor({ state: "attached" }))
        yield* scrollUpTo(page, 'li[data-index="0"][aria-setsize="142"]')
        yield* act(() => list.getByText("Turn 0: ").waitFor())
        assert.strictEqual(pages(), 4)
      })
    )

    it.scoped("IP-8: what happens while the session is read is shown", () =>
      Effect.gen(function* () {
        const { id, log } = yield* scene("/tmp")
        const model = yield* ScriptedModel.ScriptedModel
        yield* model.answer(ScriptedModel.says("An answer in between."))
        const { page } = yield* ServedInspector.visit(browser)
        const [asked, answered] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        yield* act(() =>
          page.route(`**/sessions/${id}/head`, async (route) => {
            Deferred.unsafeDone(asked, Effect.void)
            await Effect.runPromise(Deferred.await(answered))
            await route.continue()
          })
        )
        yield* act(() => page.evaluate(`location.hash = "/sessions/${id}/transcript"`))
        yield* Deferred.await(asked)
        yield* say(id, "A question in between")
        yield* Effect.flatMap(Sessions, (sessions) => sessions.wait(id))
        yield* log.append(id, [draft("session.next.renamed", { title: "A title in between" })])
        yield* Deferred.succeed(answered, undefined)
        yield* act(() => page.getByRole("heading", { name: "A title in between" }).waitFor())
        yield* act(() => page.getByRole("region", { name: "Transcript" }).getByText("An answer in between.").waitFor())
      })
    )

    it.scoped("IP-8: pages that do not fill the window are loaded without a scroll, and once each", () =>
      Effect.gen(function* () {
        const created = Sample.long("short", 0).slice(0, 1)
        yield* Sample.store("ses_short", [...created, ...Sample.prompts("short", 90)])
        const { page, requests } = yield* ServedInspector.visit(browser, "/sessions/ses_short/transcript", {
          viewport: { width: 1_200, height: 12_000 }
        })
        yield* act(() => page.locator('.transcript li[aria-setsize="90"]').first().waitFor())
        yield* act(() => page.getByText("Prompt 0", { exact: true }).waitFor())
        assert.strictEqual(requests.filter((url) => url.endsWith("/messages")).length, 3)
      })
    )

    it.scoped("IP-8: a page that could not be read is told, and read when the reader tries again", () =>
      Effect.gen(function* () {
        yield* Sample.store("ses_again", Sample.long("again", 1_400))
        const { page, requests } = yield* ServedInspector.visit(browser)
        yield* act(() =>
          page.route(/messages\?.*cursor=/, (route) => route.fulfill({ status: 503, body: "{}" }), { times: 1 })
        )
        yield* act(() => page.evaluate('location.hash = "/sessions/ses_again/transcript"'))
        yield* act(() => page.locator('.transcript li[aria-setsize="40"]').first().waitFor())
        yield* scrollUpTo(page, '.view [role="alert"]')
        assert.strictEqual(requests.filter((url) => url.endsWith("/messages")).length, 2)
        yield* act(() => page.getByRole("alert").getByRole("button", { name: "Try again" }).click())
        yield* act(() => page.locator('.transcript li[aria-setsize="59"]').first().waitFor({ state: "attached" }))
        yield* act(() => page.getByRole("alert").waitFor({ state: "detached" }))
      })
    )

    it.scoped("IP-8: a reader who scrolled away stays there when a message comes before the event of the scroll", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, yield* Sample.store("ses_away", Sample.long("away", 2_400))]
        const { page } = yield* ServedInspector.visit(browser, "/sessions/ses_away/transcript")
        yield* act(() => page.locator(".facts .follow.live").waitFor())
        yield* act(() => page.locator('.transcript li[aria-posinset="40"]').waitFor())
        // The page does not hear of the scroll.
        yield* act(() => page.evaluate(`addEventListener("scroll", (event) => event.stopPropagation(), true)`))
        yield* act(() => page.evaluate(`document.querySelector(".transcript").scrollTop = 1000`))
        yield* log.append(
          id,
          Arr.map(Sample.prompts("away", 1), ([, draft]) => draft)
        )
        yield* act(() => page.locator('.transcript li[aria-setsize="41"]').first().waitFor({ state: "attached" }))
        assert.strictEqual(yield* act(() => page.evaluate('document.querySelector(".transcript").scrollTop')), 1_000)
      })
    )

    it.scoped("IP-8: a text is shown while it is written, and once when it is whole", () =>
      Effect.gen(function* () {
        const { id } = yield* newSession("/tmp")
        const model = yield* ScriptedModel.ScriptedModel
        const gate = yield* Deferred.make<void>()
        const { page } = yield* ServedInspector.visit(browser, `/sessions/${id}/transcript`)
        yield* act(() => page.locator(".facts .follow.live").waitFor())
        const delta = (text: string) => ({ type: "text-delta" as const, id: "t", delta: text })
        yield* model.answer(
          ScriptedModel.held([{ type: "text-start", id: "t" }, delta("Half of "), delta("an ans")], gate, [
            delta("wer."),
            { type: "text-end", id: "t" },
            ScriptedModel.finish()
          ])
        )
        yield* say(id, "Go.")
        const answer = page.locator(".message.assistant")
        yield* act(() => answer.getByText("Half of an ans", { exact: true }).waitFor())
        yield* act(() => answer.getByText("Working…").waitFor())
        yield* Deferred.succeed(gate, undefined)
        yield* act(() => answer.getByText("Half of an answer.", { exact: true }).waitFor())
        yield* act(() => answer.getByText("Working…").waitFor({ state: "detached" }))
        assert.strictEqual(yield* act(() => answer.getByText("Half of").count()), 1)
      })
    )
  })
})
