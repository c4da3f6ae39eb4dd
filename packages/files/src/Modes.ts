/**
 * Who may read what under the root: permissions of folders and files, from the operator's word on shared spaces, and from
 * whether the root is common to several users. Pure. Spec: FI-60, FI-90 in specs/files.md,
 * specs/decisions/0018-users-on-one-root.md.
 */
import type { SharedSpaces } from "./Layout.ts"

export interface Modes {
  readonly folder: (path: string) => number
  readonly file: (path: string) => number
  /** The group that a folder is given; undefined where it has that of its user. */
  readonly group: (path: string) => number | undefined
  /** Whether others than the owner must be able to pass through the root. */
  readonly passable: boolean
  /** Whether other users have folders of their own in the root. */
  readonly common: boolean
}

const own = { folder: 0o700, file: 0o600 }
const byReader = {
  owner: own,
  group: { folder: 0o750, file: 0o640 },
  everyone: { folder: 0o755, file: 0o644 }
}
/** What is made in the folder has its group, from the start. */
const setgid = 0o2000

/** Whether a file there has the permissions and the group that it should have. */
export const isPermitted = (
  { file, group }: Modes,
  path: string,
  { gid, mode }: { readonly mode: number; readonly gid: number }
): boolean => mode === file(path) && (group(path) ?? gid) === gid

/** Whether others make their folders in a root of this mode, beside those of its owner and safe from each other. */
export const isCommon = (mode: number): boolean => (mode & 0o1000) !== 0 && (mode & 0o022) !== 0

/**
 * Private things are the owner's alone; a shared space is as open as its policy says, and closed without one. `root`: the
 * mode of the root.
 */
export const modesOf = (shared: SharedSpaces = {}, root = 0o700): Modes => {
  const passable = Object.values(shared).some(({ read }) => read !== "owner")
  const spaceOf = (path: string) => {
    const [top, space] = path.split("/")
    return top === "shared" && space !== undefined && Object.hasOwn(shared, space) ? shared[space] : undefined
  }
  const group = (path: string) => {
    const space = spaceOf(path)
    return space === undefined || space.read === "owner" ? undefined : space.group
  }
  const folder = (path: string) => {
    if (!path.includes("/")) return isCommon(root) ? root & 0o7777 : path === "shared" && passable ? 0o711 : 0o700
    const mode = byReader[spaceOf(path)?.read ?? "owner"].folder
    return group(path) === undefined ? mode : mode | setgid
  }
  return {
    folder,
    file: (path) => byReader[spaceOf(path)?.read ?? "owner"].file,
    group,
    passable,
    common: isCommon(root)
  }
}
