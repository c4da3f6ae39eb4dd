/**
 * Bundles the client's promises with all that they need into one module, and writes types that need no other package. The first
 * argument is the folder; by default dist/bundle. Spec: PA-500 in specs/packages.md.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"
import { openApi } from "@daybook/api/document/Document"
import { notices } from "../../../scripts/notices.mjs"
import { documented, wireTypes } from "./types.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))
const folder = process.argv[2] ?? join(root, "dist", "bundle")
const { metafile, outputFiles } = await build({
  entryPoints: [join(root, "..", "client", "src", "promise.ts")],
  bundle: true,
  minify: true,
  write: false,
  metafile: true,
  format: "esm",
  platform: "browser",
  target: "es2022",
  conditions: ["@daybook/source"],
  // Licences are in a file of their own.
  legalComments: "none"
})
const [{ contents }] = outputFiles
const document = openApi()
await mkdir(folder, { recursive: true })
await Promise.all([
  writeFile(join(folder, "index.js"), contents),
  writeFile(join(folder, "wire.d.ts"), wireTypes(document)),
  writeFile(join(folder, "index.d.ts"), documented(document, await readFile(join(root, "src", "index.d.ts"), "utf8"))),
  writeFile(join(folder, "THIRD-PARTY-NOTICES.txt"), await notices(Object.keys(metafile.inputs)))
])
console.log(`promise: ${Math.round(contents.length / 1024)} KiB of script`)
