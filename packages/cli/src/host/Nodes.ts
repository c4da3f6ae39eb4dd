/** The nodes of the database, as it or the server says. A file has none. Spec: CL-822, CL-823 in specs/cli.md. */
import { Array as Arr, Effect } from "effect"
import type { NodesReport } from "@daybook/log/domain/NodesReport"
import * as NodeStore from "@daybook/log/store/NodeStore"
import * as DatabasePath from "../config/DatabasePath.ts"
import { oneLine } from "../render/Plain.ts"
import { many } from "../support/Amounts.ts"
import * as PlaceStore from "./PlaceStore.ts"
import { Remote } from "./Remote.ts"

const none: NodesReport = { nodes: [], waiting: [] }

/** The workspaces that prompts wait for, and why, in a sentence each. */
export const missing = ({ waiting }: NodesReport): ReadonlyArray<readonly [workspace: string, why: string]> =>
  Object.entries(Arr.groupBy(waiting, ({ workspaceID }) => workspaceID)).map(([workspace, { length }]) => [
    workspace,
    `${many(length, "session")} with waiting prompts: no node has the workspace ${oneLine(workspace, 100)}`
  ])

/** The nodes, and the sessions that wait for another one. */
export const found = Effect.gen(function* () {
  const server = yield* Remote
  if (server !== undefined) {
    const { nodesOf } = yield* Effect.promise(() => import("./RemoteHost.ts"))
    return yield* nodesOf(server)
  }
  const place = yield* DatabasePath.existing
  return place._tag === "File" ? none : yield* Effect.provide(NodeStore.report, PlaceStore.layerReading(place))
})
