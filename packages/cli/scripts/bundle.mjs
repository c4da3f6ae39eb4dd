/**
 * Bundles the commands into dist/bundle. `ctx.js` contains `ctx`, `stream.js` prints help. `daybook` has two bundles:
 * `reader.js` is one file for the reading verbs, with the store and nothing that runs a session; `main.js` has everything, as
 * ES modules split at every dynamic import, so that a provider is loaded on first use. `exporter.js`, the program of the
 * exporter's thread, shares these modules. Each file of `main.js` is converted to CommonJS, which Node starts faster and V8 can
 * load from its code cache. The native driver stays outside. Finally the help texts are written, and the commands run in a
 * temporary folder to fill the caches. Spec: CL-60 in specs/cli.md.
 */
import { build, transform } from "esbuild"
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { basename, join, resolve } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { bundled } from "../../inspector/scripts/page.mjs"
import { notices } from "../../../scripts/notices.mjs"
import { plugins } from "./plugins.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))
// `--out DIR` writes a copy for tests to DIR: bin/ and dist/bundle/.
const {
  values: { out }
} = parseArgs({ options: { out: { type: "string" } } })
const outdir = resolve(out ?? root, "dist", "bundle")
if (out !== undefined) await cp(join(root, "bin"), join(out, "bin"), { recursive: true })
const require = createRequire(import.meta.url)
const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"))

const options = {
  entryPoints: [join(root, "src", "main.ts")],
  outdir,
  bundle: true,
  minify: true,
  platform: "node",
  target: "node22",
  conditions: ["@daybook/source"],
  // Native packages; `sharp` is optional, and loaded for the first picture. `ssh2` and `discord.js` do without their native parts.
  external: [
    "better-sqlite3",
    "sharp",
    "cpu-features",
    "zlib-sync",
    "bufferutil",
    "utf-8-validate",
    "pg-native",
    "*.node"
  ],
  plugins,
  legalComments: "none",
  logLevel: "warning"
}
/** What a reading verb imports when it runs is not needed to read: bin/daybook.js sends the other verbs to main.js. */
const later = {
  name: "later",
  setup: ({ onResolve }) =>
    onResolve({ filter: /^\./ }, ({ kind, path }) => (kind === "dynamic-import" ? { path, external: true } : undefined))
}
const reader = await build({
  ...options,
  write: false,
  entryPoints: [join(root, "src", "reader.ts")],
  format: "cjs",
  plugins: [...plugins, later]
})
const ctx = await build({
  ...options,
  write: false,
  entryPoints: { ctx: join(root, "src", "ctx", "main.ts") },
  format: "cjs",
  define: { CTX_VERSION: JSON.stringify(version) }
})
const stream = await build({
  ...options,
  write: false,
  entryPoints: { stream: join(root, "src", "support", "Stream.ts") },
  format: "cjs"
})
const inspector = await bundled()
const { metafile, outputFiles } = await build({
  ...options,
  entryPoints: {
    main: join(root, "src", "main.ts"),
    exporter: join(root, "..", "files", "src", "ExporterProgram.ts")
  },
  format: "esm",
  define: {
    DAYBOOK_VERSION: JSON.stringify(version),
    DAYBOOK_INSPECTOR_SCRIPT: JSON.stringify(inspector.script),
    DAYBOOK_INSPECTOR_STYLE: JSON.stringify(inspector.style)
  },
  splitting: true,
  chunkNames: "[name]-[hash]",
  write: false,
  metafile: true
})
// The old bundle is replaced only after the new one was built.
await rm(outdir, { recursive: true, force: true })
await mkdir(outdir, { recursive: true })
for (const { contents, path } of [ctx, reader, stream].flatMap(({ outputFiles }) => outputFiles))
  await writeFile(path, contents)
for (const { path, text } of outputFiles) {
  // `import()` becomes a promise of `require()`, the only form that the loader of bin/ supports.
  const supported = { "dynamic-import": false }
  const { code } = await transform(text, { format: "cjs", platform: "node", target: "node22", minify: true, supported })
  await writeFile(path, code)
}

await writeFile(
  join(outdir, "THIRD-PARTY-NOTICES.txt"),
  await notices([...Object.keys(metafile.inputs), ...inspector.inputs])
)

const { load, loaded, store } = require("../bin/load.js")
await writeFile(join(outdir, "help.json"), JSON.stringify(await load(join(outdir, "main.js")).texts(version)))
// This loaded every verb; the commands that run below store more of the code that they use.
store(loaded.keys())

const fillCaches = async () => {
  const folder = await mkdtemp(join(tmpdir(), "daybook-bundle-"))
  try {
    const env = { PATH: process.env["PATH"], HOME: folder, DAYBOOK_DB: join(folder, "warm.sqlite") }
    const program = join(root, "scripts", "warm.cjs")
    const warm = (...words) => {
      const { status, stderr } = spawnSync(process.execPath, [program, outdir, ...words], {
        cwd: folder,
        env,
        input: "",
        encoding: "utf8",
        timeout: 60_000
      })
      // A bundle works without caches, but a command that fails is an error.
      if (status !== 0) throw new Error(`daybook ${words.join(" ")} ended with ${status}: ${stderr}`)
    }
    // A server ends when it is ready.
    const warmServer = async (...words) => {
      const server = spawn(process.execPath, [program, outdir, "main.js", ...words], {
        cwd: folder,
        env,
        stdio: ["ignore", "pipe", "inherit"],
        timeout: 60_000
      })
      const ended = once(server, "exit")
      for await (const line of createInterface(server.stdout)) if (line === "ready") server.kill("SIGTERM")
      const [status] = await ended
      if (status !== 0) throw new Error(`daybook ${words.join(" ")} ended with ${status}`)
    }
    warm("main.js", "prompt", "hello")
    warm("reader.js", "sessions")
    warm("reader.js", "events")
    warm("reader.js", "events", "--json")
    warm("main.js", "files", "export")
    warm("main.js", "context")
    warm("main.js", "--plain")
    warm("reader.js", "context", "--at", "9")
    warm("main.js", "export", "hello", "--format", "pi", "--out", "hello.jsonl")
    warm("main.js", "import", "hello.jsonl")
    warm("main.js", "search", "hello")
    warm("main.js", "shell", "list")
    warm("ctx.js", "history", "build")
    await warmServer("serve", "--http", "127.0.0.1:0", "--log-level", "warning")
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
await fillCaches()

const bytes = outputFiles.reduce((sum, { contents }) => sum + contents.length, 0)
console.log(`daybook ${version}: ${outputFiles.length} files, ${Math.round(bytes / 1024)} KiB in ${basename(outdir)}`)
