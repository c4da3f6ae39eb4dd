/**
 * `npm run bench`: bundles `run.ts` with the packages' sources and runs it with the installed dependencies. It uses sources,
 * not `dist`, so the figures are those of the current code.
 */
import { mkdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { build } from "esbuild"

const bench = dirname(fileURLToPath(import.meta.url))
// Inside node_modules, so that the bundle finds the same dependencies and git sees nothing.
const cache = join(bench, "..", "node_modules", ".cache", "daybook-bench")
mkdirSync(cache, { recursive: true })
/** Keeps installed packages external; our own packages are bundled from their sources. */
const installed = {
  name: "installed",
  setup: ({ onResolve }) =>
    onResolve({ filter: /^[^./]/ }, ({ kind, path }) =>
      kind === "entry-point" || path.startsWith("@daybook/") ? undefined : { path, external: true }
    )
}
await build({
  entryPoints: {
    run: join(bench, "run.ts"),
    ExportChild: join(bench, "ExportChild.ts"),
    FormatsChild: join(bench, "FormatsChild.ts"),
    ExporterProgram: join(bench, "..", "packages", "files", "src", "ExporterProgram.ts")
  },
  outdir: cache,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  splitting: true,
  plugins: [installed],
  conditions: ["@daybook/source"],
  platform: "node",
  format: "esm",
  target: "node20",
  sourcemap: true,
  logLevel: "warning"
})
const { main } = await import(pathToFileURL(join(cache, "run.mjs")).href)
process.exitCode = await main(process.argv.slice(2), cache)
