/**
 * Files for their owner alone, whatever the umask: the database, and what SQLite makes beside it with the same mode.
 * Spec: ST-20, ST-21.
 */
import { constants } from "node:fs"
import { chmod, open, readlink, realpath, stat } from "node:fs/promises"
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

/** A file of the database that others than its owner may use, and its mode. */
export interface WideFile {
  readonly path: string
  readonly mode: number
}

/** Which of a database's files others may read or write. */
export const wideFiles = async (database: string): Promise<ReadonlyArray<WideFile>> => {
  const real = await realpath(database).catch(() => database)
  const found = await Promise.all(
    ["", "-wal", "-shm", "-journal"].map(async (suffix) => {
      const path = `${real}${suffix}`
      const mode = await stat(path).then(
        (stats) => (stats.isFile() ? stats.mode & 0o777 : 0),
        () => 0
      )
      return { path, mode }
    })
  )
  return found.filter(({ mode }) => (mode & 0o077) !== 0)
}

/** Leaves a file to its owner. */
export const tighten = ({ mode, path }: WideFile): Promise<void> => chmod(path, mode & 0o700)
