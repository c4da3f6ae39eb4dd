/**
 * Who may put files into a folder: this user and root alone, or others too. A folder that others can fill says nothing
 * about what this user wants. Spec: specs/trust.md TR-1, TR-2.
 */
import { lstatSync } from "node:fs"

/** What decides: the numbers of the folder and its mode. */
export interface Held {
  readonly uid: number
  readonly gid: number
  readonly mode: number
}

/** `own`: only this user and root write there. `foreign`: it belongs to another user. `open`: others may write there. */
export type Holding = "own" | "foreign" | "open"

/** This process's user and group; undefined where the system has none. */
const self = (): { readonly uid: number; readonly gid: number } | undefined => {
  const [uid, gid] = [process.geteuid?.(), process.getegid?.()]
  return uid === undefined || gid === undefined ? undefined : { uid, gid }
}

/** How a user holds a folder. Pure. */
export const holdingOf = (folder: Held, me: { readonly uid: number; readonly gid: number }): Holding => {
  if (folder.uid !== me.uid && folder.uid !== 0) return "foreign"
  // A sticky folder is open as well: files of others cannot be replaced there, but anybody adds some.
  if ((folder.mode & 0o002) !== 0) return "open"
  // With a umask of 002 every folder is writable by its owner's own group.
  const ownGroup = folder.uid === me.uid && folder.gid === me.gid
  return (folder.mode & 0o020) === 0 || ownGroup ? "own" : "open"
}

const isMissing = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && (cause.code === "ENOENT" || cause.code === "ENOTDIR")

/** How this user holds a folder, by its real path. In one that is gone nobody put anything. */
export const holding = (folder: string): Holding => {
  const me = self()
  if (me === undefined) return "own"
  try {
    return holdingOf(lstatSync(folder), me)
  } catch (cause) {
    return isMissing(cause) ? "own" : "foreign"
  }
}
