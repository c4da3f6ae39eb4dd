/**
 * File and folder operations under one root: replaces a value atomically, appends to a log, moves a foreign file aside.
 * The calls (`FileCalls.ts`) are short and synchronous, like those of the database: handing one to another thread costs
 * a hundred times its work. Reading a whole file yields between pieces. It knows nothing of sessions. Spec:
 * FI-60..FI-64 in specs/files.md (SC-3, FL-3).
 */
import * as FileCalls from "./FileCalls.ts"
import { folderOperations } from "./FolderOperations.ts"
import { readOperations } from "./ReadOperations.ts"
import { writeOperations } from "./WriteOperations.ts"

export { temporaryName, type FileOperation, type SafeFilesOptions } from "./FileCalls.ts"
export type { Stamp, Sum } from "./Stamp.ts"
export type { Replacement } from "./WriteOperations.ts"

export type SafeFiles = ReturnType<typeof make>

/** Whether `keepAside` makes such a name. */
export const isAside = (name: string): boolean => /\.aside\.[1-9]\d*$/.test(name)

/**
 * The file operations under a root. Paths are relative to it, with slashes. The caller has checked the folder of a
 * file.
 */
export const make = ({ before = () => undefined, root }: FileCalls.SafeFilesOptions) => {
  const at: FileCalls.Below = { root, before }
  return {
    root,
    absolute: (path: string): string => FileCalls.absolute(at, path),
    ...folderOperations(at),
    ...readOperations(at),
    ...writeOperations(at)
  }
}
