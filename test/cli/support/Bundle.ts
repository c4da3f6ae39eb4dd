/**
 * Provides the bundle of the command as it ships, once for all test files of a worker, in a separate folder beside the package's
 * dependencies: a copy of the built bundle, or a new bundle if an input changed since then. The folder is removed when the
 * worker ends.
 */
import { spawnSync } from "node:child_process"
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Script } from "node:vm"

const root = fileURLToPath(new URL("../../../", import.meta.url))
const cli = join(root, "packages", "cli")

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

const changedAt = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0

/** When a file or folder below it changed last; a deletion changes its folder. */
const lastChange = (folder: string): number =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).reduce(
    (latest, path) => Math.max(latest, changedAt(join(folder, path))),
    changedAt(folder)
  )

/** Whether the last build stored its code with this version of V8, which the first bytes of stored code name. */
const isOfThisNode = (cache: string): boolean => {
  const named = 8
  const own = new Script("0").createCachedData()
  return readFileSync(cache).subarray(0, named).equals(own.subarray(0, named))
}

/** Whether the last build is that of the current sources and of this Node. */
const isCurrent = (): boolean => {
  const packages = join(root, "packages")
  const sources = readdirSync(packages).map((name) => join(packages, name, "src"))
  const inputs = [...sources, join(cli, "scripts"), join(cli, "bin")].map(lastChange)
  const installed = changedAt(join(root, "package-lock.json"))
  const cache = join(cli, "dist", "bundle", "ctx.js.cache")
  return Math.max(installed, ...inputs) < changedAt(cache) && isOfThisNode(cache)
}

const bundleTo = (folder: string): void => {
  if (isCurrent()) {
    cpSync(join(cli, "bin"), join(folder, "bin"), { recursive: true })
    cpSync(join(cli, "dist", "bundle"), join(folder, "dist", "bundle"), { recursive: true })
    return
  }
  const { status, stderr } = spawnSync(process.execPath, [join(cli, "scripts", "bundle.mjs"), "--out", folder], {
    encoding: "utf8"
  })
  if (status !== 0) throw new Error(`the bundle could not be built: ${stderr}`)
}

const make = (): Bundle => {
  mkdirSync(join(cli, "dist"), { recursive: true })
  removeStale(join(cli, "dist"))
  const folder = mkdtempSync(join(cli, "dist", "test-"))
  // Some tests run it as another user.
  chmodSync(folder, 0o755)
  const remove = () => rmSync(folder, { recursive: true, force: true })
  process.once("exit", remove)
  bundleTo(folder)
  return { bin: join(folder, "bin", "daybook.js"), ctx: join(folder, "bin", "ctx.js") }
}

let built: Bundle | undefined

/** The bundle of the current sources. */
export const build = (): Bundle => (built ??= make())
