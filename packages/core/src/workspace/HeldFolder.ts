/**
 * Opens a folder and reaches its files through the descriptor. If the path or a parent folder is replaced, writes still
 * go to the opened folder. Each name from the root down is opened without following a link. Without /proc, paths are
 * used and checked first. Spec: TO-90.
 */
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Effect } from "effect"
import { codeOf } from "@daybook/log/support/SystemError"

const { O_DIRECTORY, O_NOFOLLOW } = constants
/** Linux: a descriptor that only identifies a location. It can open a folder that may be written but not listed. */
const O_PATH = 0o10000000
const flags = O_PATH | O_DIRECTORY | O_NOFOLLOW

/** A descriptor's folder, as a path that nobody can redirect. */
const byDescriptor = (handle: fs.FileHandle): string => `/proc/self/fd/${handle.fd}`

/** Creates one folder at a path that cannot be redirected; `real` is the intended path. */
export type MakeFolder = (at: string, real: string) => Promise<void>

/** The path of a file in the folder. */
export type PathInFolder = (name: string) => string

/** Creates a folder; false if another process created it meanwhile. */
const makeOne = (make: MakeFolder, at: string, real: string): Promise<boolean> =>
  make(at, real).then(
    () => true,
    (cause: unknown) => {
      if (codeOf(cause) !== "EEXIST") throw cause
      return false
    }
  )

/** Opens the folder at this path without following a link; creates it if it is missing. */
const enter = async (make: MakeFolder, at: string, real: string) => {
  const open = () => fs.open(at, flags)
  try {
    return { handle: await open(), made: false }
  } catch (cause) {
    if (codeOf(cause) !== "ENOENT") throw cause
    const made = await makeOne(make, at, real)
    return { handle: await open(), made }
  }
}

/** Adds to `open` the folder's descriptor and those of folders in which one was created. */
const walkDown = async (root: string, folder: string, make: MakeFolder, open: Set<fs.FileHandle>): Promise<string> => {
  let handle = await fs.open(root, flags)
  open.add(handle)
  // Detects a link above the root, which would have been followed.
  if ((await fs.readlink(byDescriptor(handle))) !== root) throw Object.assign(new Error("moved"), { code: "ELOOP" })
  let real = root
  for (const name of path.relative(root, folder).split(path.sep).filter(Boolean)) {
    real = path.join(real, name)
    const next = await enter(make, path.join(byDescriptor(handle), name), real)
    open.add(next.handle)
    if (!next.made) {
      open.delete(handle)
      await handle.close()
    }
    handle = next.handle
  }
  return byDescriptor(handle)
}

/**
 * Holds open a canonical folder inside a canonical root until the scope closes. The paths passed to `make` stay valid
 * as long, so that created folders can be removed. Linux only.
 */
export const holdFolder = (root: string, folder: string, make: MakeFolder = (at) => fs.mkdir(at)) =>
  Effect.gen(function* () {
    const open = new Set<fs.FileHandle>()
    yield* Effect.addFinalizer(() => Effect.promise(() => Promise.all([...open].map((handle) => handle.close()))))
    const at = yield* Effect.tryPromise({
      try: () => walkDown(root, folder, make, open),
      catch: (cause) => cause
    })
    return (name: string) => path.join(at, name)
  }).pipe(Effect.uninterruptible)

/** Like `holdFolder`, but by path, which the caller checks afterwards: for systems without descriptor paths. */
export const reachFolder = async (folder: string, make: MakeFolder = (at) => fs.mkdir(at)): Promise<PathInFolder> => {
  const exists = await fs.lstat(folder).then(
    () => true,
    (cause: unknown) => {
      if (codeOf(cause) !== "ENOENT") throw cause
      return false
    }
  )
  if (!exists) {
    await reachFolder(path.dirname(folder), make)
    await makeOne(make, folder, folder)
  }
  return (name) => path.join(folder, name)
}
