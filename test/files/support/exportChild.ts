/**
 * A process that exports a store to a root, and ends itself by SIGKILL before the nth operation on a file: no finalizer
 * runs, nothing is flushed. It says `done` when it comes to the end before that. Arguments: database, root, n; or a part
 * of a path instead of n, and then it ends before the first such file is put in place. The user and the shared spaces follow
 * where they are not the usual ones.
 */
import * as Exporter from "../../../packages/files/src/Exporter.ts"
import { Store } from "@daybook/core"
import { Effect, Layer } from "effect"

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
