/**
 * Bundles the command as it ships, once for all test files of a worker, in a separate folder beside the package's dependencies.
 * The folder is removed when the worker ends.
 */
import { spawnSync } from "node:child_process"
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const cli = fileURLToPath(new URL("../../../packages/cli/", import.meta.url))

export interface Bundle {
  /** The executables. */
  readonly bin: string
  readonly ctx: string
}

/** Removes folders older than an hour, which workers killed by a signal have left. */
const removeStale = (dist: string): void => {
  for (const name of readdirSync(dist).filter((name) => name.startsWith("test-"))) {
    const folder = join(dist, name)
    const made = statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY
    if (made < Date.now() - 3_600_000) rmSync(folder, { recursive: true, force: true })
  }
}

const make = (): Bundle => {
  mkdirSync(join(cli, "dist"), { recursive: true })
  removeStale(join(cli, "dist"))
  const folder = mkdtempSync(join(cli, "dist", "test-"))
  // Some tests run it as another user.
  chmodSync(folder, 0o755)
  const remove = () => rmSync(folder, { recursive: true, force: true })
  process.once("exit", remove)
  const { status, stderr } = spawnSync(process.execPath, [join(cli, "scripts", "bundle.mjs"), "--out", folder], {
    encoding: "utf8"
  })
  if (status !== 0) throw new Error(`the bundle could not be built: ${stderr}`)
  return { bin: join(folder, "bin", "daybook.js"), ctx: join(folder, "bin", "ctx.js") }
}

let built: Bundle | undefined

/** The bundle of the current sources. */
export const build = (): Bundle => (built ??= make())
