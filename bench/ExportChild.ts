/**
 * A process that exports a store to a root in the exporter's thread, and prints how long it took and the most memory that it
 * held. Arguments: database, root.
 */
import { Effect, Layer } from "effect"
import * as Garbage from "../packages/log/src/support/Garbage.ts"
import { Exporter } from "../packages/files/src/Exporter.ts"
import * as Store from "../packages/log/src/Store.ts"
import { exporterAt } from "./ExportThread.ts"

// As `daybook serve` does.
Garbage.bound()
const [, , filename = "", root = ""] = process.argv
const began = performance.now()
await Effect.flatMap(Exporter, ({ catchUp }) => catchUp).pipe(
  Effect.provide(Layer.provide(exporterAt(filename, root), Store.layer({ filename }))),
  Effect.runPromise
)
const ms = performance.now() - began
// The kernel counts in kilobytes.
console.log(JSON.stringify({ ms, memory: process.resourceUsage().maxRSS / 1000 }))
