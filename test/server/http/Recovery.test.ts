/** What a server does at its start with the work of dead processes. */
import { assert, it } from "@effect/vitest"
import { Array as Arr, Effect, Layer, TestClock } from "effect"
import { recover } from "../../../packages/server/src/http/HttpServing.ts"
import * as Asks from "../../../packages/server/src/shared/Asks.ts"
import { newSession, runtime, say, userTexts } from "../../support/Harness.ts"
import { calls, callParts, says, ScriptedModel } from "../../support/ScriptedModel.ts"

it.scoped("HT-58: sessions that wait for a person do not keep the prompts of other sessions waiting", () => {
  const asks = Asks.make()
  return Effect.gen(function* () {
    const model = yield* ScriptedModel
    const left = yield* Effect.forEach(Arr.range(1, 17), (number) =>
      Effect.gen(function* () {
        const { id } = yield* newSession()
        yield* say(id, `prompt ${number}`, { resume: false })
        yield* model.answer(number <= 16 ? calls(callParts("c", "bash", { command: "rm -r build" })) : says("Done."))
        return id
      })
    )
    yield* recover
    const first = yield* Effect.replicateEffect(model.request, 16)
    yield* TestClock.adjust("10 seconds")
    const last = yield* model.request
    assert.strictEqual(new Set([...first, last].flatMap(userTexts)).size, left.length)
  }).pipe(Effect.provide(Layer.fresh(runtime({ permissionAsker: asks.layer }))))
})
