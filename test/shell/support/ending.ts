/** Opens a shell, stops one command in it, and closes it. Nothing else ends the process. */
import { Effect, Layer } from "effect"
import * as ShellRecord from "../../../packages/shell/src/record/ShellRecord.ts"
import * as Shells from "../../../packages/shell/src/Shells.ts"

await Effect.gen(function* () {
  const shells = yield* Shells.Shells
  const id = yield* shells.create({ target: { transport: "local" } })
  yield* shells.exec(id, "echo; sleep 60", { stop: Effect.sleep(0) })
}).pipe(Effect.provide(Layer.provide(Shells.layer(), ShellRecord.none)), Effect.runPromise)
