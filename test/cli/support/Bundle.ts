/**
 * Provides the bundle of the command as it ships, once for all test files of a worker, in a separate folder beside the package's
 * dependencies: a copy of the built bundle, or of a new one if an input changed since then. A new bundle is kept an hour for other workers
 * and later runs, until an input changes. The worker's folder is removed when the worker ends.
 */
import { spawnSync } from "node:child_process"
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync
} from "node:fs"
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

/** Removes folders older than an hour: kept bundles, and those of workers that a signal ended. */
const removeStale = (dist: string): void => {
  for (const name of readdirSync(dist).filter((name) => /^(?:test|kept)-/.test(name))) {
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

/** When an input of the bundle changed last. */
const inputsChangedAt = (): number => {
  const packages = join(root, "packages")
  const sources = readdirSync(packages).map((name) => join(packages, name, "src"))
  const inputs = [...sources, join(cli, "scripts"), join(cli, "bin")].map(lastChange)
  return Math.max(changedAt(join(root, "package-lock.json")), ...inputs)
}

/** A bundle that is kept is named after the time when its build started, and its process: two may start at once. */
const kept = (dist: string): ReadonlyArray<{ readonly folder: string; readonly at: number }> =>
  readdirSync(dist).flatMap((name) => {
    const at = /^kept-(\d+)-\d+$/.exec(name)?.[1]
    return at === undefined ? [] : [{ folder: join(dist, name), at: Number(at) }]
  })

/** The folder with a bundle of the current sources and of this Node: the last build, or a bundle that is kept. */
const current = (dist: string): string | undefined => {
  const changed = inputsChangedAt()
  const cache = (folder: string) => join(folder, "dist", "bundle", "ctx.js.cache")
  return [{ folder: cli, at: changedAt(cache(cli)) }, ...kept(dist)].find(
    ({ at, folder }) => changed < at && isOfThisNode(cache(folder))
  )?.folder
}

const bundleTo = (folder: string): void => {
  const dist = join(cli, "dist")
  const copy = (from: string, to: string) => {
    cpSync(join(from, "bin"), join(to, "bin"), { recursive: true })
    cpSync(join(from, "dist", "bundle"), join(to, "dist", "bundle"), { recursive: true })
  }
  const made = current(dist)
  if (made !== undefined) return copy(made, folder)
  const startedAt = Date.now()
  const { status, stderr } = spawnSync(process.execPath, [join(cli, "scripts", "bundle.mjs"), "--out", folder], {
    encoding: "utf8"
  })
  if (status !== 0) throw new Error(`the bundle could not be built: ${stderr}`)
  // A bundle gets its name when it is complete.
  const keep = mkdtempSync(join(dist, "test-"))
  copy(folder, keep)
  renameSync(keep, join(dist, `kept-${startedAt}-${process.pid}`))
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
