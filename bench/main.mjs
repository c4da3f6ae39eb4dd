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
const options = {
  outdir: cache,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  splitting: true,
  conditions: ["@daybook/source"],
  platform: "node",
  format: "esm",
  target: "node20",
  logLevel: "warning"
}
await build({
  ...options,
  entryPoints: {
    run: join(bench, "run.ts"),
    ExportChild: join(bench, "ExportChild.ts"),
    ExporterProgram: join(bench, "..", "packages", "files", "src", "ExporterProgram.ts")
  },
  plugins: [installed],
  sourcemap: true
})
// A process whose memory counts contains its libraries, as the bundles of the commands do; only the driver is native.
await build({
  ...options,
  entryPoints: { FormatsChild: join(bench, "FormatsChild.ts") },
  external: ["better-sqlite3"],
  minify: true,
  banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url)' }
})
const { main } = await import(pathToFileURL(join(cache, "run.mjs")).href)
process.exitCode = await main(process.argv.slice(2), cache)
