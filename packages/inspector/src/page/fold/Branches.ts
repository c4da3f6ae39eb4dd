/** How far each message of a tree is indented: a branch that leaves another one stands deeper. Pure. Spec: IP-522. */

/** What is known of a message. */
interface Node {
  readonly id: string
  readonly parentID?: string
}

/** Deeper branches are not indented further. */
const deepest = 12

/** The depth of each message, by its id. Parents come before their children. */
export const depthsOf = (nodes: ReadonlyArray<Node>): ReadonlyMap<string, number> => {
  const [depths, seen] = [new Map<string, number>(), new Set<string>()]
  for (const { id, parentID = "" } of nodes) {
    const of = depths.get(parentID) ?? 0
    // The first child continues its parent's branch.
    depths.set(id, seen.has(parentID) ? Math.min(deepest, of + 1) : of)
    seen.add(parentID)
  }
  return depths
}
