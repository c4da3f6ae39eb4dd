/** The nodes that share the database, with the sessions that run on each. Spec: IP-530 in specs/http.md. */
import { useEffect, useState } from "preact/hooks"
import type { NodeReport, NodesReport } from "@daybook/log/domain/NodesReport"
import { agoText, countText, durationText } from "../fold/Words.ts"
import type { Api } from "../net/Api.ts"
import { hrefOf } from "../state/Route.ts"
import type { SessionList } from "../state/SessionList.ts"
import { Badge, Table, Text, Time, useEvery, useNow } from "./Parts.tsx"
import { titleOf } from "./Sidebar.tsx"

/** Milliseconds between two looks. A node says every two seconds what it does. */
const lookEvery = 2_000

/** The nodes, again at intervals while they are shown. Undefined: none was ever there, or the server cannot say. */
export const useNodes = (api: Api, isShown: boolean): NodesReport | undefined => {
  const [report, set] = useState<NodesReport | undefined>(undefined)
  const look = () =>
    void api.get<NodesReport>("/nodes").then(
      (next) => set((before) => (next.nodes.length > 0 || before !== undefined ? next : undefined)),
      // The list of sessions says that the server cannot be reached.
      () => undefined
    )
  useEffect(look, [api, isShown])
  useEvery(lookEvery, isShown, look)
  return report
}

const Moves = ({
  node: { handedOver, movedAt, takenUp },
  now
}: {
  readonly node: NodeReport
  readonly now: number
}) => (
  <>
    {`${handedOver} given, ${takenUp} taken`}
    {movedAt === undefined ? undefined : (
      <>
        , last <Time at={movedAt}>{agoText(movedAt, now)}</Time>
      </>
    )}
  </>
)

const Sessions = ({ list, node }: { readonly list: SessionList; readonly node: NodeReport }) => {
  const titles = new Map(list.items.value.map((session) => [String(session.id), titleOf(session)]))
  return (
    <ul>
      {node.sessions.map((id) => (
        <li key={id}>
          <a href={hrefOf(id, "transcript")}>
            <Text>{titles.get(id) ?? id}</Text>
          </a>
        </li>
      ))}
      {node.running > node.sessions.length ? <li>and {node.running - node.sessions.length} more</li> : undefined}
    </ul>
  )
}

export const NodesView = ({ list, report }: { readonly list: SessionList; readonly report: NodesReport }) => {
  const now = useNow(lookEvery)
  return (
    <div class="scroller spending" tabIndex={0} role="region" aria-label="Nodes">
      <h2>Nodes</h2>
      <Table
        names={[
          "Address",
          "State",
          "Started",
          "Workspaces",
          "Running#",
          "Sessions",
          "Loop lag#",
          "Not indexed#",
          "Hand-overs"
        ]}
        rows={report.nodes.map((node) => [
          <Text>{node.address}</Text>,
          <Badge tone={node.leaving ? "warn" : "good"}>{node.leaving ? "leaves" : "up"}</Badge>,
          <Time at={node.since}>{agoText(node.since, now)}</Time>,
          <Text>{node.workspaces.join(", ")}</Text>,
          node.running,
          <Sessions list={list} node={node} />,
          durationText(node.lagMs),
          countText(node.unindexed, "event"),
          <Moves node={node} now={now} />
        ])}
      />
      {report.waiting.length === 0 ? undefined : (
        <>
          <h3>Waiting for a workspace that no node has</h3>
          <ul>
            {report.waiting.map(({ sessionID, workspaceID }) => (
              <li key={sessionID}>
                <a href={hrefOf(sessionID, "transcript")}>
                  <Text>{sessionID}</Text>
                </a>
                : <Text>{workspaceID}</Text>
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  )
}
