/**
 * Makes a folder and what is missing above it. Not with `mkdir`'s own `recursive`: where a file system has the parent and
 * refuses the child as missing, as /proc does, that never returns and takes a whole thread.
 */
import { chmod, mkdir, stat } from "node:fs/promises"
import { dirname } from "node:path"

const codeOf = (cause: unknown): unknown => (cause instanceof Error && "code" in cause ? cause.code : undefined)

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false
  )

const made = async (folder: string, mode: number) => {
  await mkdir(folder, { mode })
  // The umask may have taken away what its owner needs.
  if (mode !== anyMode) await chmod(folder, mode)
}

/** What the umask leaves of it. */
const anyMode = 0o777

/** A folder that is there is left as it is; anything else in its place is `EEXIST`. `mode` is for those that are made. */
export const makeFolders = async (folder: string, mode = anyMode): Promise<void> => {
  try {
    await made(folder, mode)
  } catch (cause) {
    const code = codeOf(cause)
    if (code === "ENOENT" && dirname(folder) !== folder && !(await isFolder(dirname(folder)))) {
      await makeFolders(dirname(folder), mode)
      // Another process may have made it meanwhile.
      await made(folder, mode).catch(async (again: unknown) => {
        if (codeOf(again) !== "EEXIST" || !(await isFolder(folder))) throw again
      })
    } else if (code !== "EEXIST" || !(await isFolder(folder))) throw cause
  }
}
