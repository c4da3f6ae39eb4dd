/** Answers of a person in the inspector, in headless Chromium: questions of the model, and permissions of tools. */
import { tmpdir } from "node:os"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Browser } from "playwright-core"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import * as Asks from "../../packages/server/src/shared/Asks.ts"
import { newSession, say } from "../support/Harness.ts"
import * as ScriptedModel from "../support/ScriptedModel.ts"
import { sharedBrowser } from "../watch/support/Chromium.ts"
import * as ServedInspector from "./support/ServedInspector.ts"
import { lacks } from "../support/Parts.ts"

let browser: Browser
beforeAll(async () => {
  browser = await sharedBrowser()
})

const act = <A>(use: () => Promise<A>): Effect.Effect<A> => Effect.promise(use)

/** A server that asks its clients. */
const servedWith = (options: Parameters<typeof Asks.make>[0]) =>
  Layer.unwrapEffect(
    Effect.sync(() => {
      const asks = Asks.make(options)
      return ServedInspector.layer({ permissionAsker: asks.layer, questions: true }, {}, { asks })
    })
  )

const served = servedWith({})

/** A session whose model calls a tool, and its page. */
const calling = Effect.fnUntraced(function* (tool: string, input: unknown) {
  const { id } = yield* newSession(tmpdir())
  const model = yield* ScriptedModel.ScriptedModel
  yield* model.answer(ScriptedModel.calls(ScriptedModel.callParts("c", tool, input)))
  yield* model.answer(ScriptedModel.says("The model goes on."))
  yield* say(id, "Go.")
  const { page } = yield* ServedInspector.visit(browser, `/sessions/${id}/transcript`)
  return { id, page }
})

describe.skipIf(lacks("chromium"))("answers in the inspector", () => {
  it.scopedLive("IP-9: a question is answered with a suggestion or a text, and the model goes on", () =>
    Effect.gen(function* () {
      const question = { question: "Which colour?", header: "Colour", options: [{ label: "red" }, { label: "blue" }] }
      const { id, page } = yield* calling("question", { questions: [question] })
      yield* act(() => page.getByRole("group", { name: /Which colour/ }).waitFor())
      yield* act(() => page.getByRole("button", { name: "blue" }).click())
      yield* act(() => page.getByRole("button", { name: "Answer", exact: true }).click())
      yield* act(() => page.getByText("The model goes on.").waitFor())
      assert.deepEqual(yield* Effect.flatMap(Sessions, (sessions) => sessions.questions(id)), [])
      yield* act(() => page.getByText("Which colour?").locator("visible=true").waitFor({ state: "detached" }))
    }).pipe(Effect.provide(served))
  )

  it.scopedLive("IP-9: a permission shows the whole command, and the call runs when it is allowed", () =>
    Effect.gen(function* () {
      const long = "aWordThatDoesNotFit".repeat(20)
      const { page } = yield* calling("bash", { command: `: ${long}; printf 'allowed-%s' it` })
      const permission = page.getByRole("region", { name: "Permission for bash" })
      yield* act(() => permission.getByRole("region", { name: "Code, bash" }).getByText("printf").waitFor())
      const box = 'document.querySelector(".question")'
      const wider = yield* act(() => page.evaluate(`${box}.scrollWidth - ${box}.clientWidth`))
      assert.strictEqual(wider, 0)
      yield* act(() => permission.getByRole("button", { name: "Allow once" }).click())
      yield* act(() => page.getByText("The model goes on.").waitFor())
      yield* act(() => page.getByRole("button", { name: /bash/ }).click())
      yield* act(() => page.getByRole("region", { name: "Output of bash" }).getByText("allowed-it").waitFor())
    }).pipe(Effect.provide(served))
  )

  it.scopedLive("IP-9: a permission with a limit shows how much time is left", () =>
    Effect.gen(function* () {
      const { page } = yield* calling("bash", { command: "rm -r build" })
      const permission = page.getByRole("region", { name: "Permission for bash" })
      yield* act(() => permission.getByText(/^Refused in 9 min \d+ s without a decision\.$/).waitFor())
    }).pipe(Effect.provide(servedWith({ patience: "599 seconds" })))
  )
})
