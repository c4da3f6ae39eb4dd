/** What only the importing process of `FormatsChild.ts` loads. */
export * as Garbage from "../packages/log/src/support/Garbage.ts"
export * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
export { importLog } from "../packages/formats/src/import/Import.ts"
export * as LogSource from "../packages/formats/src/import/LogSource.ts"
