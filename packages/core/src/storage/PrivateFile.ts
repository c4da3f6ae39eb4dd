/**
 * Files and folders for their owner alone, whatever the umask: the database, what SQLite makes beside it with the same
 * mode, and Daybook's own folders.
 * Spec: ST-20, ST-21.
 */
import { constants, type Stats } from "node:fs"
import { chmod, lstat, open, readlink, realpath, stat } from "node:fs/promises"
import { dirname, resolve } from "node:path"

const { O_CREAT, O_EXCL, O_RDWR } = constants
const maximumLinks = 8

/**
 * Makes an empty file with mode 0600 where there is none. An existing one is not opened: closing it would give up the locks
 * that this process has on it. Where it cannot be made, SQLite says why.
 */
export const makePrivate = async (path: string, links = 0): Promise<void> => {
  if (await stat(path).catch(() => undefined)) return
  const handle = await open(path, O_CREAT | O_EXCL | O_RDWR, 0o600).catch(() => undefined)
  if (handle !== undefined) {
    // The umask may have taken more away.
    await handle.chmod(0o600).finally(() => handle.close())
    return
  }
  // A link to a file that is not there yet: SQLite would make that file.
  const target = await readlink(path).catch(() => undefined)
  if (target !== undefined && links < maximumLinks) await makePrivate(resolve(dirname(path), target), links + 1)
}

/** A file or folder that others than its owner may use, and its mode. */
export interface Wide {
  readonly path: string
  readonly mode: number
}

const modeOf = (path: string, isWanted: (stats: Stats) => boolean): Promise<Wide> =>
  lstat(path).then(
    (stats) => ({ path, mode: isWanted(stats) ? stats.mode & 0o777 : 0 }),
    () => ({ path, mode: 0 })
  )

/** Which of a database's files, and of these folders, others may read or write. Links are not followed. */
export const wide = async (database: string, folders: ReadonlyArray<string>): Promise<ReadonlyArray<Wide>> => {
  const real = await realpath(database).catch(() => database)
  const found = await Promise.all([
    ...["", "-wal", "-shm", "-journal"].map((suffix) => modeOf(`${real}${suffix}`, (stats) => stats.isFile())),
    ...folders.map((folder) => modeOf(folder, (stats) => stats.isDirectory()))
  ])
  return found.filter(({ mode }) => (mode & 0o077) !== 0)
}

/** Leaves it to its owner. */
export const tighten = ({ mode, path }: Wide): Promise<void> => chmod(path, mode & 0o700)
