/**
 * The file operations of a commit, each of them one step that is done or not done. A seam: with others in their place,
 * a disk can be made to fail at any step. Works on `node:fs`, for exclusive creation, links and flushing.
 */
import { constants, type Stats } from "node:fs"
import * as fs from "node:fs/promises"

export interface FileOperations {
  /** What is at a path, without following a last link. */
  readonly stat: (path: string) => Promise<Stats>
  /** Fails where something is. */
  readonly makeFolder: (path: string) => Promise<void>
  /** Fails unless it is empty. */
  readonly removeFolder: (path: string) => Promise<void>
  /** Writes a file where nothing is, and flushes it; what the mode allows is as usual when none is given. */
  readonly write: (path: string, content: string, mode: number | undefined) => Promise<void>
  /** Gives a file a second name, where nothing is. */
  readonly link: (from: string, to: string) => Promise<void>
  /** Copies a file with its mode to where nothing is, and flushes the copy. */
  readonly copy: (from: string, to: string) => Promise<void>
  /** Moves a file, over another one if there is one. */
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
      // Not through `open`, from which the process's mask would take bits.
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
