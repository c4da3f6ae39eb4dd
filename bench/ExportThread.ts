/** Starts the exporter's thread: `main.mjs` bundles its program beside the benchmarks. */
import { Worker } from "node:worker_threads"
import * as ExporterThread from "../packages/files/src/ExporterThread.ts"

export const exporterAt = (filename: string, root: string) =>
  ExporterThread.layer({
    filename,
    root,
    uid: 1000,
    spawn: () =>
      new Worker(new URL("./ExporterProgram.mjs", import.meta.url), { resourceLimits: ExporterThread.resourceLimits })
  })
