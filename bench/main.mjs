/**
 * `npm run bench`: bundles `run.ts` with the packages' sources and runs it with the installed dependencies. It uses sources,
 * not `dist`, so the figures are those of the current code.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { build, transform } from "esbuild"

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
  target: "node22",
  logLevel: "warning"
}
await build({
  ...options,
  entryPoints: {
    run: join(bench, "run.ts"),
    ExportChild: join(bench, "ExportChild.ts"),
    HttpChild: join(bench, "HttpChild.ts"),
    StreamsChild: join(bench, "StreamsChild.ts"),
    ExporterProgram: join(bench, "..", "packages", "files", "src", "ExporterProgram.ts")
  },
  plugins: [installed],
  sourcemap: true
})
// A process whose memory or start counts contains its libraries and is loaded as the commands are, with stored code
// (packages/cli/scripts/bundle.mjs); only the driver is native.
const commands = join(cache, "commands")
rmSync(commands, { recursive: true, force: true })
mkdirSync(commands)
const { outputFiles } = await build({
  ...options,
  outdir: commands,
  outExtension: {},
  entryPoints: { FormatsChild: join(bench, "FormatsChild.ts") },
  external: ["better-sqlite3"],
  minify: true,
  write: false
})
for (const { path, text } of outputFiles) {
  const supported = { "dynamic-import": false }
  const { code } = await transform(text, { format: "cjs", platform: "node", target: "node22", minify: true, supported })
  writeFileSync(path, code)
}
const { main } = await import(pathToFileURL(join(cache, "run.mjs")).href)
process.exitCode = await main(process.argv.slice(2), cache)
