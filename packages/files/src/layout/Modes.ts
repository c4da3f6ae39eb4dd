/**
 * Decides the permissions below the root, from the configuration of shared spaces and the mode of the root. Pure. Spec:
 * FI-60, FI-92, FI-93 in specs/files.md, specs/decisions/0018-users-on-one-root.md.
 */
import type { SharedSpaces } from "./Layout.ts"

/** The permissions of paths below a root. Paths are relative to it. */
export interface Modes {
  readonly folder: (path: string) => number
  readonly file: (path: string) => number
  /** The group of a folder; undefined for the user's own group. */
  readonly group: (path: string) => number | undefined
  /** Whether other users must be able to traverse the root. */
  readonly passable: boolean
  /** Whether other users have folders in the root. */
  readonly common: boolean
}

const own = { folder: 0o700, file: 0o600 }
const byReader = {
  owner: own,
  group: { folder: 0o750, file: 0o640 },
  everyone: { folder: 0o755, file: 0o644 }
}
/** New entries of the folder inherit its group. */
const setgid = 0o2000

/** Whether the file has the expected permissions and group. */
export const isPermitted = (
  { file, group }: Modes,
  path: string,
  { gid, mode }: { readonly mode: number; readonly gid: number }
): boolean => mode === file(path) && (group(path) ?? gid) === gid

/** Whether a root of this mode is common: others can write into it, and the sticky bit protects each user's folders. */
export const isCommon = (mode: number): boolean => (mode & 0o1000) !== 0 && (mode & 0o022) !== 0

/**
 * Private files are for the owner alone. A shared space is as open as its configuration says, and private without one.
 * `root` is the mode of the root.
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
