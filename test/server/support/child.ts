/** A server in a separate process, to be killed: its model answers something and never ends. */
import { Deferred, Effect } from "effect"
import { held, textParts } from "../../support/ScriptedModel.ts"
import { open, script } from "./Served.ts"

const root = process.argv[2] ?? ""

Effect.gen(function* () {
  const served = yield* open({ root })
  const never = yield* Deferred.make<void>()
  yield* script(served, ({ answer }) => answer(held(textParts("t", "half").slice(0, 2), never)))
  console.log("ready")
  yield* Effect.never
}).pipe(Effect.scoped, Effect.runFork)
