/** A really full disk: a small in-memory file system, mounted for the scope, with a file that fills it. */
import { execFileSync } from "node:child_process"
import { closeSync, openSync, rmSync, writeSync } from "node:fs"
import { join } from "node:path"
import { Effect, Option } from "effect"
import { temporaryFolder } from "./Database.ts"

export interface SmallDisk {
  readonly folder: string
  /** Fills all free space. */
  readonly fill: Effect.Effect<void>
  /** Frees the space again. */
  readonly free: Effect.Effect<void>
}

const takeAll = (path: string): void => {
  const file = openSync(path, "a")
  try {
    for (const size of [65_536, 4096, 1]) {
      try {
        for (;;) writeSync(file, Buffer.alloc(size))
      } catch {
        // No space for this size: try a smaller one.
      }
    }
  } finally {
    closeSync(file)
  }
}

/** A small disk; none if this user may not mount. */
export const smallDisk = Effect.fnUntraced(function* (megabytes: number) {
  const folder = yield* temporaryFolder
  const mounted = yield* Effect.acquireRelease(
    Effect.sync(() => {
      try {
        execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", folder], { stdio: "ignore" })
        return true
      } catch {
        return false
      }
    }),
    (mounted) => Effect.sync(() => mounted && execFileSync("umount", ["-l", folder]))
  )
  const ballast = join(folder, "ballast")
  return mounted
    ? Option.some<SmallDisk>({
        folder,
        fill: Effect.sync(() => takeAll(ballast)),
        free: Effect.sync(() => rmSync(ballast, { force: true }))
      })
    : Option.none()
})
