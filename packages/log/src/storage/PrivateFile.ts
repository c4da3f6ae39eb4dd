/**
 * Keeps files and folders private to their owner, whatever the umask: the database, the files that SQLite creates
 * beside it with the same mode, and Daybook's folders. Spec: ST-20, ST-21, LG-65.
 */
import { closeSync, constants, existsSync, fstatSync, openSync, realpathSync, type Stats, statSync } from "node:fs"
import { chmod, lstat, mkdir, open, readlink, realpath, stat } from "node:fs/promises"
import { dirname, resolve } from "node:path"
import { codeOf } from "../support/SystemError.ts"

// Creates a folder and its missing parents. `mkdir`'s `recursive` option never returns on a file system such
// as /proc, where the parent exists but the child fails as missing.

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

/** Creates the folder with `mode`, unless it exists; anything else at the path fails with `EEXIST`. */
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

// Opens a database's file beside SQLite. POSIX releases all of a process's locks on a file when the process closes any
// descriptor of the file, so the descriptor stays open as long as a connection may.

const identity = ({ dev, ino }: { readonly dev: number; readonly ino: number }) => `${dev}:${ino}`

/** The descriptors of this thread, by their files. */
const descriptors = new Map<string, number>()

export const descriptorOf = (filename: string): number => {
  const known = descriptors.get(identity(statSync(filename)))
  if (known !== undefined) return known
  const file = openSync(filename, "r+")
  descriptors.set(identity(fstatSync(file)), file)
  return file
}

const close = (key: string, file: number): void => {
  descriptors.delete(key)
  closeSync(file)
}

/**
 * Closes the descriptor of a database whose connection was just closed, unless another connection may be open: the last
 * one, of all processes, deletes the write-ahead log. Closes those of deleted files too.
 */
export const closeUnused = (filename: string): void => {
  if (descriptors.size === 0) return
  for (const [key, file] of descriptors) if (fstatSync(file).nlink === 0) close(key, file)
  const stats = statSync(filename, { throwIfNoEntry: false })
  if (stats === undefined) return
  const file = descriptors.get(identity(stats))
  if (file !== undefined && !existsSync(`${realpathSync(filename)}-wal`)) close(identity(stats), file)
}

const { O_CREAT, O_EXCL, O_RDWR } = constants
const maximumLinks = 8

/**
 * Creates an empty file with mode 0600 if none exists. An existing file is not opened, because closing it would release
 * this process's locks on it. If it cannot be created, SQLite reports the error.
 */
export const makePrivate = async (path: string, links = 0): Promise<void> => {
  if (await stat(path).catch(() => undefined)) return
  const handle = await open(path, O_CREAT | O_EXCL | O_RDWR, 0o600).catch(() => undefined)
  if (handle !== undefined) {
    // The umask may have removed permissions.
    await handle.chmod(0o600).finally(() => handle.close())
    return
  }
  // A link to a missing file: SQLite would create that file.
  const target = await readlink(path).catch(() => undefined)
  if (target !== undefined && links < maximumLinks) await makePrivate(resolve(dirname(path), target), links + 1)
}

/** A file or folder that users other than its owner may access, and its mode. */
export interface Wide {
  readonly path: string
  readonly mode: number
}

const modeOf = (path: string, isWanted: (stats: Stats) => boolean): Promise<Wide> =>
  lstat(path).then(
    (stats) => ({ path, mode: isWanted(stats) ? stats.mode & 0o777 : 0 }),
    () => ({ path, mode: 0 })
  )

/** Returns the database's files, and which of these folders, other users may access. Does not follow links. */
export const wide = async (database: string, folders: ReadonlyArray<string>): Promise<ReadonlyArray<Wide>> => {
  const real = await realpath(database).catch(() => database)
  const found = await Promise.all([
    ...["", "-wal", "-shm", "-journal", ".search", ".search-wal", ".search-shm"].map((suffix) =>
      modeOf(`${real}${suffix}`, (stats) => stats.isFile())
    ),
    ...folders.map((folder) => modeOf(folder, (stats) => stats.isDirectory()))
  ])
  return found.filter(({ mode }) => (mode & 0o077) !== 0)
}

export const tighten = ({ mode, path }: Wide): Promise<void> => chmod(path, mode & 0o700)

/** Makes what a file or a folder holds durable. */
export const sync = async (path: string): Promise<void> => {
  const handle = await open(path, "r")
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
