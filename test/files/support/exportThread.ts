/** The program of an export thread, bundled once for a test file: tests run the packages' sources. */
import { mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Worker } from "node:worker_threads"
import { build } from "esbuild"

const root = fileURLToPath(new URL("../../..", import.meta.url))

export interface ThreadProgram {
  /** Starts a thread; the last one is the last of `threads`. */
  readonly spawn: () => Worker
  readonly threads: ReadonlyArray<Worker>
  readonly remove: () => void
}

export const threadProgram = async (): Promise<ThreadProgram> => {
  const folder = mkdtempSync(join(tmpdir(), "daybook-thread-"))
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
  const outfile = join(folder, "thread.mjs")
  await build({
    entryPoints: [join(root, "packages", "files", "src", "ExporterProgram.ts")],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    conditions: ["@daybook/source"],
    external: ["better-sqlite3"],
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);"
    },
    logLevel: "error"
  })
  const threads: Array<Worker> = []
  return {
    threads,
    spawn: () => {
      const thread = new Worker(outfile, { execArgv: [] })
      threads.push(thread)
      return thread
    },
    remove: () => rmSync(folder, { recursive: true, force: true })
  }
}
