/**
 * Lists the houses under a root, including those that the store does not know. Spec: FI-88, FI-97 in specs/files.md.
 */
import { Effect } from "effect"
import type { SafeError } from "../layout/Errors.ts"
import type { SafeFiles } from "./SafeFiles.ts"

/** Folder names on the path to a house, level by level; undefined matches any name. */
export const levels = [["home", "shared"], undefined, ["agent", "model"], undefined, ["session"]] as const

/** The folder's entries; empty if this user may not read it or the path is refused. */
export const look = (
  files: SafeFiles,
  folder: string
): Effect.Effect<ReadonlyArray<{ readonly name: string; readonly folder: boolean }>, SafeError> =>
  Effect.flatMap(files.reach(folder), (there) => (there ? files.list(folder) : Effect.succeed([]))).pipe(
    Effect.catchIf(
      (error) => error._tag === "PathRefused" || error.code === "EACCES" || error.code === "EPERM",
      () => Effect.succeed([])
    )
  )

/** The folders of all houses, relative to the root. Links are not followed. */
export const houses = Effect.fnUntraced(function* (
  files: SafeFiles
): Effect.fn.Return<ReadonlyArray<string>, SafeError> {
  let found: ReadonlyArray<string> = [""]
  for (const level of levels) {
    const names: ReadonlyArray<string> | undefined = level
    const next: Array<string> = []
    for (const above of found) {
      for (const { folder, name } of yield* look(files, above)) {
        if (folder && names?.includes(name) !== false) next.push(above === "" ? name : `${above}/${name}`)
      }
    }
    found = next
  }
  return found
})
