/**
 * Finds what a Location's snapshots cover: its folder, in the git work tree that holds it or in a configured folder, and
 * the ignore rules of that work tree. Reads files only. Spec: UN-1, UN-5.
 */
import { lstatSync, readFileSync, realpathSync } from "node:fs"
import * as path from "node:path"
import { Effect } from "effect"
import { isWithin } from "../support/TextFile.ts"
import { projectRoot } from "../trust/ProjectRoot.ts"

/** The files of a Location, as snapshots see them. */
export interface WorkTree {
  /** The canonical root; paths in snapshots are relative to it. */
  readonly root: string
  /** The Location's canonical folder. */
  readonly directory: string
  /** The repository's own folder; undefined in a configured folder outside of a repository. */
  readonly gitFolder: string | undefined
  /** The repository's `info/exclude`. */
  readonly exclude: string | undefined
}

const isFolder = (name: string) => lstatSync(name, { throwIfNoEntry: false })?.isDirectory() === true

/** The target of a `.git` file, as in a linked work tree or a submodule. */
const linked = (file: string): string | undefined => {
  const [, target] = /^gitdir: (.+?)\s*$/.exec(readFileSync(file, "utf8").slice(0, 4_096)) ?? []
  return target === undefined ? undefined : path.resolve(path.dirname(file), target)
}

/** The folder that linked work trees share. */
const common = (gitFolder: string): string => {
  const file = path.join(gitFolder, "commondir")
  return lstatSync(file, { throwIfNoEntry: false })?.isFile() === true
    ? path.resolve(gitFolder, readFileSync(file, "utf8").trim())
    : gitFolder
}

const gitFolderOf = (root: string): string | undefined => {
  const name = path.join(root, ".git")
  const stats = lstatSync(name, { throwIfNoEntry: false })
  if (stats === undefined) return undefined
  const folder = stats.isFile() ? linked(name) : name
  return folder !== undefined && isFolder(folder) ? folder : undefined
}

/** The work tree of a folder; undefined if no snapshots are taken there, or if the folder cannot be read. */
export const workTreeOf = (folder: string, configured: ReadonlyArray<string>): Effect.Effect<WorkTree | undefined> =>
  Effect.try(() => realpathSync(folder)).pipe(
    Effect.flatMap((directory) =>
      Effect.map(projectRoot(directory), (root): WorkTree | undefined => {
        const gitFolder = gitFolderOf(root)
        if (gitFolder !== undefined) {
          return { root, directory, gitFolder, exclude: path.join(common(gitFolder), "info", "exclude") }
        }
        const named = configured.find((each) => isWithin(each, directory))
        return named === undefined ? undefined : { root: named, directory, gitFolder: undefined, exclude: undefined }
      })
    ),
    Effect.orElseSucceed(() => undefined)
  )
