/**
 * Removes compiled modules whose source is gone, which `tsc -b` leaves in `dist`. Runs in `build` and before a pack. Leaves the
 * bundles of the command, and of tests that may run meanwhile.
 */
import { existsSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const packages = fileURLToPath(new URL("../packages", import.meta.url))
for (const name of readdirSync(packages)) {
  const [src, dist] = [join(packages, name, "src"), join(packages, name, "dist")]
  if (!existsSync(src) || !existsSync(dist)) continue
  for (const file of readdirSync(dist, { recursive: true })) {
    const source = /^(?!bundle\b|test-)(.*?)(?:\.d)?\.[jt]s(?:\.map)?$/.exec(file)?.[1]
    if (source !== undefined && !existsSync(join(src, `${source}.ts`))) rmSync(join(dist, file))
  }
}
