/**
 * Replaces a file's content in one step: readers see the old or the new content, never a part, and after a crash one of
 * the two is there. Keeps the mode of what it replaces. Spec: TO-51..TO-53.
 */
import { randomUUID } from "node:crypto"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Effect, type Scope } from "effect"
import { tryFile, type LocationFiles, type WritableTarget } from "../LocationFiles.ts"
import { ToolFailure } from "../ToolDefinition.ts"

/** The target as it is now, after a person was asked; fails when its path leads elsewhere than what was allowed. */
export const confirm = Effect.fnUntraced(function* (files: LocationFiles["Type"], allowed: WritableTarget) {
  const now = yield* files.resolveWritable(allowed.resource)
  return now.real === allowed.real
    ? now
    : yield* new ToolFailure({
        type: "path.outside",
        message: `${JSON.stringify(allowed.resource)} was replaced by a symbolic link meanwhile; nothing was written`
      })
})

export const writeAtomically = Effect.fn("AtomicWrite.write")(function* (
  files: LocationFiles["Type"],
  target: WritableTarget,
  content: string
): Effect.fn.Return<void, ToolFailure, Scope.Scope> {
  const name = target.resource
  const at = yield* files.hold(path.dirname(target.real), name)
  const temporary = at(`.${randomUUID()}.tmp`)
  yield* Effect.acquireUseRelease(
    tryFile("write", name, () => fs.open(temporary, "wx", 0o666)),
    (handle) =>
      tryFile("write", name, async () => {
        await handle.writeFile(content)
        if (target.stats !== undefined) await handle.chmod(target.stats.mode & 0o7777)
        await handle.sync()
        await fs.rename(temporary, at(path.basename(target.real)))
      }),
    (handle) =>
      Effect.promise(async () => {
        await handle.close()
        // There is nothing to remove after the rename.
        await fs.rm(temporary, { force: true })
      })
  )
}, Effect.scoped)
