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

/** Opens a folder that is at this path, through no link; makes it when it is missing. */
const enter = async (at: string): Promise<fs.FileHandle> => {
  const open = () => fs.open(at, flags)
  return open().catch(async (cause: unknown) => {
    if (codeOf(cause) !== "ENOENT") throw cause
    // Another process may have made it meanwhile; what it is shows when it is opened.
    await fs.mkdir(at).catch((fault: unknown) => {
      if (codeOf(fault) !== "EEXIST") throw fault
    })
    return open()
  })
}

/** Where a file of the folder is. */
export type Held = (name: string) => string

const walkDown = async (root: string, folder: string): Promise<fs.FileHandle> => {
  let handle = await fs.open(root, flags)
  try {
    // A link above the root would have been followed.
    if ((await fs.readlink(byDescriptor(handle))) !== root) throw Object.assign(new Error("moved"), { code: "ELOOP" })
    for (const name of path.relative(root, folder).split(path.sep).filter(Boolean)) {
      const next = await enter(path.join(byDescriptor(handle), name))
      await handle.close()
      handle = next
    }
    return handle
  } catch (cause) {
    await handle.close()
    throw cause
  }
}

/** Holds a canonical folder in a canonical root for as long as the scope; `undefined` where the system cannot. */
export const holdFolder = (root: string, folder: string): Effect.Effect<Held | undefined, unknown, Scope.Scope> =>
  process.platform !== "linux"
    ? Effect.succeed(undefined)
    : Effect.map(
        Effect.acquireRelease(
          Effect.tryPromise({ try: () => walkDown(root, folder), catch: (cause) => cause }),
          (handle) => Effect.promise(() => handle.close())
        ),
        (handle) => (name: string) => path.join(byDescriptor(handle), name)
      )
