/**
 * Bundles the page into dist/bundle: its script, its style, and the licences of what it contains. The server sends these files
 * as they are. Spec: IP-1 in specs/http.md.
 */
import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { notices } from "../../../scripts/notices.mjs"
import { bundled } from "./page.mjs"

const folder = join(fileURLToPath(new URL("..", import.meta.url)), "dist", "bundle")
const { inputs, script, style } = await bundled()
await mkdir(folder, { recursive: true })
await Promise.all([
  writeFile(join(folder, "page.js"), script),
  writeFile(join(folder, "page.css"), style),
  writeFile(join(folder, "THIRD-PARTY-NOTICES.txt"), await notices(inputs))
])
console.log(
  `inspector: ${Math.round(script.length / 1024)} KiB of script, ${Math.round(style.length / 1024)} KiB of style`
)
