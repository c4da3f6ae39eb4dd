/**
 * The inspector in headless Chromium. Method: a server with a scripted model runs in the test's process; the test stores logs and
 * scripts answers, and looks at the page as a person does, by names and roles.
 */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { assert, beforeAll, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Browser, Page } from "playwright-core"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
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

const visit = (place?: string, options?: Parameters<typeof ServedInspector.visit>[2]) =>
  ServedInspector.visit(browser, place, options)

const shows = (page: Page, text: string | RegExp) => act(() => page.getByText(text).first().waitFor())

/** axe's script, run in the page as a person would not: it is not of the page's origin. */
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

/** What axe finds that is serious or critical. */
const seriousFaults = (page: Page) =>
  act(async (): Promise<ReadonlyArray<string>> => {
    await page.evaluate(axe)
    return page.evaluate(
      `axe.run({ resultTypes: ["violations"] }).then(({ violations }) => violations
        .filter(({ impact }) => impact === "serious" || impact === "critical")
        .map(({ id, nodes }) => id + ": " + nodes.slice(0, 3).map(({ html }) => html.slice(0, 200)).join(" | ")))`
    )
  })

/** Where screenshots go; without it none are made. */
const pictures = process.env["DAYBOOK_PICTURES"]
const picture = (page: Page, name: string) =>
  pictures === undefined ? Effect.void : act(() => page.screenshot({ path: `${pictures}/${name}.png` }))

const views = {
  transcript: /Shall I change it too/,
  timeline: "Longest turns, tools and compactions",
  requests: "as in the turn before",
  spending: "Largest requests",
  context: "Epoch 2",
  events: "activity.settled"
} as const

describe.skipIf(lacks("chromium"))("the inspector", () => {
  layer(ServedInspector.layer(), { excludeTestServices: true })((it) => {
    it.scoped("IP-7, IP-8: the list shows sessions, the transcript their messages, and new answers appear", () =>
      Effect.gen(function* () {
        const { id } = yield* newSession("/tmp")
        const { faults, page } = yield* visit()
        yield* shows(page, id)
        yield* act(() => page.getByRole("link", { name: new RegExp(id) }).click())
        yield* shows(page, "No message yet. Write the first prompt below.")
        const model = yield* ScriptedModel.ScriptedModel
        yield* model.answer(ScriptedModel.says("The answer has **bold** words and `code`."))
        yield* act(() => page.getByRole("textbox", { name: "Prompt" }).fill("A question of a person"))
        yield* act(() => page.getByRole("button", { name: "Send" }).click())
        yield* shows(page, "A question of a person")
        yield* act(() => page.locator("strong", { hasText: "bold" }).waitFor())
        yield* act(() => page.locator(".badge", { hasText: "completed" }).waitFor())
        assert.deepEqual(faults, [])
      })
    )

    it.scoped("IP-4: the token leaves the address and stays in the tab; another one is refused", () =>
      Effect.gen(function* () {
        const { page, requests } = yield* visit()
        yield* act(() => page.getByRole("navigation", { name: "Sessions" }).waitFor())
        assert.notInclude(page.url(), "token")
        assert.deepEqual(
          requests.filter((url) => url.includes("test-token")),
          []
        )
        yield* act(() => page.reload())
        yield* act(() => page.getByRole("navigation", { name: "Sessions" }).waitFor())
        yield* act(() => page.evaluate(`sessionStorage.setItem("daybook.token", "wrong")`))
        yield* act(() => page.reload())
        yield* shows(page, "The server did not accept the token of this tab.")
        yield* act(() => page.getByLabel("Token").fill("test-token-of-the-server"))
        yield* act(() => page.getByRole("button", { name: "Continue" }).click())
        yield* act(() => page.getByRole("navigation", { name: "Sessions" }).waitFor())
      })
    )

    it.scoped("IP-9: a running session can be steered and interrupted, and a waiting prompt withdrawn", () =>
      Effect.gen(function* () {
        const { id } = yield* newSession("/tmp")
        const model = yield* ScriptedModel.ScriptedModel
        const sessions = yield* Sessions
        yield* say(id, "first")
        yield* model.request
        const { page } = yield* visit(`/sessions/${id}/transcript`)
        yield* act(() => page.getByRole("textbox", { name: "Prompt" }).fill("a queued one"))
        yield* act(() => page.getByRole("button", { name: "Queue" }).click())
        const inbox = page.getByRole("region", { name: "Inbox" })
        yield* act(() => inbox.getByText("a queued one").waitFor())
        yield* act(() => inbox.getByRole("button", { name: "Withdraw" }).click())
        yield* act(() => inbox.waitFor({ state: "detached" }))
        assert.deepEqual(yield* sessions.inbox(id), [])
        yield* act(() => page.getByRole("button", { name: "Interrupt" }).click())
        yield* act(() => page.locator(".facts .badge", { hasText: "interrupted" }).waitFor())
      })
    )

    it.scoped("IP-22: each view is drawn without a fault, and axe finds nothing serious, light and dark", () =>
      Effect.gen(function* () {
        yield* Sample.store("ses_rich", Sample.rich("rich"))
        for (const colorScheme of ["light", "dark"] as const) {
          const { faults, page } = yield* visit("/", { colorScheme })
          for (const [view, text] of Object.entries(views)) {
            yield* act(() => page.evaluate(`location.hash = "/sessions/ses_rich/${view}"`))
            yield* shows(page, text)
            if (view === "timeline")
              yield* act(() => page.locator('.timeline .bar [role="status"]:empty').waitFor({ state: "attached" }))
            assert.deepEqual(yield* seriousFaults(page), [], `${view}, ${colorScheme}`)
            if (colorScheme === (view === "events" ? "dark" : "light")) yield* picture(page, view)
          }
          assert.deepEqual(faults, [])
        }
      })
    )

    it.scoped("IP-12: the timeline is zoomed and read with keys, and leads to the events", () =>
      Effect.gen(function* () {
        yield* Sample.store("ses_keys", Sample.rich("keys"))
        const { page } = yield* visit("/sessions/ses_keys/timeline")
        yield* shows(page, "5 turns, 4 tool calls, 9 h from first to last event")
        const canvas = page.getByRole("application", { name: /Picture of the timeline/ })
        yield* act(() => canvas.press("ArrowRight"))
        yield* act(() => page.locator(".about", { hasText: "The totals of orders are off by a cent" }).waitFor())
        yield* act(() => page.getByRole("button", { name: "turn 2, large-1" }).click())
        yield* act(() => page.locator(".about", { hasText: "12.2 s" }).waitFor())
        yield* act(() => page.locator(".about").getByRole("link", { name: "request" }).click())
        yield* act(() => page.locator("option:checked", { hasText: "Turn 2, " }).waitFor({ state: "attached" }))
        yield* act(() => page.getByRole("region", { name: "Answer" }).getByText("48").first().waitFor())
      })
    )

    it.scoped("IP-16: events are filtered by word and kind, and each shows its JSON", () =>
      Effect.gen(function* () {
        yield* Sample.store("ses_filter", Sample.rich("filter"))
        const { page } = yield* visit("/sessions/ses_filter/events")
        yield* shows(page, "52 events")
        yield* act(() => page.keyboard.press("/"))
        yield* act(() => page.keyboard.type("invoice"))
        yield* shows(page, /^7 events found$/)
        yield* act(() => page.getByRole("button", { name: "prompt", exact: true }).click())
        yield* shows(page, /^2 events found$/)
        yield* act(() => page.getByRole("region", { name: "Events" }).getByRole("button").first().click())
        yield* act(() => page.getByRole("complementary", { name: /^Event \d+$/ }).waitFor())
      })
    )

    it.scoped("IP-20: a narrow screen shows the list, then the session, without scrolling sideways", () =>
      Effect.gen(function* () {
        yield* Sample.store("ses_narrow", Sample.rich("narrow"))
        const { page } = yield* visit("/", { viewport: { width: 390, height: 760 } })
        yield* act(() =>
          page
            .getByRole("link", { name: /Fix the totals/ })
            .first()
            .click()
        )
        yield* shows(page, /Shall I change it too/)
        yield* act(() => page.getByRole("navigation", { name: "Sessions" }).waitFor({ state: "hidden" }))
        for (const [view, text] of Object.entries(views)) {
          yield* act(() => page.evaluate(`location.hash = "/sessions/ses_narrow/${view}"`))
          yield* shows(page, text)
          assert.strictEqual(yield* act(() => page.evaluate("document.documentElement.scrollWidth")), 390, view)
          const right = yield* act(() =>
            page.evaluate("document.querySelector('.tabs [aria-current]').getBoundingClientRect().right")
          )
          assert.isAtMost(Number(right), 390, `the name of ${view}`)
          if (view === "transcript") yield* picture(page, "narrow")
        }
      })
    )

    it.scoped("IP-30: hostile titles, prompts, answers and outputs stay text, and ask nobody", () =>
      Effect.gen(function* () {
        const evil = `<img src=x onerror=alert(1)><script>alert(2)</script> ![p](http://evil.example/p.png) [l](javascript:alert(3)) \u001b]0;t\u0007 abc\u202etxt`
        const { id, log } = yield* scene("/tmp")
        const model = yield* ScriptedModel.ScriptedModel
        yield* log.append(id, [draft("session.next.renamed", { title: evil })])
        yield* model.answer(
          ScriptedModel.says(`${evil}\n\n<b onclick="alert(4)">bold</b>\n\n\`\`\`html\n${evil}\n\`\`\``)
        )
        // Quotes in one another, too many to draw (IP-18): they must not break the page.
        yield* say(id, `${evil}\n\n${">".repeat(20_000)} quoted`)
        yield* Effect.flatMap(Sessions, (sessions) => sessions.wait(id))
        const { faults, page, requests } = yield* visit(`/sessions/${id}/transcript`)
        yield* act(() => page.locator(".message.assistant .hljs-tag").first().waitFor())
        const text = yield* act(() => page.locator("main").innerText())
        assert.include(text, "<script>alert(2)</script>")
        assert.include(text, '<b onclick="alert(4)">')
        assert.include(text, "␛]0;t␇")
        assert.include(text, "abc⟨U+202E⟩txt")
        assert.strictEqual(
          yield* act(() =>
            page.locator("main img, main script, main b, main [onclick], main a[href^=javascript]").count()
          ),
          0
        )
        assert.deepEqual(
          requests.filter((url) => url.includes("evil")),
          []
        )
        assert.deepEqual(faults, [])
      })
    )
  })
})
