/**
 * The public API of `@daybook/files`; everything else is internal.
 *
 * @module @daybook/files
 */
export * from "./layout/Errors.ts"
export { Exporter, type ExporterOptions, type ExporterService } from "./Exporter.ts"
export * as ExporterThread from "./ExporterThread.ts"
export { follower, type FollowerState } from "./record/LedgerFile.ts"
export * from "./layout/Layout.ts"
export { indexFiles, type IndexEntry, valueFiles } from "./render/Values.ts"
export type { Exported } from "./ExporterRequests.ts"
export { verify, type VerifyError, type VerifyOptions } from "./verify/Verify.ts"
