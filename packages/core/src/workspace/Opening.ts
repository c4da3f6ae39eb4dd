/** Opens the files of a Location, and holds folders open for writing, against links that appear meanwhile. */
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import { Effect, Option } from "effect"
import { codeOf, fileFailure, quoted, refuse, special, tryFile } from "./FileFailure.ts"
import { holdFolder, type MakeFolder, reachFolder } from "./HeldFolder.ts"
import { isWithin, outside } from "./PathText.ts"
import { recheck, rootOf, type Sources } from "./Resolution.ts"
import type { Target } from "./Target.ts"

/** The system's path of an open file; none if the system does not provide it. */
const descriptorPath = (handle: fs.FileHandle) =>
  Effect.option(Effect.tryPromise(() => fs.readlink(`/proc/self/fd/${handle.fd}`)))

/** Opens a regular file or a folder for reading. */
export const open = Effect.fn("LocationFiles.open")(function* (target: Target) {
  const name = target.resource
  const changed = refuse("path.outside", `${quoted(name)} was replaced while it was opened; nothing was read`)
  const before = yield* tryFile("read", name, () => fs.lstat(target.real))
  if (!before.isFile() && !before.isDirectory()) return yield* before.isSymbolicLink() ? changed : special(name)
  // Does not follow a link or wait for a writer, if the file has become a link or a pipe meanwhile.
  const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)
  const handle = yield* Effect.acquireRelease(
    tryFile("read", name, () => fs.open(target.real, flags)),
    (file) => Effect.promise(() => file.close())
  )
  const stats = yield* tryFile("read", name, () => handle.stat())
  if (!stats.isFile() && !stats.isDirectory()) return yield* special(name)
  const actual = yield* descriptorPath(handle)
  const same = Option.isSome(actual)
    ? actual.value === target.real
    : stats.ino === before.ino && stats.dev === before.dev
  return same ? { handle, stats } : yield* changed
})

/** Holds open the canonical folder to write to. */
export const hold = Effect.fn("LocationFiles.hold")(function* (
  files: Sources,
  folder: string,
  name: string,
  make?: MakeFolder
) {
  const root = yield* rootOf(files)
  if (!isWithin(root, folder)) return yield* outside(name)
  if (process.platform !== "linux") {
    const reached = yield* tryFile("write", name, () => reachFolder(folder, make))
    yield* recheck(files, folder)
    return reached
  }
  return yield* Effect.mapError(holdFolder(root, folder, make), (cause) =>
    codeOf(cause) === "ELOOP" || codeOf(cause) === "ENOTDIR"
      ? refuse("path.outside", `a folder of ${quoted(name)} was replaced meanwhile; nothing was written`)
      : fileFailure("write", name, cause)
  )
})
