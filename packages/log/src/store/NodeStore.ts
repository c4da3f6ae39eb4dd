/**
 * The nodes of a database, each a row that it renews: for people, and for what waits for a workspace. `@daybook/cluster`
 * writes them; which node holds which shard is the cluster engine's matter. Spec: CU-34, CU-35 in specs/scale.md.
 */
import { Context, Effect } from "effect"
import type { NodeReport, NodesReport } from "../domain/NodesReport.ts"
import type { LogUnavailable } from "../log/EventLog.ts"
import { Inbox } from "./Inbox.ts"
import type { StoreError } from "./StoreError.ts"

/** What `NodeStore` offers. */
export interface Service {
  /** Begins a node's row; one of an earlier process at this address ends. */
  readonly begin: (address: string, workspaces: ReadonlyArray<string>) => Effect.Effect<void, LogUnavailable>
  /** Says that the node lives. */
  readonly renew: (node: Omit<NodeReport, "workspaces" | "since">) => Effect.Effect<void, LogUnavailable>
  readonly end: (address: string) => Effect.Effect<void, LogUnavailable>
  /** Gives up the locks of these shards that the node holds. The table is the cluster engine's. */
  readonly release: (address: string, shards: ReadonlyArray<string>) => Effect.Effect<void, LogUnavailable>
  /** The nodes that said so a moment ago, in the order of their addresses. A file has none. */
  readonly living: Effect.Effect<ReadonlyArray<NodeReport>, LogUnavailable>
}

/**
 * The nodes of a database.
 *
 * @example
 * ```ts
 * import { NodeStore } from "@daybook/log"
 * import { Effect } from "effect"
 *
 * // The addresses of the nodes that have a workspace.
 * export const nodesWith = (workspace: string) =>
 *   Effect.gen(function* () {
 *     const nodes = yield* (yield* NodeStore.NodeStore).living
 *     return nodes.filter(({ workspaces }) => workspaces.includes(workspace)).map(({ address }) => address)
 *   })
 * ```
 */
export class NodeStore extends Context.Tag("@daybook/log/NodeStore")<NodeStore, Service>() {}

/** Whether a node that lives has the workspace. */
export const hasWorkspace = ({ living }: Service, workspaceID: string): Effect.Effect<boolean, LogUnavailable> =>
  Effect.map(living, (nodes) => nodes.some(({ workspaces }) => workspaces.includes(workspaceID)))

/** The nodes that live, and the sessions that wait for another one. */
export const report: Effect.Effect<NodesReport, StoreError, NodeStore | Inbox> = Effect.gen(function* () {
  const nodes = yield* (yield* NodeStore).living
  const known = new Set(nodes.flatMap(({ workspaces }) => workspaces))
  const waiting = (yield* (yield* Inbox).sessions).flatMap(({ id, location: { workspaceID } }) =>
    workspaceID === undefined || known.has(workspaceID) ? [] : [{ sessionID: id, workspaceID }]
  )
  return { nodes, waiting }
})
