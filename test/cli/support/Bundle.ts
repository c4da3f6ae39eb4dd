/** The command as it ships, bundled once for a test file, in a folder of its own beside the package's dependencies. */
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const cli = fileURLToPath(new URL("../../../packages/cli/", import.meta.url))

export interface Bundle {
  /** The executable. */
  readonly bin: string
  readonly remove: () => void
}

/** Builds the bundle from today's sources. */
export const build = (): Bundle => {
  mkdirSync(join(cli, "dist"), { recursive: true })
  const folder = mkdtempSync(join(cli, "dist", "test-"))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  const { status, stderr } = spawnSync(process.execPath, [join(cli, "scripts", "bundle.mjs"), "--out", folder], {
    encoding: "utf8"
  })
  if (status !== 0) {
    remove()
    throw new Error(`the bundle could not be built: ${stderr}`)
  }
  return { bin: join(folder, "bin", "daybook.js"), remove }
}
