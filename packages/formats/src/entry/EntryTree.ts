/**
 * The tree of a log's entries in memory. Real files repeat ids, name missing parents and form cycles: each walk visits an
 * entry at most once, uses no recursion and collects in order. Spec: FM-30..FM-34 in specs/formats.md (TR-1..TR-9).
 */
import type { Entry } from "./Entry.ts"

/** An entry with its children, oldest first. */
export interface Node {
  readonly entry: Entry
  readonly children: Array<Node>
}

/** The entries of a log. `add` is the only change, and costs the same at any length. */
export interface EntryTree {
  /** All entries in file order, also those whose id a later entry repeats. */
  readonly entries: ReadonlyArray<Entry>
  /** The last entry with this id. */
  readonly get: (id: string) => Entry | undefined
  /** The last entry; undefined if there is none. */
  readonly last: () => Entry | undefined
  readonly add: (entry: Entry) => void
  /** The label of an entry, if it has one. */
  readonly label: (id: string) => string | undefined
  /** From the root to the entry. A missing parent and a repeated entry end the walk. */
  readonly path: (leaf: Entry) => ReadonlyArray<Entry>
  /** Every entry once: the roots and, if no root leads to a cycle, the first of its entries. */
  readonly roots: () => ReadonlyArray<Node>
}

const isOlder = (one: Entry, other: Entry): number => (one.time ?? 0) - (other.time ?? 0)

const isRoot = (entry: Entry, byId: ReadonlyMap<string, Entry>): boolean =>
  entry.parentId === null || entry.parentId === entry.id || !byId.has(entry.parentId)

const sorted = (nodes: Array<Node>): Array<Node> => nodes.sort((one, other) => isOlder(one.entry, other.entry))

const rootsOf = (byId: ReadonlyMap<string, Entry>): ReadonlyArray<Node> => {
  const children = new Map<string, Array<Entry>>()
  for (const entry of byId.values()) {
    if (isRoot(entry, byId) || entry.parentId === null) continue
    const siblings = children.get(entry.parentId)
    if (siblings === undefined) children.set(entry.parentId, [entry])
    else siblings.push(entry)
  }
  const seen = new Set<Entry>()
  const grown = (root: Entry): Node => {
    seen.add(root)
    const top: Node = { entry: root, children: [] }
    for (const waiting = [top]; ;) {
      const node = waiting.pop()
      if (node === undefined) return top
      for (const entry of children.get(node.entry.id) ?? []) {
        if (seen.has(entry)) continue
        seen.add(entry)
        const child: Node = { entry, children: [] }
        node.children.push(child)
        waiting.push(child)
      }
      sorted(node.children)
    }
  }
  const all = [...byId.values()]
  const roots = all.filter((entry) => isRoot(entry, byId)).map(grown)
  for (const entry of all) if (!seen.has(entry)) roots.push(grown(entry))
  return sorted(roots)
}

/** The tree of these entries. */
export const make = (initial: Iterable<Entry> = []): EntryTree => {
  const entries: Array<Entry> = []
  const byId = new Map<string, Entry>()
  const labels = new Map<string, string>()

  const add = (entry: Entry): void => {
    entries.push(entry)
    byId.set(entry.id, entry)
    const { body } = entry
    if (body?.type !== "label") return
    const label = (body.label ?? "").trim()
    if (label === "") labels.delete(body.targetId)
    else labels.set(body.targetId, label)
  }
  for (const entry of initial) add(entry)

  const path = (leaf: Entry): ReadonlyArray<Entry> => {
    const seen = new Set<Entry>()
    for (let at: Entry | undefined = leaf; at !== undefined && !seen.has(at);) {
      seen.add(at)
      at = at.parentId === null ? undefined : byId.get(at.parentId)
    }
    return [...seen].toReversed()
  }

  return {
    entries,
    get: (id) => byId.get(id),
    last: () => entries.at(-1),
    add,
    label: (id) => labels.get(id),
    path,
    roots: () => rootsOf(byId)
  }
}
