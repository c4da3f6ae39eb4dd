/**
 * Synchronous file system calls below one root. The calls refuse anything that is not a folder or a regular file, never
 * follow a link, and set exact permissions despite the umask. System errors become typed errors with a sentence for
 * people. `SafeFiles.ts` wraps them in effects. Spec: FI-60, FI-61 in specs/files.md (SC-3).
 */
import * as fs from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { codeOf } from "@daybook/log/support/SystemError"
import { FileFailed, PathRefused, type SafeError } from "../layout/Errors.ts"

// Describes the state of a file without its content: its stamp, and its checksum.

/** Detects a change of a file without reading it. */
export interface Stamp {
  /** Inode, size and change time: a change of content, name or permissions changes it. */
  readonly text: string
  readonly size: number
  readonly mode: number
  readonly gid: number
}

export interface Sum {
  readonly size: number
  readonly crc: number
}

/** The kinds of file system calls; fault tests count them. */
export type FileOperation =
  "look" | "make folder" | "open" | "write" | "read" | "rename" | "remove" | "permit" | "list" | "cut"

export interface SafeFilesOptions {
  /** The root as a real path. */
  readonly root: string
  /** Runs before each operation; an exception fails the operation. For fault tests. */
  readonly before?: ((operation: FileOperation, path: string) => void) | undefined
}

const sentences: Record<string, string> = {
  EACCES: "permission is denied; give this user access to it",
  EDQUOT: "the quota is used up; free some space, and the export continues",
  EIO: "the disk could not be read or written",
  EMFILE: "too many files are open; raise the limit of open files",
  ENFILE: "too many files are open on this machine",
  ENAMETOOLONG: "the path is longer than this file system allows; choose a shorter root",
  ENOENT: "it no longer exists",
  ENOSPC: "the disk is full; free some space, and the export continues",
  EPERM: "this user may not do that",
  EROFS: "the file system is read-only; choose a writable root"
}

const failed = (operation: string, path: string, error: unknown): SafeError => {
  if (error instanceof PathRefused) return error
  const code = codeOf(error, "EIO")
  if (code === "ELOOP") return new PathRefused({ path, found: "symbolic link" })
  if (code === "EISDIR") return new PathRefused({ path, found: "folder" })
  if (code === "ENOTDIR" || code === "ENXIO") return new PathRefused({ path, found: "other kind of file" })
  const details = sentences[code] ?? `the file system reports ${code}`
  return new FileFailed({ operation, path, code, details })
}

export const permissions = 0o7777n

/** The user that this process creates files as; 0 where the system has no users. */
export const processUid = process.geteuid?.() ?? 0

export const stampOf = (stats: fs.BigIntStats): Stamp => ({
  text: `${stats.ino}:${stats.size}:${stats.ctimeNs}`,
  size: Number(stats.size),
  mode: Number(stats.mode & permissions),
  gid: Number(stats.gid)
})

/** Whether another user owns it. */
export const isForeign = (stats: fs.BigIntStats): boolean => Number(stats.uid) !== processUid

const kindOf = (stats: fs.BigIntStats): PathRefused["found"] =>
  stats.isSymbolicLink() ? "symbolic link" : stats.isDirectory() ? "folder" : "other kind of file"

/** Non-blocking, so that opening a pipe does not hang. */
const flags = fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK

/** The temporary name, in the same folder, under which the next content of a file is written. */
export const temporaryName = (name: string): string => `.${name}.tmp`

/** The result, or undefined if the file does not exist. */
export const unlessMissing = <A>(use: () => A): A | undefined => {
  try {
    return use()
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined
    throw error
  }
}

/** A root, and what runs before each operation below it. Paths are relative to the root, with slashes. */
export interface GuardedRoot {
  readonly root: string
  readonly before: (operation: FileOperation, path: string) => void
}

export const absolute = (at: GuardedRoot, path: string): string => (path === "" ? at.root : join(at.root, path))

export const attempt = <A>(
  at: GuardedRoot,
  operation: string,
  path: string,
  use: () => A
): Effect.Effect<A, SafeError> =>
  Effect.try({ try: use, catch: (error) => failed(operation, absolute(at, path), error) })

export const look = (at: GuardedRoot, path: string): fs.BigIntStats | undefined => {
  at.before("look", path)
  return unlessMissing(() => fs.lstatSync(absolute(at, path), { bigint: true }))
}

export const isFolder = (at: GuardedRoot, path: string): fs.BigIntStats | undefined => {
  const stats = look(at, path)
  if (stats !== undefined && !stats.isDirectory()) {
    throw new PathRefused({ path: absolute(at, path), found: kindOf(stats) })
  }
  // Entries of the root itself belong to the first user who needs them.
  if (stats !== undefined && path.includes("/") && isForeign(stats)) {
    throw new PathRefused({ path: absolute(at, path), found: "folder of another user", owner: Number(stats.uid) })
  }
  return stats
}

export const isFile = (at: GuardedRoot, path: string): fs.BigIntStats | undefined => {
  const stats = look(at, path)
  if (stats === undefined || stats.isFile()) return stats
  throw new PathRefused({ path: absolute(at, path), found: kindOf(stats) })
}

/** Opens a regular file and nothing else. */
export const open = (at: GuardedRoot, path: string, how: number, mode?: number): number => {
  at.before("open", path)
  const file = fs.openSync(absolute(at, path), how | flags, mode)
  const stats = fs.fstatSync(file, { bigint: true })
  if (stats.isFile()) return file
  fs.closeSync(file)
  throw new PathRefused({ path: absolute(at, path), found: kindOf(stats) })
}

export const using = <A>(at: GuardedRoot, path: string, how: number, use: (file: number) => A, mode?: number): A => {
  const file = open(at, path, how, mode)
  try {
    return use(file)
  } finally {
    fs.closeSync(file)
  }
}

export const remove = (at: GuardedRoot, path: string): void => {
  at.before("remove", path)
  unlessMissing(() => fs.unlinkSync(absolute(at, path)))
}

/** Writes all bytes, in several calls if the system takes fewer. */
export const writeAll = (at: GuardedRoot, file: number, path: string, content: Uint8Array): void => {
  for (let written = 0; written < content.length;) {
    at.before("write", path)
    written += fs.writeSync(file, content, written, content.length - written)
  }
}

/** Sets the group first, because chown clears the setgid bit. */
export const permit = (at: GuardedRoot, file: number, path: string, mode: number, gid?: number): void => {
  at.before("permit", path)
  if (gid !== undefined) fs.fchownSync(file, -1, gid)
  fs.fchmodSync(file, mode)
}

export const stampAt = (file: number): Stamp => stampOf(fs.fstatSync(file, { bigint: true }))

/** Every folder of the path, topmost first. */
export const way = (folder: string): ReadonlyArray<string> =>
  folder === ""
    ? []
    : folder
        .replace(/\/$/, "")
        .split("/")
        .map((_, index, names) => names.slice(0, index + 1).join("/"))

/** Whether the folder has the expected mode and group, or belongs to another user and is left alone. */
export const isPermitted = (stats: fs.BigIntStats, mode: number, gid: number | undefined): boolean =>
  isForeign(stats) || (Number(stats.mode & permissions) === mode && (gid === undefined || Number(stats.gid) === gid))

export const permitFolder = (at: GuardedRoot, path: string, mode: number, gid?: number): void => {
  const folder = fs.openSync(absolute(at, path), fs.constants.O_RDONLY | fs.constants.O_DIRECTORY | flags)
  try {
    permit(at, folder, path, mode, gid)
  } finally {
    fs.closeSync(folder)
  }
}

export const temporaryOf = (path: string): string => {
  const cut = path.lastIndexOf("/") + 1
  return path.slice(0, cut) + temporaryName(path.slice(cut))
}

/** Creates the empty temporary file that replaces this one. */
export const openTemporary = (at: GuardedRoot, path: string, mode: number): number => {
  isFile(at, path)
  const temporary = temporaryOf(path)
  // A killed process may have left one.
  remove(at, temporary)
  return open(at, temporary, fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_EXCL, mode)
}

export const placeTemporary = (at: GuardedRoot, file: number, path: string, mode: number): Stamp => {
  const temporary = temporaryOf(path)
  permit(at, file, temporary, mode)
  at.before("rename", path)
  fs.renameSync(absolute(at, temporary), absolute(at, path))
  return stampAt(file)
}

export const discard = (at: GuardedRoot, path: string): void => {
  try {
    fs.unlinkSync(absolute(at, temporaryOf(path)))
  } catch {
    // The next replacement removes it.
  }
}
