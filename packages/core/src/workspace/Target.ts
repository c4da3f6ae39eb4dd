/** Defines what a path from a model leads to. */
import type { Stats } from "node:fs"
import type { FileHandle } from "node:fs/promises"

/** A path inside the Location, or a named reference. */
export interface Target {
  /** Absolute, without symbolic links. */
  readonly real: string
  /** Its name for permissions and people: relative to the Location, `.` for the Location itself. */
  readonly resource: string
  /** The requested path, relative to the same folder, before links were followed. */
  readonly spelled: string
  /** The canonical folder that it must stay in, if not the Location. */
  readonly root?: string
}

/** The call's spelling of its targets, for `Permission`. */
export const spellings = (targets: ReadonlyArray<Target>): ReadonlyMap<string, string> =>
  new Map(targets.map(({ resource, spelled }) => [resource, spelled]))

/** A path that may not exist yet. */
export interface WritableTarget extends Target {
  /** The existing file; undefined if there is none. */
  readonly stats: Stats | undefined
  /** Whether the given path ends in a symbolic link to it. */
  readonly link: boolean
}

export interface OpenFile {
  readonly handle: FileHandle
  readonly stats: Stats
}
