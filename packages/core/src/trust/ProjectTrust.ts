/**
 * Decides whether what a project brings counts: its instructions, agents, skills, templates, and saved approvals. The
 * host supplies the decision; `TrustStore.ts` keeps a person's decisions. Spec: TR-1, TR-2, TR-20, TR-30 in
 * specs/security.md, CX-32 in specs/context.md.
 */
import { lstatSync } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Context, Effect } from "effect"
import { isAbsent } from "@daybook/log/support/SystemError"
import { isWithin } from "../support/TextFile.ts"

/**
 * Identifies the folder at a path, so that a recreated folder inherits no decision: by its inode and birth time, because
 * inodes are reused; where birth times are not recorded, by its inode and device. The device number alone may change when
 * the system starts. Spec: PM-42, TR-10.
 */
export const folderIdentity = async (folder: string): Promise<string> => {
  const { birthtimeNs, dev, ino } = await fs.stat(folder, { bigint: true })
  return birthtimeNs > 0n ? `inode ${ino} born ${birthtimeNs}` : `inode ${ino} device ${dev}`
}

// Decides who may add files to a folder: only this user and root, or others too.

type FolderOwner = { readonly uid: number; readonly gid: number; readonly mode: number }

/** `own`: only this user and root write there. `foreign`: it belongs to another user. `open`: others may write there. */
type Holding = "own" | "foreign" | "open"

/** This process's user and group; undefined if the system has none. */
const self = (): { readonly uid: number; readonly gid: number } | undefined => {
  const [uid, gid] = [process.geteuid?.(), process.getegid?.()]
  return uid === undefined || gid === undefined ? undefined : { uid, gid }
}

/** How a user owns a folder. Pure. */
export const holdingOf = (folder: FolderOwner, me: { readonly uid: number; readonly gid: number }): Holding => {
  if (folder.uid !== me.uid && folder.uid !== 0) return "foreign"
  // A sticky folder is open too: others cannot replace files there, but they can add some.
  if ((folder.mode & 0o002) !== 0) return "open"
  // With umask 002 every folder is writable by its owner's primary group.
  const ownGroup = folder.uid === me.uid && folder.gid === me.gid
  return (folder.mode & 0o020) === 0 || ownGroup ? "own" : "open"
}

/** How this user owns a folder, by its real path. A missing folder is `own`. */
export const holding = (folder: string): Holding => {
  const me = self()
  if (me === undefined) return "own"
  try {
    return holdingOf(lstatSync(folder), me)
  } catch (cause) {
    return isAbsent(cause) ? "own" : "foreign"
  }
}

/** Folders from the root of the file system down to `folder`. */
const upwards = (folder: string): ReadonlyArray<string> => {
  const parent = path.dirname(folder)
  return parent === folder ? [folder] : [folder, ...upwards(parent)]
}

const exists = (name: string): boolean => {
  try {
    return lstatSync(name, { throwIfNoEntry: false }) !== undefined
  } catch {
    return false
  }
}

// Finds the project of a Location: the nearest folder upwards with `.git`, else the Location's folder. The search stops
// at the first folder that other users can write to.

/** The project root of a canonical folder. */
export const projectRoot = (directory: string): Effect.Effect<string> =>
  Effect.sync(() => {
    for (const folder of upwards(directory)) {
      // Other users can write here, so they would choose the project: stay at the Location.
      if (holding(folder) !== "own") return directory
      if (exists(path.join(folder, ".git"))) return folder
    }
    return directory
  })

/** Whether no folder below `top`, down to `folder`, is writable by other users. */
export const isOwnBelow = (top: string, folder: string): Effect.Effect<boolean> =>
  Effect.sync(() => {
    for (const each of foldersBetween(top, folder)) {
      if (each !== top && holding(each) !== "own") return false
    }
    return true
  })

/** The folders from `top` to `folder`, both included; empty if `folder` is not below `top`. */
export const foldersBetween = (top: string, folder: string): ReadonlyArray<string> =>
  isWithin(top, folder)
    ? upwards(folder)
        .filter((each) => isWithin(top, each))
        .toReversed()
    : []

export interface TrustState {
  /** `unknown`: there is no decision about its current content. It has the effect of `restricted`. */
  readonly state: "trusted" | "restricted" | "unknown"
  /** Why, as a clause about the folder: "it belongs to another user". */
  readonly why: string
  /** Whether it was decided; if false, it is trusted only because it brings nothing. */
  readonly decided: boolean
  /** The approved instruction files, relative to the root, with `/`; undefined: all of them. */
  readonly approved?: ReadonlySet<string>
}

export interface Trust {
  readonly of: (root: string) => Effect.Effect<TrustState>
}

export const foreign: TrustState = { state: "restricted", why: "it belongs to another user", decided: false }

/** For hosts that created their working folders: trusts every project, except folders of other users. */
export const trustAll: Trust = {
  of: (root) =>
    Effect.map(
      Effect.sync(() => holding(root)),
      (held): TrustState =>
        held === "foreign"
          ? foreign
          : { state: "trusted", why: "its host trusts every folder of this user", decided: true }
    )
}

/** The host's decision. Services read it when they are built, so a host provides it to all of them. */
export class ProjectTrust extends Context.Reference<ProjectTrust>()("@daybook/core/ProjectTrust", {
  defaultValue: (): Trust => trustAll
}) {}

export const isTrusted = ({ state }: TrustState): boolean => state === "trusted"

// Finds the project of a Location and whether what it brings counts.

export interface Project {
  /** Canonical. */
  readonly root: string
  readonly standing: TrustState
}

/** The project of a canonical folder. */
export const projectAt = (trust: Trust, directory: string): Effect.Effect<Project> =>
  Effect.flatMap(projectRoot(directory), (root) => Effect.map(trust.of(root), (standing) => ({ root, standing })))

const named = (root: string) => `the project in ${JSON.stringify(root)}`

/** Why nothing that the project brings counts, as a clause; undefined if it is trusted. */
export const notCounting = ({ root, standing }: Project): string | undefined =>
  isTrusted(standing) ? undefined : `${named(root)} is not trusted: ${standing.why}`

/** Why an instruction file does not count: in a trusted project, only files from when it was trusted do. */
export const notApproved = (project: Project, file: string): string | undefined => {
  const { root, standing } = project
  const why = notCounting(project)
  if (why !== undefined || standing.approved === undefined) return why
  return standing.approved.has(path.relative(root, file).replaceAll(path.sep, "/"))
    ? undefined
    : `it is not among the files that were trusted in ${named(root)}`
}
