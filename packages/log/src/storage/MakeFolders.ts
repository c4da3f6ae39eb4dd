/**
 * Creates a folder and its missing parents. Not with `mkdir`'s `recursive` option: on a file system where the parent
 * exists but the child fails as missing, such as /proc, it never returns and blocks a thread.
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
  // The umask may have removed permissions of the owner.
  if (mode !== anyMode) await chmod(folder, mode)
}

/** The default mode: subject to the umask. */
const anyMode = 0o777

/**
 * Creates the folder. An existing folder is not changed; anything else at the path fails with `EEXIST`. `mode` applies
 * to created folders.
 */
export const makeFolders = async (folder: string, mode = anyMode): Promise<void> => {
  try {
    await made(folder, mode)
  } catch (cause) {
    const code = codeOf(cause)
    if (code === "ENOENT" && dirname(folder) !== folder) {
      if (!(await isFolder(dirname(folder)))) await makeFolders(dirname(folder), mode)
      // Once more: another process may have created its parent, or it, meanwhile.
      await made(folder, mode).catch(async (again: unknown) => {
        if (codeOf(again) !== "EEXIST" || !(await isFolder(folder))) throw again
      })
    } else if (code !== "EEXIST" || !(await isFolder(folder))) throw cause
  }
}
