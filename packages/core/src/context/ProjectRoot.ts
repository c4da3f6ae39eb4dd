/**
 * The project that a Location belongs to: the nearest folder upwards with `.git`, else the Location's own folder. The way
 * up ends below the first folder that others can fill. Spec: CX-32, TR-1.
 */
import { lstatSync } from "node:fs"
import * as path from "node:path"
import { Effect } from "effect"
import { isWithin } from "../config/TextFile.ts"
import { holding } from "../trust/FolderOwner.ts"

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

/** The project's root of a canonical folder. */
export const projectRoot = (directory: string): Effect.Effect<string> =>
  Effect.sync(() => {
    for (const folder of upwards(directory)) {
      // From a Location that others can fill no way leads up: whose project it is part of is for them to say.
      if (holding(folder) !== "own") return directory
      if (exists(path.join(folder, ".git"))) return folder
    }
    return directory
  })

/** Whether no folder below `top`, down to `folder`, can be filled by others. */
export const isOwnBelow = (top: string, folder: string): Effect.Effect<boolean> =>
  Effect.sync(() => {
    for (const each of foldersBetween(top, folder)) {
      if (each !== top && holding(each) !== "own") return false
    }
    return true
  })

/** The folders from `top`, inclusive, down to `folder`, inclusive; none where `folder` is not below `top`. */
export const foldersBetween = (top: string, folder: string): ReadonlyArray<string> =>
  isWithin(top, folder)
    ? upwards(folder)
        .filter((each) => isWithin(top, each))
        .toReversed()
    : []
