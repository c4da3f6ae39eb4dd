/** The transcript in headless Chromium: pages that are loaded while one scrolls, and texts that are being written. */
import { afterAll, assert, beforeAll, describe, layer } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import type { Browser } from "playwright-core"
import { newSession, say } from "../support/Harness.ts"
import * as Script from "../support/ScriptedModel.ts"
import { hasChromium, launch } from "../watch/support/Chromium.ts"
import * as Sample from "./support/Sample.ts"
import * as ServedInspector from "./support/ServedInspector.ts"

let browser: Browser
beforeAll(async () => {
  if (hasChromium) browser = await launch()
})
afterAll(() => browser?.close())

const act = <A>(use: () => Promise<A>): Effect.Effect<A> => Effect.promise(use)

describe.runIf(hasChromium)("the transcript", () => {
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
        const total = 142
        for (const loaded of [40, 80, 120, total]) {
          yield* act(() => list.locator(`li[aria-setsize="${loaded}"]`).first().waitFor({ state: "attached" }))
          yield* act(() => page.evaluate("document.querySelector('.transcript').scrollTop = 0"))
        }
        yield* act(() => list.getByText("Turn 0: ").waitFor())
        assert.strictEqual(pages(), 4)
      })
    )

    it.scoped("IP-8: a text is shown while it is written, and once when it is whole", () =>
      Effect.gen(function* () {
        const { id } = yield* newSession("/tmp")
        const model = yield* Script.ScriptedModel
        const gate = yield* Deferred.make<void>()
        const { page } = yield* ServedInspector.visit(browser, `/sessions/${id}/transcript`)
        yield* act(() => page.locator(".facts .follow.live").waitFor())
        const delta = (text: string) => ({ type: "text-delta" as const, id: "t", delta: text })
        yield* model.answer(
          Script.held([{ type: "text-start", id: "t" }, delta("Half of "), delta("an ans")], gate, [
            delta("wer."),
            { type: "text-end", id: "t" },
            Script.finish()
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
