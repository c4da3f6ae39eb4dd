/** The project that a Location belongs to: the nearest folder upwards with `.git`, else the Location's own. Spec: CX-32. */
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Effect } from "effect"
import { isWithin } from "../config/TextFile.ts"

/** Folders from the root of the file system down to `folder`. */
const upwards = (folder: string): ReadonlyArray<string> => {
  const parent = path.dirname(folder)
  return parent === folder ? [folder] : [folder, ...upwards(parent)]
}

const exists = (name: string) =>
  fs.lstat(name).then(
    () => true,
    () => false
  )

/** The project's root of a canonical folder. */
export const projectRoot = (directory: string): Effect.Effect<string> =>
  Effect.promise(async () => {
    for (const folder of upwards(directory)) if (await exists(path.join(folder, ".git"))) return folder
    return directory
  })

/** The folders from `top`, inclusive, down to `folder`, inclusive; none where `folder` is not below `top`. */
export const foldersBetween = (top: string, folder: string): ReadonlyArray<string> =>
  isWithin(top, folder)
    ? upwards(folder)
        .filter((each) => isWithin(top, each))
        .toReversed()
    : []
