/**
 * A process that snapshots or restores a folder and kills itself at the n-th file operation or start of git, as a power
 * cut would. Arguments: `take` or `undo`, n, the folder of stores, the work tree, and for `undo` two snapshots.
 */
import childProcess from "node:child_process"
import fs from "node:fs/promises"
import { syncBuiltinESMExports } from "node:module"
import { Effect } from "effect"
import { join } from "../../../packages/core/src/snapshot/Change.ts"
import * as Restore from "../../../packages/core/src/snapshot/Restore.ts"
import * as SnapshotStore from "../../../packages/core/src/snapshot/SnapshotStore.ts"
import * as Upkeep from "../../../packages/core/src/snapshot/Upkeep.ts"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { options, workTree } from "./Repository.ts"

const [mode, point = "0", folder = "", work = "", before = "", after = ""] = process.argv.slice(2)

let left = Number(point)
const count = () => {
  if (--left === 0) process.kill(process.pid, "SIGKILL")
}

/** Counts calls of a function of a module; the kill comes before the call. */
const counting = <Module extends object>(module: Module, names: ReadonlyArray<keyof Module>) => {
  for (const name of names) {
    const original = module[name]
    if (typeof original !== "function") continue
    Object.assign(module, {
      [name]: (...args: ReadonlyArray<unknown>) => {
        count()
        return Reflect.apply(original, module, args)
      }
    })
  }
}

counting(fs, ["rename", "rm", "open", "writeFile", "copyFile", "mkdir", "rmdir", "symlink", "chmod", "utimes"])
counting(childProcess, ["spawn"])
syncBuiltinESMExports()

const given = options(folder)
await Effect.runPromise(
  Effect.gen(function* () {
    const tree = yield* workTree(work)
    if (mode === "forget") return yield* Upkeep.forget(given.folder, SessionID.make("ses_child"))
    if (mode === "take") return void (yield* SnapshotStore.take(given, tree, SessionID.make("ses_child")))
    const changes = yield* SnapshotStore.changes(given, tree, [{ before, after }])
    yield* Restore.apply(given, tree, yield* Restore.plan(given, tree, join(changes), false))
  })
)
