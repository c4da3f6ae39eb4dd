/** Defines the root that a verification checks, and its findings. */
import type { SafeFiles } from "../disk/SafeFiles.ts"
import type { Finding, FindingKind } from "../layout/Errors.ts"
import type { Modes } from "../layout/Layout.ts"

/** The files under a root, and the permissions that they should have. */
export interface CheckedRoot {
  readonly files: SafeFiles
  readonly modes: Modes
}

export type Found = ReadonlyArray<Finding>

/** A finding at a path; `sessionID` names the session that it belongs to, if any. */
export const findingAt = (
  path: string,
  sessionID: string | undefined,
  kind: FindingKind,
  details: string
): Finding => ({
  kind,
  path,
  ...(sessionID === undefined ? {} : { sessionID }),
  details
})

interface Permitted {
  readonly mode: number
  readonly gid?: number | undefined
}

/** The difference of two permissions as a sentence. */
export const wrongMode = (whose: string, found: Permitted, wanted: Permitted): string =>
  found.mode === wanted.mode
    ? `${whose} group is ${found.gid}, not ${wanted.gid}`
    : `${whose} permissions are ${found.mode.toString(8)}, not ${wanted.mode.toString(8)}`

export const parentOf = (path: string): string => path.slice(0, path.lastIndexOf("/"))
