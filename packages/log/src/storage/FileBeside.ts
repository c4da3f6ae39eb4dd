/**
 * Opens a database's file beside SQLite. POSIX releases all locks that a process holds on a file as soon as it closes any
 * descriptor of it. So a descriptor stays open as long as a connection to the file may be open. Spec: LG-65.
 */
import { closeSync, existsSync, fstatSync, openSync, realpathSync, statSync } from "node:fs"

const identity = ({ dev, ino }: { readonly dev: number; readonly ino: number }) => `${dev}:${ino}`

/** The descriptors of this thread, by their files. */
const descriptors = new Map<string, number>()

/** A descriptor of the file at the path, for reads and writes. */
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
