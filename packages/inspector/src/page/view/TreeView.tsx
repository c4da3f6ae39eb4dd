/** All messages of a session with their branches, and the way back to each. Spec: IP-522 in specs/http.md. */
import { useEffect, useState } from "preact/hooks"
import type { TreeNode } from "@daybook/log/domain/HistoryPath"
import { depthsOf } from "../fold/Story.ts"
import type { OpenSession } from "../state/OpenSession.ts"
import { go, hrefOf } from "../state/Route.ts"
import { Badge, Empty, Problem, Text, useAction } from "./Parts.tsx"
import { VirtualList } from "./VirtualList.tsx"

/** Reads all pages of the tree again when the head moves. */
const useTree = (session: OpenSession) => {
  const [nodes, setNodes] = useState<ReadonlyArray<TreeNode> | undefined>(undefined)
  const [error, setError] = useState<string | undefined>(undefined)
  const path = session.record.value?.path
  const count = session.transcript.total.value
  useEffect(() => {
    const reading = { isWanted: true }
    const read = async () => {
      const all: Array<TreeNode> = []
      for (let cursor: number | undefined, more = true; more;) {
        const page = await session.tree(cursor)
        all.push(...page.items)
        cursor = page.cursor
        more = cursor !== undefined
      }
      if (reading.isWanted) setNodes(all)
    }
    read().catch((cause: unknown) => setError(cause instanceof Error ? cause.message : String(cause)))
    return () => void (reading.isWanted = false)
  }, [session, JSON.stringify(path), count])
  return { nodes, error }
}

export const TreeView = ({ session }: { readonly session: OpenSession }) => {
  const { error, nodes } = useTree(session)
  const action = useAction()
  if (nodes === undefined) return <Empty>{error ?? "Reading the tree…"}</Empty>
  if (nodes.length === 0) return <Empty>No message yet.</Empty>
  const depths = depthsOf(nodes)
  const goOn = async (id: string) => {
    if (await action.run(() => session.branch(id))) go(hrefOf(session.id, "transcript"))
  }
  const row = ({ id, label, leaf, onPath, seq, text, type }: TreeNode) => (
    <div
      class={`branch-row${onPath ? " on-path" : ""}`}
      style={{ paddingInlineStart: `calc(24px + ${depths.get(id) ?? 0}rem)` }}
    >
      <Badge tone={onPath ? "good" : "plain"}>{type}</Badge>
      {label === undefined ? undefined : (
        <Badge tone="warn">
          <Text>{label}</Text>
        </Badge>
      )}
      <span class="one-line">
        <Text>{text}</Text>
      </span>
      {leaf === true ? (
        <span class="soft">history continues here</span>
      ) : (
        <button type="button" disabled={action.isBusy} onClick={() => void goOn(id)}>
          {type === "user" ? "Edit and send again" : "Continue here"}
        </button>
      )}
      <a href={hrefOf(session.id, "events", seq)}>{seq}</a>
    </div>
  )
  return (
    <>
      <Problem>{action.error}</Problem>
      <VirtualList
        class="tree"
        label="Messages with their branches"
        count={nodes.length}
        estimate={36}
        keyOf={(index) => nodes[index]?.id ?? index}
        row={(index) => {
          const node = nodes[index]
          return node === undefined ? undefined : row(node)
        }}
      />
    </>
  )
}
