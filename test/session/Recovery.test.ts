/** What the runtime does with the work of dead processes. */
import { assert, it } from "@effect/vitest"
import { Array as Arr, Effect, Layer, TestClock } from "effect"
import { join } from "node:path"
import { PermissionAsker } from "../../packages/core/src/permission/PermissionAsker.ts"
import * as Harness from "../support/Harness.ts"
import { calls, callParts, says, ScriptedModel } from "../support/ScriptedModel.ts"
import { recovery } from "./contract/Recovery.ts"

recovery(Harness)

it.scoped("EX-480: sessions that wait for a person do not keep other sessions from being resumed", () =>
  Effect.gen(function* () {
    const filename = join(yield* Harness.temporaryFolder, "daybook.db")
    const prompted = Effect.forEach(Arr.range(1, 17), (number) =>
      Effect.flatMap(Harness.newSession(), ({ id }) => Harness.say(id, `prompt ${number}`, { resume: false }))
    )
    yield* Effect.provide(prompted, Harness.runtime({ filename }))
    const permissionAsker = Layer.succeed(PermissionAsker, { ask: () => Effect.never })
    const resumed = Harness.runtime({ filename, recovery: "resume", permissionAsker })
    yield* Effect.gen(function* () {
      const model = yield* ScriptedModel
      const waits = model.answer(calls(callParts("c", "bash", { command: "rm -r build" })))
      yield* Effect.replicateEffect(waits, 16)
      yield* model.answer(says("Done."))
      const first = yield* Effect.replicateEffect(model.request, 16)
      yield* TestClock.adjust("10 seconds")
      const last = yield* model.request
      assert.strictEqual(new Set([...first, last].flatMap(Harness.userTexts)).size, 17)
    }).pipe(Effect.provide(resumed))
  })
)
