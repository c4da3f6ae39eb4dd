/** What differs between two snapshots, and what an undo does with each path. Pure. Spec: UN-20..UN-23. */

/** The state of a path: git's mode and the id of its content; undefined if there is no file. */
export type State = { readonly mode: "100644" | "100755" | "120000"; readonly id: string } | undefined

/** A path, relative to the root of the work tree, with its states in two snapshots. */
export interface Change {
  readonly path: string
  readonly before: State
  readonly after: State
}

export const isSame = (a: State, b: State): boolean => a?.mode === b?.mode && a?.id === b?.id

const stateOf = (mode: string, id: string): State =>
  mode === "100644" || mode === "100755" || mode === "120000" ? { mode, id } : undefined

export interface Pair {
  readonly before: string
  readonly after: string
}

const heading = /^([0-9a-f]{40}) ([0-9a-f]{40})\n/

/**
 * Reads the output of `git diff-tree --stdin -r -z --raw --no-abbrev`: the changes of each pair, with its snapshots. git
 * leaves out a pair with a missing snapshot.
 */
export const changesIn = (output: Buffer): ReadonlyArray<Pair & { readonly changes: ReadonlyArray<Change> }> => {
  const fields = output.toString("utf8").split("\0")
  const groups: Array<Pair & { readonly changes: Array<Change> }> = []
  for (let at = 0; at < fields.length; at += 2) {
    let field = fields[at] ?? ""
    for (let found = heading.exec(field); found !== null; found = heading.exec(field)) {
      const [all, before = "", after = ""] = found
      groups.push({ before, after, changes: [] })
      field = field.slice(all.length)
    }
    const [was = "", is = "", old = "", now = ""] = field.slice(1).split(" ")
    const path = fields[at + 1]
    if (path !== undefined) groups.at(-1)?.changes.push({ path, before: stateOf(was, old), after: stateOf(is, now) })
  }
  return groups
}

/** What an undo of several turns does with a path. `foreign`: others changed it between two of the turns. */
export interface Joined extends Change {
  readonly foreign: boolean
}

/** Joins the changes of consecutive turns, oldest first: the state before the first one and after the last one. */
export const join = (turns: ReadonlyArray<ReadonlyArray<Change>>): ReadonlyArray<Joined> => {
  const joined = new Map<string, Joined>()
  for (const change of turns.flat()) {
    const earlier = joined.get(change.path)
    joined.set(
      change.path,
      earlier === undefined
        ? { ...change, foreign: false }
        : { ...earlier, after: change.after, foreign: earlier.foreign || !isSame(earlier.after, change.before) }
    )
  }
  return [...joined.values()].filter(({ after, before, foreign }) => foreign || !isSame(before, after))
}
