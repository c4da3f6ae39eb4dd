/**
 * Renders the tree of a session's messages. The way to the leaf stays at the left; a branch that was left is indented below
 * the message where it begins. Pure. Spec: CL-211, CL-212 in specs/cli.md.
 */
import type { TreeNode } from "@daybook/log/domain/HistoryPath"
import { jsonLine, oneLine } from "./Plain.ts"

/** One node as JSON, as the facade returns it. */
export const nodeJson = (node: TreeNode, terminal = false): string => jsonLine(node, terminal)

/** Levels that are indented; deeper ones stay at the last level. */
const levels = 12

interface Line {
  readonly node: TreeNode
  /** Before the node. */
  readonly head: string
  /** Before the nodes that follow it. */
  readonly rest: string
  readonly level: number
}

const lineOf = ({ head, node }: Line): string => {
  const label = node.label === undefined ? "" : `[${oneLine(node.label)}] `
  const leaf = node.leaf === true ? "  <- history continues here" : ""
  const text = node.text === "" ? "(no text)" : oneLine(node.text, 60)
  const seq = String(node.seq).padStart(6)
  return `${head}${node.onPath ? "*" : "o"} ${seq}  ${node.type.padEnd(14)}  ${node.id}  ${label}${text}${leaf}\n`
}

/** The lines of a tree; `nodes` are in the order of the log. */
export const treeLines = function* (nodes: ReadonlyArray<TreeNode>): Generator<string> {
  const children = new Map<string | undefined, Array<TreeNode>>()
  const known = new Set<string>()
  for (const node of nodes) {
    known.add(node.id)
    // A parent comes first; a message without one is shown as a root.
    const parent = node.parentID !== undefined && known.has(node.parentID) ? node.parentID : undefined
    const siblings = children.get(parent)
    if (siblings === undefined) children.set(parent, [node])
    else siblings.push(node)
  }
  /** The lines below a node, the last one first: its branches, then the way that goes on. */
  const below = (parent: string | undefined, rest: string, level: number): ReadonlyArray<Line> => {
    const own = children.get(parent) ?? []
    const way = own.find(({ onPath }) => onPath) ?? own.at(-1)
    const deeper = level < levels ? [`${rest}|- `, `${rest}|  `] : [rest, rest]
    return own
      .map((node): Line =>
        node === way
          ? { node, head: rest, rest, level }
          : { node, head: deeper[0] ?? rest, rest: deeper[1] ?? rest, level: level + 1 }
      )
      .toSorted((a, b) => Number(b.node === way) - Number(a.node === way) || b.node.seq - a.node.seq)
  }
  const open: Array<Line> = [...below(undefined, "", 0)]
  for (let line = open.pop(); line !== undefined; line = open.pop()) {
    yield lineOf(line)
    open.push(...below(line.node.id, line.rest, line.level))
  }
}
