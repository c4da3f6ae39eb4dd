/**
 * Keeps files and folders private to their owner, whatever the umask: the database, the files that SQLite creates
 * beside it with the same mode, and Daybook's folders. Spec: ST-20, ST-21.
 */
import { constants, type Stats } from "node:fs"
import { chmod, lstat, open, readlink, realpath, stat } from "node:fs/promises"
import { dirname, resolve } from "node:path"

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

/** Returns those of the database's files and of these folders that other users may access. Does not follow links. */
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

/** Restricts it to its owner. */
export const tighten = ({ mode, path }: Wide): Promise<void> => chmod(path, mode & 0o700)
