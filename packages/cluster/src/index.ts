/**
 * The public API of `@daybook/cluster`, one namespace per module. A module that is not listed is internal.
 *
 * @module @daybook/cluster
 */
export * as Cluster from "./Cluster.ts"
