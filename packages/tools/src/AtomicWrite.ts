/**
 * Replaces a file's content atomically: readers see the old or the new content, never a part, and a crash leaves one of
 * the two. Keeps the file's mode. Spec: TO-51..TO-53.
 */
import { randomUUID } from "node:crypto"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Effect, type Scope } from "effect"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import { tryFile, type WritableTarget } from "@daybook/core/workspace/FileFailure"
import type { LocationFiles } from "@daybook/core/workspace/LocationFiles"

/** Resolves the target again after the question; fails if its path now leads elsewhere. */
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
  content: Uint8Array
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
        // After the rename there is nothing to remove.
        await fs.rm(temporary, { force: true })
      })
  )
}, Effect.scoped)
