/**
 * Reads what the comparison of two checkpoints printed, and decides what a restore does to folders and modes, which git does not
 * know. Paths are bytes, held as Latin-1 texts. Pure. Spec: SL-159..SL-162 in specs/shell.md.
 */

/** The state of a checkpoint besides the contents of its files. */
interface Facts {
  /** Modes other than 644 and 755, in octal. */
  readonly modes: ReadonlyMap<string, string>
  /** Folders that hold captured files. */
  readonly parents: ReadonlyArray<string>
  /** Empty folders that no rule ignores. */
  readonly folders: ReadonlyArray<string>
}

interface Difference {
  readonly path: string
  readonly status: "added" | "changed" | "deleted"
  /** The checkpoint's mode, as git knows it. */
  readonly mode: string
}

interface Comparison {
  readonly target: string
  readonly safety: string
  /** The tree of the present files. */
  readonly from: string
  readonly differences: ReadonlyArray<Difference>
  readonly present: Facts
  readonly wanted: Facts
}

const list = function* (output: string) {
  let at = 0
  while (at < output.length) {
    const items: Array<string> = []
    for (;;) {
      const end = output.indexOf("\0", at)
      if (end < 0) return
      const item = output.slice(at, end)
      at = end + 1
      if (item === "") break
      items.push(item)
    }
    yield items
  }
}

const statuses: Readonly<Record<string, Difference["status"]>> = {
  A: "added",
  D: "deleted",
  M: "changed",
  T: "changed"
}

const differencesIn = (items: ReadonlyArray<string>): ReadonlyArray<Difference> =>
  items.flatMap((head, index) => {
    const path = items[index + 1]
    const [, mode = "", , , status = ""] = head.split(" ")
    const known = statuses[status]
    return index % 2 === 0 && path !== undefined && known !== undefined ? [{ path, mode, status: known }] : []
  })

/** Ignored paths are printed after `./`. */
const bare = (path: string): string => path.slice(2)

/** Undefined if the output is not complete. */
export const comparisonIn = (output: Buffer): Comparison | undefined => {
  const lists = list(output.toString("latin1"))
  let complete = true
  const next = (): ReadonlyArray<string> => {
    const found = lists.next()
    if (found.done !== true) return found.value
    complete = false
    return []
  }
  const facts = (): Facts => {
    const modes = new Map<string, string>()
    for (;;) {
      const [mode, ...paths] = next()
      if (mode === undefined) break
      for (const path of paths) modes.set(path, mode)
    }
    const parents = next()
    const folders = next()
    const ignored = new Set(next().map(bare))
    return { modes, parents, folders: folders.filter((folder) => !ignored.has(folder)) }
  }
  const [target = "", safety = "", from = ""] = next()
  const differences = differencesIn(next())
  const present = facts()
  const wanted = facts()
  return complete && from !== "" ? { target, safety, from, differences, present, wanted } : undefined
}

/** A folder to remove if it is empty, a folder to make, or a mode to set. */
export interface Step {
  readonly verb: "rmdir" | "mkdir" | "chmod"
  /** Octal, for `chmod`; else `-`. */
  readonly mode: string
  readonly path: string
}

/** All folders of a checkpoint, also folders that hold only empty folders. */
const allFolders = ({ folders, parents }: Facts): ReadonlySet<string> => {
  const all = new Set(parents)
  for (const folder of folders) {
    for (let at = folder; at !== "" && !all.has(at); at = at.slice(0, Math.max(0, at.lastIndexOf("/")))) all.add(at)
  }
  return all
}

const byLength = (a: string, b: string): number => a.length - b.length

const executable = (mode: string): boolean => (Number.parseInt(mode, 8) & 0o100) !== 0
const plain = (isExecutable: boolean): string => (isExecutable ? "755" : "644")

const isDeletion = ({ status }: Difference): boolean => status === "deleted"

/** What remains to be done after git has written and removed the files. */
export const steps = ({ differences, present, wanted }: Comparison): ReadonlyArray<Step> => {
  const before = allFolders(present)
  const after = allFolders(wanted)
  const written = new Map(differences.filter((each) => !isDeletion(each)).map(({ mode, path }) => [path, mode]))
  const gone = new Set(differences.filter(isDeletion).map(({ path }) => path))
  const modeAfter = (path: string, exec: boolean) => wanted.modes.get(path) ?? plain(exec)
  const files = [...new Set([...present.modes.keys(), ...wanted.modes.keys(), ...written.keys()])].flatMap((path) => {
    const fresh = written.get(path)
    // A file can take the place of a folder.
    if (gone.has(path) || after.has(path) || (before.has(path) && fresh === undefined)) return []
    if (fresh === "120000") return []
    const known = present.modes.get(path) ?? wanted.modes.get(path) ?? "644"
    const exec = fresh === undefined ? executable(known) : fresh === "100755"
    // git writes a file again, with its plain mode.
    const now = fresh === undefined ? (present.modes.get(path) ?? plain(exec)) : plain(exec)
    const mode = modeAfter(path, exec)
    return mode === now ? [] : [{ verb: "chmod" as const, mode, path }]
  })
  const folders = [...after].flatMap((path) => {
    const mode = modeAfter(path, true)
    const now = before.has(path) ? (present.modes.get(path) ?? "755") : undefined
    return mode === now ? [] : [{ verb: "chmod" as const, mode, path }]
  })
  return [
    ...[...before]
      .filter((path) => !after.has(path))
      .toSorted(byLength)
      .toReversed()
      .map((path) => ({ verb: "rmdir" as const, mode: "-", path })),
    ...wanted.folders.toSorted(byLength).map((path) => ({ verb: "mkdir" as const, mode: "-", path })),
    // The deepest first: a folder's own mode may forbid to enter it.
    ...[...files, ...folders].toSorted((a, b) => b.path.length - a.path.length)
  ]
}

export const encoded = (all: ReadonlyArray<Step>): Buffer =>
  Buffer.from(all.map(({ mode, path, verb }) => `${verb}\0${mode}\0${path}\0`).join(""), "latin1")

/** The files that a restore writes, changes and deletes. */
export const account = (comparison: Comparison, all: ReadonlyArray<Step>) => {
  const folders = allFolders(comparison.wanted)
  const named = new Set(comparison.differences.map(({ path }) => path))
  const modes = all.flatMap(({ path, verb }) =>
    verb === "chmod" && !folders.has(path) && !named.has(path) ? [path] : []
  )
  const of = (status: Difference["status"]) =>
    comparison.differences.flatMap((each) => (each.status === status ? [each.path] : []))
  const shown = (paths: ReadonlyArray<string>) => paths.map((path) => Buffer.from(path, "latin1").toString("utf8"))
  return { added: shown(of("added")), changed: shown([...of("changed"), ...modes]), deleted: shown(of("deleted")) }
}
