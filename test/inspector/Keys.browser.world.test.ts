/**
 * What a person does quickly in the inspector, in headless Chromium: keys, typing, and lists that change meanwhile. Each test has a
 * server of its own, so that nothing else changes its list.
 */
import { tmpdir } from "node:os"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Queue } from "effect"
import type { Browser, Route } from "playwright-core"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { newSession } from "../support/Harness.ts"
import { sharedBrowser } from "../watch/support/Chromium.ts"
import * as ServedInspector from "./support/ServedInspector.ts"
import { lacks } from "../support/Parts.ts"

let browser: Browser
beforeAll(async () => {
  browser = await sharedBrowser()
})

const act = <A>(use: () => Promise<A>): Effect.Effect<A> => Effect.promise(use)

/** So many sessions, in the order of the list. */
const sessionsOf = Effect.fnUntraced(function* (count: number) {
  yield* Effect.replicateEffect(newSession(tmpdir()), count)
  const { items } = yield* (yield* Sessions).list({ limit: count })
  return items.map(({ id }): SessionID => id)
})

describe.skipIf(lacks("chromium"))("a quick person", () => {
  it.scopedLive("IP-21: Alt with arrows changes the view and the session, as fast as the keys come", () =>
    Effect.gen(function* () {
      const [first, second, third] = yield* sessionsOf(3)
      const { page } = yield* ServedInspector.visit(browser, `/sessions/${first}/transcript`)
      yield* act(() => page.locator('.session[aria-current="page"]').waitFor())
      // The keys of one task: the page hears of no new address between them.
      const keys = ["Down", "Down", "Down", "Right", "Right", "Left", "Up", "Up", "Up"]
      const places = yield* act(() =>
        page.evaluate(`${JSON.stringify(keys)}.map((key) => {
          dispatchEvent(new KeyboardEvent("keydown", { key: "Arrow" + key, altKey: true }))
          return location.hash
        })`)
      )
      assert.deepStrictEqual(places, [
        `#/sessions/${second}/transcript`,
        `#/sessions/${third}/transcript`,
        `#/sessions/${third}/transcript`,
        `#/sessions/${third}/tree`,
        `#/sessions/${third}/timeline`,
        `#/sessions/${third}/tree`,
        `#/sessions/${second}/tree`,
        `#/sessions/${first}/tree`,
        `#/sessions/${first}/tree`
      ])
      yield* act(() => page.locator('.tabs [aria-current="page"]', { hasText: "Tree" }).waitFor())
      yield* act(() => page.keyboard.press("Alt+ArrowDown"))
      yield* act(() => page.waitForURL((url) => url.hash === `#/sessions/${second}/tree`))
      yield* act(() => page.keyboard.press("Alt+ArrowUp"))
      yield* act(() => page.waitForURL((url) => url.hash === `#/sessions/${first}/tree`))
    }).pipe(Effect.provide(ServedInspector.layer()))
  )

  it.scopedLive("IP-7: older sessions that are shown stay when the list is read again", () =>
    Effect.gen(function* () {
      const last = (yield* sessionsOf(60))[59]
      assert(last !== undefined)
      const { page } = yield* ServedInspector.visit(browser)
      const sessions = page.locator(".session")
      yield* act(() => page.getByRole("button", { name: "Show older sessions" }).click())
      yield* act(() => sessions.nth(59).waitFor())
      yield* (yield* Sessions).rename(last, "A new title")
      yield* act(() => sessions.first().getByText("A new title").waitFor())
      assert.strictEqual(yield* act(() => sessions.count()), 60)
    }).pipe(Effect.provide(ServedInspector.layer()))
  )

  it.scopedLive("IP-21: what is typed while a prompt is sent stays in the box", () =>
    Effect.gen(function* () {
      const { id } = yield* newSession(tmpdir())
      const { page } = yield* ServedInspector.visit(browser, `/sessions/${id}/transcript`)
      const box = page.getByRole("textbox", { name: "Prompt" })
      const sent = yield* Queue.unbounded<Route>()
      yield* act(() =>
        page.route("**/prompts", (route) =>
          route.request().method() === "POST" ? void Queue.unsafeOffer(sent, route) : route.continue()
        )
      )
      yield* act(() => box.fill("The first"))
      yield* act(() => box.press("Enter"))
      const request = yield* Queue.take(sent)
      yield* act(() => box.fill("The first and more"))
      yield* act(() => request.continue())
      yield* act(() => page.locator('button[type="submit"]:enabled').waitFor())
      assert.strictEqual(yield* act(() => box.inputValue()), "The first and more")
    }).pipe(Effect.provide(ServedInspector.layer()))
  )
})
