/**
 * Replaces a file's content in one step: readers see the old or the new content, never a part, and after a crash one of
 * the two is there. Keeps the mode of what it replaces. Spec: TO-51..TO-53.
 */
import { randomUUID } from "node:crypto"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Effect } from "effect"
import { makeFolders } from "../../storage/MakeFolders.ts"
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
): Effect.fn.Return<void, ToolFailure> {
  const name = target.resource
  const folder = path.dirname(target.real)
  yield* tryFile("write", name, () => makeFolders(folder))
  // A folder on the way may have become a symbolic link while a person was asked.
  yield* files.recheck(folder)
  const temporary = path.join(folder, `.${randomUUID()}.tmp`)
  yield* Effect.acquireUseRelease(
    tryFile("write", name, () => fs.open(temporary, "wx", 0o666)),
    (handle) =>
      tryFile("write", name, async () => {
        await handle.writeFile(content)
        if (target.stats !== undefined) await handle.chmod(target.stats.mode & 0o7777)
        await handle.sync()
        await fs.rename(temporary, target.real)
      }),
    (handle) =>
      Effect.promise(async () => {
        await handle.close()
        // There is nothing to remove after the rename.
        await fs.rm(temporary, { force: true })
      })
  )
})
