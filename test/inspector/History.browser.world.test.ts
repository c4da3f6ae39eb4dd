/** Views of the folded history in headless Chromium: the picture under wheel and pointer, pruned events, and children's costs. */
import { join } from "node:path"
import { assert, beforeAll, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Browser } from "playwright-core"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Store from "../../packages/log/src/Store.ts"
import { temporaryFolder } from "../support/Harness.ts"
import { begun, fill, pruned, turns } from "../support/Pruning.ts"
import { sharedBrowser } from "../watch/support/Chromium.ts"
import * as Sample from "./support/Sample.ts"
import * as ServedInspector from "./support/ServedInspector.ts"
import { lacks } from "../support/Parts.ts"

let browser: Browser
beforeAll(async () => {
  browser = await sharedBrowser()
})

const act = <A>(use: () => Promise<A>): Effect.Effect<A> => Effect.promise(use)

describe.skipIf(lacks("chromium"))("views of the history", () => {
  layer(ServedInspector.layer(), { excludeTestServices: true })((it) => {
    it.scoped(
      "IP-12: the wheel zooms the picture around the pointer, Shift and a drag move it, All shows it whole",
      () =>
        Effect.gen(function* () {
          yield* Sample.store("ses_wheel", Sample.rich("wheel"))
          const { page } = yield* ServedInspector.visit(browser, "/sessions/ses_wheel/timeline")
          const canvas = page.getByRole("application", { name: /^Picture of the timeline: 5 turns, 4 tool calls/ })
          yield* act(() => page.locator('.timeline .bar [role="status"]:empty').waitFor({ state: "attached" }))
          // The record is read beside the history, and what it says stands above the picture.
          yield* act(() => page.getByRole("alert").getByText("The last run failed").waitFor())
          const label = () => act(async () => (await canvas.getAttribute("aria-label")) ?? "")
          /** What is shown after an action that changes it. */
          const shown = (action: () => Promise<unknown>) =>
            Effect.gen(function* () {
              const before = yield* label()
              yield* act(action)
              yield* act(() => page.locator(`canvas:not([aria-label="${before}"])`).waitFor())
              const [, from = "", to = ""] = /Shown: (.*) to (.*)$/.exec(yield* label()) ?? []
              return { from, to }
            })
          const whole = yield* label()
          const box = yield* act(() => canvas.boundingBox())
          assert.isNotNull(box)
          // The left edge of the picture, behind the names of the lanes.
          const [left, y] = [box.x + 93, box.y + 40]
          yield* act(() => page.mouse.move(left, y))
          const zoomed = yield* shown(() => page.mouse.wheel(0, -400))
          assert.include(whole, `Shown: ${zoomed.from} to `)
          assert.isFalse(whole.endsWith(zoomed.to))

          yield* act(() => page.mouse.move(left + 500, y))
          yield* act(() => page.mouse.down())
          const dragged = yield* shown(() => page.mouse.move(left + 300, y))
          yield* act(() => page.mouse.up())
          assert.notStrictEqual(dragged.from, zoomed.from)
          const free = yield* label()
          yield* act(() => page.mouse.move(left + 100, y))
          assert.strictEqual(yield* label(), free)

          yield* act(() => page.keyboard.down("Shift"))
          const back = yield* shown(() => page.mouse.wheel(0, -2_000))
          yield* act(() => page.keyboard.up("Shift"))
          assert.deepEqual(back, zoomed)
          yield* act(() => page.getByRole("button", { name: "All" }).click())
          yield* act(() => page.locator(`canvas[aria-label="${whole}"]`).waitFor())
        })
    )

    it.scoped("IP-14: spending tells what children spent too, and what they left of the budget", () =>
      Effect.gen(function* () {
        const [sessions, log] = [yield* Sessions, yield* EventLog]
        const id = yield* Sample.store("ses_parent", Sample.rich("parent"))
        const child = yield* sessions.create({ location: { directory: "/" }, parentID: id })
        const assistantMessageID = MessageID.make("msg_child-answer")
        const tokens = { input: 1_000_000, output: 0, reasoning: 0, cache: { read: 0, write: 0 } }
        yield* log.append(child.id, [
          draft("session.next.step.started", { assistantMessageID, agent: "build", model: Sample.model }),
          draft("session.next.step.ended", { assistantMessageID, finish: "stop", cost: 0.5, tokens })
        ])
        const { own, total } = yield* sessions.usage(id)
        assert.closeTo(total.cost - own.cost, 0.5, 1e-9)
        const { page } = yield* ServedInspector.visit(browser, "/sessions/ses_parent/spending")
        const number = (name: string) =>
          act(async () => {
            const text = await page
              .locator(".numbers div", { has: page.getByText(name, { exact: true }) })
              .locator("dd")
              .innerText()
            return Number(/[\d.]+/.exec(text)?.[0])
          })
        yield* act(() => page.getByText("Cost with children", { exact: true }).waitFor())
        assert.closeTo(yield* number("Cost"), own.cost, 0.006)
        assert.closeTo(yield* number("Cost with children"), total.cost, 0.006)
        assert.closeTo(yield* number("Budget left"), 1 - total.cost, 0.006)
      })
    )
  })

  it.scopedLive("IP-19: pruned events leave views that begin at the oldest one that is kept, and say so", () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "daybook.sqlite")
      yield* Effect.gen(function* () {
        const id = SessionID.make("ses_pruned")
        yield* begun(id, 6)
        yield* Effect.provide(pruned(id), Store.layer({ filename }))
        yield* fill(id, turns(7).slice(6))
        const { faults, page } = yield* ServedInspector.visit(browser, "/sessions/ses_pruned/timeline")
        yield* act(() =>
          page
            .getByRole("note")
            .getByText(/Older events were pruned/)
            .waitFor()
        )
        yield* act(() => page.locator(".timeline .bar", { hasText: /^[1-6] turns?, / }).waitFor())
        for (const view of ["requests", "spending", "context"]) {
          yield* act(() => page.evaluate(`location.hash = "/sessions/ses_pruned/${view}"`))
          yield* act(() =>
            page
              .getByRole("note")
              .getByText(/Older events were pruned/)
              .waitFor()
          )
        }
        yield* act(() => page.evaluate(`location.hash = "/sessions/ses_pruned/events"`))
        yield* act(() => page.getByRole("note").waitFor({ state: "detached" }))
        // Chromium reports each refused cursor.
        assert.deepEqual(
          faults.filter((fault) => !fault.includes("410")),
          []
        )
      }).pipe(Effect.provide(ServedInspector.layer({ filename })))
    })
  )
})
