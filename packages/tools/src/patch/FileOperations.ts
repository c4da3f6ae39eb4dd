/**
 * Defines the file operations of a commit; each is one step that succeeds or fails. Tests replace them to make a disk
 * fail at any step. Uses `node:fs`, for exclusive creation, links and flushing.
 */
import { constants, type Stats } from "node:fs"
import * as fs from "node:fs/promises"

export interface FileOperations {
  /** The stats of a path, without following a final link. */
  readonly stat: (path: string) => Promise<Stats>
  /** Creates a folder; fails if the path exists. */
  readonly makeFolder: (path: string) => Promise<void>
  /** Removes an empty folder; fails if it is not empty. */
  readonly removeFolder: (path: string) => Promise<void>
  /** Creates a file and flushes it; fails if the path exists. Without `mode`, the file gets the usual permissions. */
  readonly write: (path: string, content: string | Uint8Array, mode: number | undefined) => Promise<void>
  /** Creates a hard link; fails if `to` exists. */
  readonly link: (from: string, to: string) => Promise<void>
  /** Copies a file with its mode and flushes the copy; fails if `to` exists. */
  readonly copy: (from: string, to: string) => Promise<void>
  /** Moves a file, and replaces an existing one. */
  readonly rename: (from: string, to: string) => Promise<void>
  /** Removes a file. */
  readonly remove: (path: string) => Promise<void>
}

export const nodeFileOperations: FileOperations = {
  stat: (path) => fs.lstat(path),
  makeFolder: (path) => fs.mkdir(path),
  removeFolder: (path) => fs.rmdir(path),
  write: async (path, content, mode) => {
    const handle = await fs.open(path, "wx", 0o666)
    try {
      await handle.writeFile(content)
      // Not passed to `open`, because the umask would remove bits.
      if (mode !== undefined) await handle.chmod(mode & 0o7777)
      await handle.sync()
    } finally {
      await handle.close()
    }
  },
  link: (from, to) => fs.link(from, to),
  copy: async (from, to) => {
    await fs.copyFile(from, to, constants.COPYFILE_EXCL)
    const handle = await fs.open(to, "r")
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  },
  rename: (from, to) => fs.rename(from, to),
  remove: (path) => fs.unlink(path)
}
