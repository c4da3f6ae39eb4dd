/**
 * A process that exports a store to a root, and kills itself with SIGKILL before the nth file operation: no finalizer runs,
 * nothing is flushed. It sends `done` if it finishes first. Arguments: database, root, n. With a part of a path instead of n,
 * it kills itself before the first such file is put in place. The user and the shared spaces follow if they are not the default.
 */
import { Effect, Layer } from "effect"
import * as Exporter from "../../../packages/files/src/Exporter.ts"
import * as Store from "../../../packages/log/src/Store.ts"

const [, , filename = "", root = "", when = "", uid = "7", shared = "{}"] = process.argv
let left = /^\d+$/.test(when) ? Number(when) : Infinity
const before = (operation: string, path: string) => {
  if (left-- === 0 || (left === Infinity && operation === "rename" && path.includes(when))) {
    process.kill(process.pid, "SIGKILL")
  }
}

const program = Effect.gen(function* () {
  const exporter = yield* Exporter.Exporter
  yield* exporter.catchUp
  process.send?.("done")
  return yield* Effect.never
}).pipe(
  Effect.provide(
    Exporter.Exporter.layer({ root, uid: Number(uid), shared: JSON.parse(shared), before }).pipe(
      Layer.provide(Store.layer({ filename }))
    )
  ),
  Effect.tapErrorCause((cause) => Effect.sync(() => process.send?.(String(cause))))
)

Effect.runFork(program)
