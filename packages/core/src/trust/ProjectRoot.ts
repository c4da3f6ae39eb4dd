/**
 * Finds the project of a Location: the nearest folder upwards with `.git`, else the Location's folder. The search stops
 * at the first folder that other users can write to. Spec: CX-32, TR-1.
 */
import { lstatSync } from "node:fs"
import * as path from "node:path"
import { Effect } from "effect"
import { isWithin } from "../support/TextFile.ts"
import { holding } from "./FolderOwner.ts"

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
