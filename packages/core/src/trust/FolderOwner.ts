/**
 * Decides who may add files to a folder: only this user and root, or others too. A folder that others can write to says
 * nothing about what this user wants. Spec: specs/trust.md TR-1, TR-2.
 */
import { lstatSync } from "node:fs"

/** The folder's owner, group and mode. */
export interface Held {
  readonly uid: number
  readonly gid: number
  readonly mode: number
}

/** `own`: only this user and root write there. `foreign`: it belongs to another user. `open`: others may write there. */
export type Holding = "own" | "foreign" | "open"

/** This process's user and group; undefined if the system has none. */
const self = (): { readonly uid: number; readonly gid: number } | undefined => {
  const [uid, gid] = [process.geteuid?.(), process.getegid?.()]
  return uid === undefined || gid === undefined ? undefined : { uid, gid }
}

/** How a user owns a folder. Pure. */
export const holdingOf = (folder: Held, me: { readonly uid: number; readonly gid: number }): Holding => {
  if (folder.uid !== me.uid && folder.uid !== 0) return "foreign"
  // A sticky folder is open too: others cannot replace files there, but they can add some.
  if ((folder.mode & 0o002) !== 0) return "open"
  // With umask 002 every folder is writable by its owner's primary group.
  const ownGroup = folder.uid === me.uid && folder.gid === me.gid
  return (folder.mode & 0o020) === 0 || ownGroup ? "own" : "open"
}

const isMissing = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && (cause.code === "ENOENT" || cause.code === "ENOTDIR")

/** How this user owns a folder, by its real path. A missing folder is `own`. */
export const holding = (folder: string): Holding => {
  const me = self()
  if (me === undefined) return "own"
  try {
    return holdingOf(lstatSync(folder), me)
  } catch (cause) {
    return isMissing(cause) ? "own" : "foreign"
  }
}
