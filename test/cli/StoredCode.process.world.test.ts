/** V8's compiled code beside the files of the bundle, as a process that starts finds it, and in a package without it. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { build } from "./support/Bundle.ts"

beforeAll(() => void build())

/** The folder of the bundle and its executables. */
const root = () => dirname(dirname(build().bin))

/** Loads bundles; prints how many files that loads, and those of them whose stored code V8 rejects. */
const program = `
const { loaded, load, setFlagsFromString } = require("./bin/load.js")
if (process.env.FLAG !== undefined) setFlagsFromString(process.env.FLAG)
if (process.env.NODE_OPTIONS !== undefined) require("./bin/young.js").bound()
for (const name of process.argv.slice(1)) load(process.cwd() + "/dist/bundle/" + name)
const rejected = [...loaded].flatMap(([file, { script }]) => (script.cachedDataRejected === false ? [] : [file]))
console.log(JSON.stringify({ rejected, loaded: loaded.size }))`

const loadUnder = (env: Record<string, string>, cwd: string, ...names: ReadonlyArray<string>) => {
  const { stderr, stdout } = spawnSync(process.execPath, ["-e", program, ...names], { cwd, env, encoding: "utf8" })
  assert.strictEqual(stderr, "")
  return JSON.parse(stdout)
}

/** The files of modules, which are loaded when a verb runs. */
const filesOf = (...modules: ReadonlyArray<string>) => {
  const files = readdirSync(join(root(), "dist", "bundle")).filter((name) => name.endsWith(".js"))
  const found = modules.map((module) => files.filter((name) => name.replace(/-\w+\.js$/, "") === module))
  for (const [index, names] of found.entries()) assert.lengthOf(names, 1, modules[index])
  return found.flat()
}

const loadIn = (cwd: string, ...names: ReadonlyArray<string>) => loadUnder({}, cwd, ...names)

it("CL-60: V8 accepts the stored code of every file that a command loads at its start", () => {
  const { loaded, rejected } = loadIn(root(), "reader.js", "ctx.js", "main.js", ...filesOf("prompt", "search", "shell"))
  assert.deepStrictEqual(rejected, [])
  assert.isAbove(loaded, 20)
})

it("CL-60: V8 accepts the stored code of every file that a server loads, under the server's flags", () => {
  const work = filesOf("serve", "HttpWork")
  const { loaded, rejected } = loadUnder({ FLAG: "--heap-growing-percent=50" }, root(), "main.js", ...work)
  assert.deepStrictEqual(rejected, [])
  assert.isAbove(loaded, 100)
})

it("CL-840: V8 accepts the stored code under the bound of the young generation", () => {
  const { loaded, rejected } = loadUnder({ NODE_OPTIONS: "--max-semi-space-size=16" }, root(), "main.js")
  assert.deepStrictEqual(rejected, [])
  assert.isAbove(loaded, 1)
})

describe("in a package as it is installed", () => {
  /** A copy without stored code. */
  const install = (): string => {
    const folder = mkdtempSync(join(root(), "installed-"))
    cpSync(join(root(), "bin"), join(folder, "bin"), { recursive: true })
    cpSync(join(root(), "dist"), join(folder, "dist"), { recursive: true, filter: (path) => !path.endsWith(".cache") })
    return folder
  }
  /** Runs a verb without a database, which loads one file and says so. */
  const run = (folder: string, env: Record<string, string> = {}) => {
    const command = [join(folder, "bin", "daybook.js"), "sessions"]
    const settings = { HOME: folder, DAYBOOK_DB: join(folder, "daybook.sqlite"), ...env }
    const { status, stderr } = spawnSync(process.execPath, command, { cwd: folder, env: settings, encoding: "utf8" })
    assert.strictEqual(status, 3)
    assert.match(stderr, /^daybook: there is no database at [^\n]+\n$/)
  }
  const stored = (folder: string) =>
    readdirSync(join(folder, "dist", "bundle")).filter((name) => name.endsWith(".cache"))

  it("CL-292: the first command stores the code of the file that it loads, and the second finds it", () => {
    const folder = install()
    run(folder)
    assert.deepStrictEqual(stored(folder), ["reader.js.cache"])
    assert.deepStrictEqual(loadIn(folder, "reader.js"), { rejected: [], loaded: 1 })
    const file = join(folder, "dist", "bundle", "reader.js.cache")
    const { ino } = statSync(file)
    run(folder)
    assert.strictEqual(statSync(file).ino, ino)
  })

  it("CL-292: V8 accepts the code of a file after another file of the bundle changed a flag", () => {
    const folder = install()
    run(folder)
    const changes = `require("node:v8").setFlagsFromString("--heap-growing-percent=50")`
    writeFileSync(join(folder, "dist", "bundle", "changes.js"), changes)
    const { rejected } = loadIn(folder, "changes.js", "reader.js")
    assert.deepStrictEqual(rejected, [join(folder, "dist", "bundle", "changes.js")])
  })

  it("CL-292: code that V8 rejects is replaced", () => {
    const folder = install()
    writeFileSync(join(folder, "dist", "bundle", "reader.js.cache"), "code of another version")
    run(folder)
    assert.deepStrictEqual(loadIn(folder, "reader.js"), { rejected: [], loaded: 1 })
  })

  it("CL-292: a command under options of Node stores nothing", () => {
    const folder = install()
    run(folder, { NODE_OPTIONS: "--max-semi-space-size=32" })
    assert.deepStrictEqual(stored(folder), [])
  })

  it("CL-292: a command whose code cannot be stored ends as every other, and leaves no file", () => {
    const folder = install()
    mkdirSync(join(folder, "dist", "bundle", "reader.js.cache"))
    run(folder)
    assert.deepStrictEqual(stored(folder), ["reader.js.cache"])
  })
})
