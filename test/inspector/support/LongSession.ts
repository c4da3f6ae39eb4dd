/**
 * A session of many events in the inspector. The tests count the page's requests and the rows of its document, and read the size
 * of its heap. Times would depend on the machine. `DAYBOOK_FIGURES=1` prints times and frames too.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { Browser, Page } from "playwright-core"
import * as Sample from "./Sample.ts"
import * as ServedInspector from "./ServedInspector.ts"

const act = <A>(use: () => Promise<A>): Effect.Effect<A> => Effect.promise(use)

/** Bytes of the page's heap after a collection. */
const heapOf = (page: Page) =>
  act(async () => {
    const session = await page.context().newCDPSession(page)
    await session.send("HeapProfiler.collectGarbage")
    const { usedSize } = await session.send("Runtime.getHeapUsage")
    await session.detach()
    return usedSize
  })

/** Scrolls the events from end to end in some steps, one in each frame; returns the milliseconds between frames. */
const scrolled = (page: Page, steps: number) =>
  act((): Promise<ReadonlyArray<number>> =>
    page.evaluate(`new Promise((resolve) => {
      const list = document.querySelector(".event-list")
      const [times, size] = [[], list.scrollHeight / ${steps}]
      const step = (time) => {
        times.push(time)
        list.scrollTop = list.scrollHeight - times.length * size
        if (times.length < ${steps}) requestAnimationFrame(step)
        else resolve(times.slice(1).map((time, index) => time - times[index]))
      }
      requestAnimationFrame(step)
    })`)
  )

/** Milliseconds until the events view of a session of so many events shows its last ones. */
const shownAfter = (page: Page, id: string, count: number) =>
  act((): Promise<number> =>
    page.evaluate(`new Promise((resolve) => {
      const began = performance.now()
      location.hash = "/sessions/${id}/events"
      const look = () => {
        const last = document.querySelector('.event-list li[aria-setsize="${count}"][aria-posinset="${count}"] .type')
        if (last === null) requestAnimationFrame(look)
        else resolve(performance.now() - began)
      }
      look()
    })`)
  )

const median = (numbers: ReadonlyArray<number>): number =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0

const figures = process.env["DAYBOOK_FIGURES"] === "1"
const figure = (text: string) => (figures ? Effect.sync(() => process.stderr.write(`${text}\n`)) : Effect.void)

const megabyte = 1_048_576

/** So many events need few pages before they are shown, few rows in the document, and bounded memory. */
export const isBounded = Effect.fnUntraced(function* (browser: Browser, events: number) {
  yield* Sample.store("ses_long", Sample.long("long", events))
  const { faults, page, requests } = yield* ServedInspector.visit(browser)
  yield* act(() => page.getByRole("link", { name: /A long session/ }).waitFor())
  const began = Date.now()
  yield* act(() => page.evaluate(`location.hash = "/sessions/ses_long/events"`))
  yield* act(() => page.locator(".event .type", { hasText: "activity.settled" }).waitFor())
  yield* figure(`events shown after ${Date.now() - began} ms`)
  const pages = () => requests.filter((url) => url.endsWith("/history")).length
  // The beginning, and the end over two pages.
  assert.isAtMost(pages(), 3)
  const rows = () => act(() => page.locator(".event-list li").count())
  assert.isAtMost(yield* rows(), 60)

  const frames = [...(yield* scrolled(page, 240))].sort((a, b) => a - b)
  yield* figure(`frames while scrolling: median ${frames[120]?.toFixed(1)} ms, slowest ${frames.at(-1)?.toFixed(1)} ms`)
  yield* act(() => page.locator('li[data-index="1"] .type', { hasText: "activity.started" }).waitFor())
  assert.isAtMost(yield* rows(), 60)
  assert.isBelow(yield* heapOf(page), 100 * megabyte)

  yield* act(() => page.evaluate(`location.hash = "/sessions/ses_long/transcript"`))
  yield* act(() =>
    page
      .getByText(/all targets of/)
      .or(page.locator(".message.assistant"))
      .first()
      .waitFor()
  )
  assert.isAtMost(yield* act(() => page.locator(".transcript li").count()), 40)
  assert.isAtMost(requests.filter((url) => url.endsWith("/messages")).length, 2)

  const story = Date.now()
  const asked = page.waitForRequest(/\/events\?type=session\.created/)
  yield* act(() => page.evaluate(`location.hash = "/sessions/ses_long/timeline"`))
  yield* act(() => asked)
  yield* act(() => page.locator(".timeline .bar", { hasText: /tool calls/ }).waitFor())
  yield* act(() => page.locator('.timeline .bar [role="status"]', { hasText: /^$/ }).waitFor({ state: "attached" }))
  yield* figure(`the whole history was folded after ${Date.now() - story} ms`)
  const heap = yield* heapOf(page)
  yield* figure(`heap: ${(heap / megabyte).toFixed(1)} MiB`)
  assert.isBelow(heap, 200 * megabyte)
  assert.deepEqual(faults, [])
})

/** The first view of so many events is there as soon as that of a hundredth of them. */
export const isShownAsSoon = Effect.fnUntraced(function* (browser: Browser, events: number) {
  const [few, many] = [Sample.long("few", events / 100), Sample.long("many", events)]
  yield* Sample.store("ses_few", few)
  yield* Sample.store("ses_many", many)
  const { page } = yield* ServedInspector.visit(browser)
  const times: { readonly few: Array<number>; readonly many: Array<number> } = { few: [], many: [] }
  for (let round = 0; round < 9; round++) {
    times.few.push(yield* shownAfter(page, "ses_few", few.length))
    times.many.push(yield* shownAfter(page, "ses_many", many.length))
  }
  yield* figure(
    `first view: ${median(times.few).toFixed(0)} ms of ${few.length} events, ${median(times.many).toFixed(0)} of ${many.length}`
  )
  // A view that grew with the session would take a hundred times as long.
  assert.isBelow(median(times.many), 4 * median(times.few))
})
