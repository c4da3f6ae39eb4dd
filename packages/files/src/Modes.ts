/** Who may read what under the root: permissions of folders and files, from the operator's word on shared spaces. Pure. Spec: FI-6 in specs/files.md (SC-3, SC-4). */
import type { SharedSpaces } from "./Layout.ts"

export interface Modes {
  readonly folder: (path: string) => number
  readonly file: (path: string) => number
  /** Whether others than the owner must be able to pass through the root. */
  readonly passable: boolean
}

const own = { folder: 0o700, file: 0o600 }
const byReader = {
  owner: own,
  group: { folder: 0o750, file: 0o640 },
  everyone: { folder: 0o755, file: 0o644 }
}

/** Private things are the owner's alone; a shared space is as open as its policy says, and closed without one. */
export const modesOf = (shared: SharedSpaces = {}): Modes => {
  const passable = Object.values(shared).some(({ read }) => read !== "owner")
  const of = (path: string) => {
    const [top, space] = path.split("/")
    if (top !== "shared" || space === undefined || !Object.hasOwn(shared, space)) return own
    return byReader[shared[space]?.read ?? "owner"]
  }
  return {
    folder: (path) => (path === "shared" ? (passable ? 0o711 : 0o700) : of(path).folder),
    file: (path) => of(path).file,
    passable
  }
}
