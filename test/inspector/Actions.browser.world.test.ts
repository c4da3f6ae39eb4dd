/** What a person does with sessions in the inspector besides answering, in headless Chromium. */
import { tmpdir } from "node:os"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Browser, Page } from "playwright-core"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import * as Asks from "../../packages/server/src/shared/Asks.ts"
import { depthsOf } from "../../packages/inspector/src/page/fold/Story.ts"
import { newSession, say } from "../support/Harness.ts"
import * as ScriptedModel from "../support/ScriptedModel.ts"
import { sharedBrowser } from "../watch/support/Chromium.ts"
import * as ServedInspector from "./support/ServedInspector.ts"
import { lacks } from "../support/Parts.ts"

let browser: Browser

const act = <A>(use: () => Promise<A>): Effect.Effect<A> => Effect.promise(use)

const served = Layer.unwrapEffect(
  Effect.sync(() => {
    const asks = Asks.make()
    return ServedInspector.layer({ permissionAsker: asks.layer, questions: true }, {}, { asks })
  })
)

/** A session whose two prompts were answered. */
const answered = Effect.gen(function* () {
  const { id } = yield* newSession(tmpdir())
  const [model, sessions] = [yield* ScriptedModel.ScriptedModel, yield* Sessions]
  for (const text of ["first", "second"]) {
    yield* model.answer(ScriptedModel.says(`The ${text} answer.`))
    yield* say(id, `The ${text} prompt.`)
    yield* sessions.wait(id)
  }
  return id
})

const click = (page: Page, name: string) => act(() => page.getByRole("button", { name, exact: true }).first().click())

it("IP-522: a branch that leaves another one is indented, and the first child is not", () => {
  const nodes = [
    { id: "a" },
    { id: "b", parentID: "a" },
    { id: "c", parentID: "a" },
    { id: "d", parentID: "c" },
    { id: "e", parentID: "b" }
  ]
  assert.deepStrictEqual(Object.fromEntries(depthsOf(nodes)), { a: 0, b: 0, c: 1, d: 1, e: 0 })
})

describe.skipIf(lacks("chromium"))("actions in the inspector", () => {
  beforeAll(async () => {
    browser = await sharedBrowser()
  })

  it.scopedLive("IP-520: a person begins a session in a folder, and prompts it", () =>
    Effect.gen(function* () {
      const model = yield* ScriptedModel.ScriptedModel
      yield* model.answer(ScriptedModel.says("Hello from a new session."))
      const { page } = yield* ServedInspector.visit(browser, "/")
      yield* click(page, "New session")
      yield* act(() => page.getByLabel("Folder").fill(tmpdir()))
      yield* click(page, "Begin")
      yield* act(() => page.getByRole("textbox", { name: "Prompt" }).fill("Hi"))
      yield* click(page, "Send")
      yield* act(() => page.getByText("Hello from a new session.").waitFor())
      const { items } = yield* Effect.flatMap(Sessions, (sessions) => sessions.list())
      assert.deepStrictEqual(
        items.map(({ location }) => location.directory),
        [tmpdir()]
      )
    }).pipe(Effect.provide(served))
  )

  it.scopedLive("IP-521: undo takes the last prompt back into the prompt box, and redo returns to it", () =>
    Effect.gen(function* () {
      const id = yield* answered
      const { page } = yield* ServedInspector.visit(browser, `/sessions/${id}/transcript`)
      yield* act(() => page.getByText("The second answer.").waitFor())
      yield* click(page, "Actions")
      yield* click(page, "Undo")
      yield* act(() => page.getByText("The second answer.").waitFor({ state: "detached" }))
      const box = page.getByRole("textbox", { name: "Prompt" })
      yield* act(() => page.getByText("The last prompt was taken back.").waitFor())
      assert.strictEqual(yield* act(() => box.inputValue()), "The second prompt.")
      yield* click(page, "Redo")
      yield* act(() => page.getByText("The second answer.").waitFor())
    }).pipe(Effect.provide(served))
  )

  it.scopedLive("IP-521: a person renames a session, and forks it", () =>
    Effect.gen(function* () {
      const id = yield* answered
      const { page } = yield* ServedInspector.visit(browser, `/sessions/${id}/transcript`)
      yield* click(page, "Actions")
      yield* act(() => page.getByLabel("Title").fill("pears"))
      yield* act(() => page.getByLabel("Title").press("Enter"))
      yield* act(() => page.getByRole("heading", { name: "pears" }).waitFor())
      yield* click(page, "Fork")
      yield* act(() => page.waitForURL(({ hash }) => !hash.includes(id)))
      yield* act(() => page.getByText("The second answer.").waitFor())
      assert.strictEqual((yield* Effect.flatMap(Sessions, (sessions) => sessions.list())).items.length, 2)
    }).pipe(Effect.provide(served))
  )

  it.scopedLive("IP-522: after a branch the transcript names the tree, and the tree leads back", () =>
    Effect.gen(function* () {
      const [id, sessions] = [yield* answered, yield* Sessions]
      const { items } = yield* sessions.messages({ sessionID: id })
      const answer = items.find((message) => JSON.stringify(message).includes("The first answer."))
      yield* sessions.branch({ sessionID: id, messageID: answer?.id ?? "" })
      const { page } = yield* ServedInspector.visit(browser, `/sessions/${id}/transcript`)
      yield* act(() => page.getByText("The first answer.").waitFor())
      assert.strictEqual(yield* act(() => page.getByText("The second answer.").count()), 0)
      yield* act(() => page.getByRole("link", { name: "The tree" }).click())
      const last = page.locator(".branch-row").last()
      yield* act(() => last.getByText("The second answer.").waitFor())
      yield* act(() => last.getByRole("button", { name: "Continue here" }).click())
      yield* act(() => page.locator(".transcript").getByText("The second answer.").waitFor())
    }).pipe(Effect.provide(served))
  )

  it.scopedLive("IP-523: a run that fails before its first step says why, and can be resumed", () =>
    Effect.gen(function* () {
      const [id, model, sessions] = [yield* answered, yield* ScriptedModel.ScriptedModel, yield* Sessions]
      yield* sessions.setBudget(id, { tokens: 1 })
      yield* say(id, "Go.")
      yield* Effect.exit(sessions.wait(id))
      const { page } = yield* ServedInspector.visit(browser, `/sessions/${id}/transcript`)
      yield* act(() =>
        page
          .getByRole("alert")
          .getByText(/The last run failed: .*budget/)
          .waitFor()
      )
      yield* sessions.setBudget(id, { tokens: 1_000_000 })
      yield* model.answer(ScriptedModel.says("It works now."))
      yield* click(page, "Resume")
      yield* act(() => page.getByText("It works now.").waitFor())
      yield* act(() => page.getByRole("alert").waitFor({ state: "detached" }))
    }).pipe(Effect.provide(served))
  )

  it.scopedLive("IP-525: an answer is copied as it was written", () =>
    Effect.gen(function* () {
      const id = yield* answered
      const { page } = yield* ServedInspector.visit(browser, `/sessions/${id}/transcript`)
      yield* act(() => page.context().grantPermissions(["clipboard-read", "clipboard-write"]))
      yield* act(() => page.getByRole("button", { name: "Copy answer" }).last().click())
      yield* act(() => page.getByRole("button", { name: "Copied answer" }).waitFor())
      assert.strictEqual(yield* act(() => page.evaluate("navigator.clipboard.readText()")), "The second answer.")
    }).pipe(Effect.provide(served))
  )

  it.scopedLive("IP-524: work that waits for a person is named in the list, the filter and the title", () =>
    Effect.gen(function* () {
      const model = yield* ScriptedModel.ScriptedModel
      yield* newSession(tmpdir())
      const { id } = yield* newSession(tmpdir())
      yield* model.answer(ScriptedModel.calls(ScriptedModel.callParts("c", "bash", { command: "echo hi" })))
      yield* say(id, "Go.")
      const { page } = yield* ServedInspector.visit(browser, `/sessions/${id}/transcript`)
      yield* act(() => page.getByRole("region", { name: "Permission for bash" }).waitFor())
      yield* act(() => page.getByLabel(/Only sessions that need you \(1\)/).check())
      assert.strictEqual(yield* act(() => page.locator("a.session").count()), 1)
      yield* act(() => page.locator("a.session").getByText("needs you").waitFor())
      assert.match(yield* act(() => page.title()), /^\(1\) /)
      const card = page.getByRole("region", { name: "Permission for bash" })
      assert.strictEqual(yield* act(() => card.getByText("echo hi").count()), 1)
    }).pipe(Effect.provide(served))
  )
})
