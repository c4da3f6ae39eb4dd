/**
 * Selects the files that a snapshot stores, out of those that are new or changed since the last one, and names those that
 * it leaves out. Spec: UN-5, UN-6.
 */
import { constants, type Stats } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Array as Arr, Effect } from "effect"
import { isWithin } from "../support/TextFile.ts"
import { type SnapshotUnavailable, unavailable } from "./SnapshotError.ts"

/** Limits of one snapshot. */
export interface SnapshotLimits {
  /** Bytes of a file; larger files are left out. */
  readonly fileBytes: number
  /** New and changed files. */
  readonly files: number
  /** Bytes of new and changed files. */
  readonly bytes: number
}

export const defaultLimits: SnapshotLimits = {
  fileBytes: 16 * 1024 * 1024,
  files: 100_000,
  bytes: 1024 * 1024 * 1024
}

/** What a snapshot stores and leaves out. */
export interface Candidates {
  /** Paths to store. */
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

type Choice = "stored" | "removed" | "omitted"

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
): Promise<readonly [Choice, number]> => {
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
