/** Says that a disk is full, also where SQLite says only that a write failed. Spec: ST-760. */
import { statfsSync } from "node:fs"
import { dirname } from "node:path"
import { reasonOf } from "./Transaction.ts"
import { codeOf } from "../support/SystemError.ts"

/** With less room than this, a write that failed did not fit. */
const littleRoom = 262_144

const bytesFree = (folder: string): number | undefined => {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    return undefined
  }
}

const fullText = (folder: string, free: number | undefined): string =>
  `the disk of ${folder} is full${free === undefined ? "" : ` (${free} B free)`}`

/** The disk of a database that has no room for a write; undefined if it has. */
export const withoutRoom = (filename: string): string | undefined => {
  const folder = dirname(filename)
  const free = bytesFree(folder)
  return free !== undefined && free < littleRoom ? fullText(folder, free) : undefined
}

/** The sentence, if the failure of a file comes from a full disk. */
export const fullDisk = (filename: string, cause: unknown): string | undefined => {
  const folder = dirname(filename)
  const free = bytesFree(folder)
  const reason = reasonOf(cause)
  const isFull =
    reason === "disk-full" || codeOf(cause) === "ENOSPC" || (reason === "io" && free !== undefined && free < littleRoom)
  // SQLite keeps an index of the log beside the database, for readers too.
  return isFull
    ? `${fullText(folder, free)}: free some space and run this again; ` +
        "to read the database meanwhile, copy it with its -wal file to another disk and set DAYBOOK_DB to the copy"
    : undefined
}
