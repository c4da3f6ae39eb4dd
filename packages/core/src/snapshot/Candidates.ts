/**
 * Selects the files that a snapshot stores among the files that changed since the last snapshot, and names the files
 * that it leaves out. Spec: UN-1, UN-5, UN-6 in specs/sessions.md.
 */
import { constants, lstatSync, readFileSync, realpathSync, type Stats } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Array as Arr, Effect } from "effect"
import { isWithin } from "../support/TextFile.ts"
import { projectRoot } from "../trust/ProjectTrust.ts"
import { type SnapshotUnavailable, unavailable } from "./SnapshotError.ts"

// Finds what a Location's snapshots cover, and the ignore rules of its work tree.

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

export const isFolder = (name: string) => lstatSync(name, { throwIfNoEntry: false })?.isDirectory() === true

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

export interface SnapshotLimits {
  /** Bytes of a file; larger files are left out. */
  readonly fileBytes: number
  readonly files: number
  /** Bytes of new and changed files. */
  readonly bytes: number
}

export const defaultLimits: SnapshotLimits = {
  fileBytes: 16 * 1024 * 1024,
  files: 100_000,
  bytes: 1024 * 1024 * 1024
}

export interface Candidates {
  readonly stored: ReadonlyArray<string>
  /** Paths whose file is gone. */
  readonly removed: ReadonlyArray<string>
  /** Paths left out: files above the limit, repositories within the folder, unreadable files, unusual names. */
  readonly omitted: ReadonlyArray<string>
  /** Bytes of the stored files. */
  readonly bytes: number
}

/** The paths of a list that git separates with NUL; a name that is not UTF-8 gets a replacement character. */
export const pathsIn = (output: Buffer): ReadonlyArray<string> => output.toString("utf8").split("\0").filter(Boolean)

/** The paths of `git ls-files -t -z`, and which of them the index does not hold. */
export const taggedIn = (output: Buffer) => {
  const lines = pathsIn(output)
  const names = (wanted: ReadonlyArray<string>) => wanted.map((line) => line.slice(2))
  return { names: names(lines), untracked: new Set(names(lines.filter((line) => line.startsWith("? ")))) }
}

/** git's lists and index use UTF-8; a name in other bytes would be stored as another file. */
const isPlain = (name: string) => !name.includes("\uFFFD")

const isReadable = (file: string) =>
  fs.access(file, constants.R_OK).then(
    () => true,
    () => false
  )

/** Whether a folder of the work tree is behind a link; remembers its answers. */
const linkedFolders = (root: string) => {
  const known = new Map([[root, Promise.resolve(false)]])
  const isLinked = (folder: string): Promise<boolean> => {
    const before = known.get(folder)
    if (before !== undefined) return before
    const answer = isLinked(path.dirname(folder)).then(
      async (linked) => linked || (await fs.lstat(folder).catch(() => undefined))?.isSymbolicLink() === true
    )
    known.set(folder, answer)
    return answer
  }
  return isLinked
}

const choose = async (
  file: string,
  name: string,
  limits: SnapshotLimits,
  isLinked: (folder: string) => Promise<boolean>
): Promise<readonly ["stored" | "removed" | "omitted", number]> => {
  // git names a repository within the work tree with a slash.
  if (name.endsWith("/") || !isPlain(name)) return ["omitted", 0]
  const stats: Stats | undefined = await fs.lstat(file).catch(() => undefined)
  // A file behind a link is not part of the work tree.
  if (stats === undefined || (await isLinked(path.dirname(file)))) return ["removed", 0]
  if (stats.isSymbolicLink()) return ["stored", 0]
  if (!stats.isFile()) return [stats.isDirectory() ? "removed" : "omitted", 0]
  if (stats.size > limits.fileBytes || !(await isReadable(file))) return ["omitted", 0]
  return ["stored", stats.size]
}

/** Files that are looked at together. */
const together = 64

const excess = (limits: SnapshotLimits, files: number, bytes: number) => {
  if (files > limits.files) return unavailable("too-large", `more than ${limits.files} files are new or changed`)
  if (bytes > limits.bytes) return unavailable("too-large", `new and changed files exceed ${limits.bytes} bytes`)
  return undefined
}

/** Selects among these paths, relative to `root`; paths in `hidden` are not looked at. */
export const candidates = (
  root: string,
  names: ReadonlyArray<string>,
  hidden: ReadonlyArray<string>,
  limits: SnapshotLimits
): Effect.Effect<Candidates, SnapshotUnavailable> =>
  Effect.gen(function* () {
    const chosen = { stored: new Array<string>(), removed: new Array<string>(), omitted: new Array<string>() }
    const isLinked = linkedFolders(root)
    const files = [...new Set(names)].flatMap((name) => {
      const file = path.join(root, name)
      return hidden.some((each) => isWithin(each, file)) ? [] : [{ name, file }]
    })
    let bytes = 0
    for (const portion of Arr.chunksOf(files, together)) {
      const found = yield* Effect.promise(() =>
        Promise.all(portion.map(async ({ file, name }) => ({ name, at: await choose(file, name, limits, isLinked) })))
      )
      for (const { at, name } of found) {
        chosen[at[0]].push(name)
        bytes += at[1]
      }
      const error = excess(limits, chosen.stored.length, bytes)
      if (error !== undefined) return yield* error
    }
    return { ...chosen, bytes }
  })
