/** The nodes of a database, and what waits for one that is missing. Spec: CU-34, CU-35 in specs/scale.md. */
import { Schema } from "effect"
import { optional } from "../support/Optional.ts"
import { SessionID } from "./Identifiers.ts"

/** What a node says about its work. */
export const NodeWork = Schema.Struct({
  /** The sessions that run there, at most 50 of them. */
  sessions: Schema.Array(SessionID),
  /** How late its event loop is, in milliseconds: the 99th percentile of a fifth of a second. */
  lagMs: Schema.Int,
  /** How many positions of the log its search index does not have yet. */
  unindexed: Schema.Int,
  /** Sessions that it handed over to other nodes since it started. */
  handedOver: Schema.Int,
  /** Sessions that it took up from other nodes since it started. */
  takenUp: Schema.Int,
  /** When it did the last of these, in milliseconds since the epoch. */
  movedAt: optional(Schema.Int)
})
export type NodeWork = typeof NodeWork.Type

/** A node, as it said a moment ago. */
export const NodeReport = Schema.Struct({
  /** Where the other nodes reach it. */
  address: Schema.String,
  workspaces: Schema.Array(Schema.String),
  /** How many sessions run there. */
  running: Schema.Int,
  ...NodeWork.fields,
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
