/** The nodes of a database, and what waits for one that is missing. Spec: CU-34, CU-35 in specs/scale.md. */
import { Schema } from "effect"
import { SessionID } from "./Identifiers.ts"

/** A node, as it said a moment ago. */
export const NodeReport = Schema.Struct({
  /** Where the other nodes reach it. */
  address: Schema.String,
  workspaces: Schema.Array(Schema.String),
  /** Sessions that run there. */
  running: Schema.Int,
  /** When it started, in milliseconds since the epoch. */
  since: Schema.Int,
  /** It takes no new work, and ends when its turns do. */
  leaving: Schema.Boolean
}).annotations({ identifier: "NodeReport" })
export type NodeReport = typeof NodeReport.Type

export const NodesReport = Schema.Struct({
  /** In the order of their addresses. */
  nodes: Schema.Array(NodeReport),
  /** Sessions with waiting prompts whose workspace no node has. */
  waiting: Schema.Array(
    Schema.Struct({ sessionID: SessionID, workspaceID: Schema.String }).annotations({ identifier: "WaitsForNode" })
  )
}).annotations({ identifier: "NodesReport" })
export type NodesReport = typeof NodesReport.Type
