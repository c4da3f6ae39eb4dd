/** Creates, checks, lists and removes folders below a root. Spec: FI-60..FI-62 in specs/files.md (SC-3). */
import * as fs from "node:fs"
import { Effect } from "effect"
import type { SafeError } from "../layout/Errors.ts"
import type { Modes } from "../layout/Modes.ts"
import {
  absolute,
  attempt,
  type Below,
  codeOf,
  isFolder,
  isForeign,
  isPermitted,
  permissions,
  permitFolder,
  unlessMissing,
  way
} from "./FileCalls.ts"

/** The operations on folders. */
export const folderOperations = (at: Below) => ({
  /** Whether the folder exists. A link or a file on the path is refused. */
  reach: (folder: string): Effect.Effect<boolean, SafeError> =>
    attempt(at, "reach", folder, () => way(folder).every((path) => isFolder(at, path) !== undefined)),

  /**
   * Creates the folders and their parents with permissions and group; returns those that had others. A folder of the
   * root that another user created is left as it is.
   */
  ensureFolders: (
    folders: Iterable<string>,
    wanted: Pick<Modes, "folder" | "group">
  ): Effect.Effect<ReadonlyArray<string>, SafeError> =>
    Effect.suspend(() => {
      const all = new Set([...folders].flatMap(way))
      return Effect.map(
        Effect.forEach(all, (path) =>
          attempt(at, "make", path, () => {
            const [mode, gid] = [wanted.folder(path), wanted.group(path)]
            const found = isFolder(at, path)
            if (found !== undefined && isPermitted(found, mode, gid)) return []
            if (found === undefined) {
              at.before("make folder", path)
              fs.mkdirSync(absolute(at, path), mode)
            }
            permitFolder(at, path, mode, gid)
            return found === undefined ? [] : [path]
          })
        ),
        (changed) => changed.flat()
      )
    }),

  /** The folder's permissions and group; undefined if it is absent, or if another user created it in the root. */
  folderMode: (folder: string): Effect.Effect<{ readonly mode: number; readonly gid: number } | undefined, SafeError> =>
    attempt(at, "look at", folder, () => {
      const stats = isFolder(at, folder)
      return stats === undefined || isForeign(stats)
        ? undefined
        : { mode: Number(stats.mode & permissions), gid: Number(stats.gid) }
    }),

  /** Removes the folder if it is empty, and then its empty parents. */
  removeEmpty: (folder: string): Effect.Effect<void, SafeError> =>
    attempt(at, "remove", folder, () => {
      for (const path of way(folder).toReversed()) {
        at.before("remove", path)
        try {
          fs.rmdirSync(absolute(at, path))
        } catch (error) {
          if (["ENOTEMPTY", "EEXIST"].includes(codeOf(error))) return
          if (codeOf(error) !== "ENOENT") throw error
        }
      }
    }),

  /** Removes the folder if it exists and is empty. */
  removeFolder: (folder: string): Effect.Effect<void, SafeError> =>
    attempt(at, "remove", folder, () => {
      at.before("remove", folder)
      try {
        fs.rmdirSync(absolute(at, folder))
      } catch (error) {
        if (!["ENOENT", "ENOTDIR", "ENOTEMPTY", "EEXIST"].includes(codeOf(error))) throw error
      }
    }),

  /** The folder's entries, by name; empty if it is absent. */
  list: (
    folder: string
  ): Effect.Effect<ReadonlyArray<{ readonly name: string; readonly folder: boolean }>, SafeError> =>
    attempt(at, "list", folder, () => {
      at.before("list", folder)
      const entries = unlessMissing(() => fs.readdirSync(absolute(at, folder), { withFileTypes: true })) ?? []
      return entries.map((entry) => ({ name: entry.name, folder: entry.isDirectory() }))
    })
})
