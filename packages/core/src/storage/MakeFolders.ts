/**
 * Makes a folder and what is missing above it. Not with `mkdir`'s own `recursive`: where a file system has the parent and
 * refuses the child as missing, as /proc does, that never returns and takes a whole thread.
 */
import { mkdir, stat } from "node:fs/promises"
import { dirname } from "node:path"

const codeOf = (cause: unknown): unknown => (cause instanceof Error && "code" in cause ? cause.code : undefined)

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false
  )

/** A folder that is there is left as it is; anything else in its place is `EEXIST`. `mode` is for those that are made. */
export const makeFolders = async (folder: string, mode = 0o777): Promise<void> => {
  try {
    await mkdir(folder, { mode })
  } catch (cause) {
    const code = codeOf(cause)
    if (code === "ENOENT" && dirname(folder) !== folder && !(await isFolder(dirname(folder)))) {
      await makeFolders(dirname(folder), mode)
      // Another process may have made it meanwhile.
      await mkdir(folder, { mode }).catch(async (again: unknown) => {
        if (codeOf(again) !== "EEXIST" || !(await isFolder(folder))) throw again
      })
    } else if (code !== "EEXIST" || !(await isFolder(folder))) throw cause
  }
}
