/** A disk that is really full: a small file system in memory, mounted for the scope, with a file that takes its room. */
import { execFileSync } from "node:child_process"
import { closeSync, openSync, rmSync, writeSync } from "node:fs"
import { join } from "node:path"
import { Effect, Option } from "effect"
import { temporaryFolder } from "./Database.ts"

export interface SmallDisk {
  readonly folder: string
  /** Takes all room that is left. */
  readonly fill: Effect.Effect<void>
  /** Gives it back. */
  readonly free: Effect.Effect<void>
}

const takeAll = (path: string): void => {
  const file = openSync(path, "a")
  try {
    for (const size of [65_536, 4096, 1]) {
      try {
        for (;;) writeSync(file, Buffer.alloc(size))
      } catch {
        // No room for as much as this.
      }
    }
  } finally {
    closeSync(file)
  }
}

/** None where this user may not mount. */
export const smallDisk = (megabytes: number) =>
  Effect.gen(function* () {
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
