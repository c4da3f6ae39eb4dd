/**
 * A folder that is written to through its descriptor: whatever takes the place of its path, or of a folder above it, what
 * is written lands in the folder that was opened. Each name on the way from the root is opened without following a link.
 * Where the system has no /proc, paths are used and checked before. Spec: TO-90.
 */
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Effect, type Scope } from "effect"

const { O_DIRECTORY, O_NOFOLLOW } = constants
/** Linux: a descriptor that only stands for a place. A folder that may be written, but not listed, can be opened so. */
const O_PATH = 0o10000000
const flags = O_PATH | O_DIRECTORY | O_NOFOLLOW

const codeOf = (cause: unknown): unknown => (cause instanceof Error && "code" in cause ? cause.code : undefined)

/** The folder that a descriptor stands for, as a path that no one can redirect. */
const byDescriptor = (handle: fs.FileHandle): string => `/proc/self/fd/${handle.fd}`

/** Makes one folder at a path that nothing can redirect; `real` is what the path was meant to be. */
export type MakeFolder = (at: string, real: string) => Promise<void>

/** Where a file of the folder is. */
export type Held = (name: string) => string

/** Makes a folder; false when another process made it meanwhile. */
const makeOne = (make: MakeFolder, at: string, real: string): Promise<boolean> =>
  make(at, real).then(
    () => true,
    (cause: unknown) => {
      if (codeOf(cause) !== "EEXIST") throw cause
      return false
    }
  )

/** Opens a folder that is at this path, through no link; makes it when it is missing. */
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

/** Leaves in `open` the folder's descriptor and those of folders in which one was made. */
const walkDown = async (root: string, folder: string, make: MakeFolder, open: Set<fs.FileHandle>): Promise<string> => {
  let handle = await fs.open(root, flags)
  open.add(handle)
  // A link above the root would have been followed.
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
 * Holds a canonical folder in a canonical root for as long as the scope. The paths given to `make` hold as long, so that
 * what was made can be removed. Linux only.
 */
export const holdFolder = (
  root: string,
  folder: string,
  make: MakeFolder = (at) => fs.mkdir(at)
): Effect.Effect<Held, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const open = new Set<fs.FileHandle>()
    yield* Effect.addFinalizer(() => Effect.promise(() => Promise.all([...open].map((handle) => handle.close()))))
    const at = yield* Effect.tryPromise({
      try: () => walkDown(root, folder, make, open),
      catch: (cause) => cause
    })
    return (name: string) => path.join(at, name)
  }).pipe(Effect.uninterruptible)

/** The same by the folder's path, which the caller checks afterwards: for systems without descriptors that name a place. */
export const reachFolder = async (folder: string, make: MakeFolder = (at) => fs.mkdir(at)): Promise<Held> => {
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
