/** The promise of `@daybook/files`. What is not here is internal. */
export * from "./Errors.ts"
export { Exporter, type Exported, type ExporterOptions } from "./Exporter.ts"
export * from "./Layout.ts"
export * from "./Rows.ts"
export { runOf } from "./Run.ts"
export * as Fold from "./Fold.ts"
export { indexFiles, type IndexEntry } from "./IndexFiles.ts"
export { valueFiles } from "./Values.ts"
