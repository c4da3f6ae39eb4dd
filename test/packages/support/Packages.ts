/** Packs Daybook's packages and uses them from outside the repository. */
import { spawn } from "node:child_process"
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { homedir, tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"

export const root = fileURLToPath(new URL("../../..", import.meta.url))

/** The README's embedding example, as printed: its first `ts` block. */
export const example = /```ts\n([\s\S]*?)```/.exec(readFileSync(join(root, "README.md"), "utf8"))?.[1] ?? ""

/** The folders of the published packages. */
export const packages: ReadonlyArray<string> = readdirSync(join(root, "packages"))
  .filter((name) => existsSync(join(root, "packages", name, "package.json")))
  .sort()

/** What the tests read of a `package.json`. */
export interface Manifest {
  readonly [field: string]: unknown
  readonly name: string
  readonly version: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

/** Reads the `package.json` of a folder. */
export const manifest = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest

/** Runs a command to its end and returns its output; it must succeed. */
export const run = async (cwd: string, command: string, ...words: ReadonlyArray<string>): Promise<string> => {
  // Without keys and database of the person who runs the tests.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/_API_KEY$|_BASE_URL$|^DAYBOOK_|^XDG_/.test(name))
  )
  const child = spawn(command, words, { cwd, env: { ...env, DAYBOOK_DB: join(cwd, "data.sqlite") } })
  child.stdin.end()
  const texts = { stdout: "", stderr: "" }
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      texts[name] += text
    })
  }
  const status = await new Promise((resolve, reject) => child.once("close", resolve).once("error", reject))
  assert.strictEqual(status, 0, `${command} ${words.join(" ")}: ${texts.stdout}${texts.stderr}`)
  return texts.stdout
}

/** Uses a server that the packed command runs in the folder, with its address and token. */
export const withServer = async <A>(folder: string, use: (url: string, token: string) => Promise<A>): Promise<A> => {
  const words = [
    join("node_modules", "@daybook", "cli", "bin", "daybook.js"),
    "serve",
    "--json",
    "--http",
    "127.0.0.1:0"
  ]
  const env = { ...process.env, DAYBOOK_DB: join(folder, "served.sqlite"), DAYBOOK_ROOT: join(folder, "served") }
  const child = spawn(process.execPath, words, { cwd: folder, env, stdio: ["ignore", "pipe", "inherit"] })
  const ended = new Promise((resolve) => child.once("close", resolve))
  try {
    const lines = createInterface({ input: child.stdout })
    const line = await Promise.race([new Promise<string>((resolve) => lines.once("line", resolve)), ended])
    assert(typeof line === "string", "the server ended")
    const { http } = JSON.parse(line) as { readonly http: { readonly url: string; readonly inspector: string } }
    const token = new URLSearchParams(new URL(http.inspector).hash.slice(1)).get("token")
    assert(token !== null)
    return await use(http.url, token)
  } finally {
    child.kill("SIGTERM")
    await ended
  }
}

const withParents = (folder: string): ReadonlyArray<string> =>
  folder === dirname(folder) ? [folder] : [folder, ...withParents(dirname(folder))]

/** A new folder without `node_modules` in any of its parents, where a missing dependency would be found. */
export const emptyFolder = (prefix: string): string => {
  const parent = [tmpdir(), "/var/tmp", homedir()].find((each) =>
    withParents(each).every((folder) => !existsSync(join(folder, "node_modules")))
  )
  assert(parent !== undefined, "every temporary folder is below a node_modules")
  return mkdtempSync(join(parent, prefix))
}

/** Packs every package, or the given ones, into the folder and returns the file names, in the order of the names. */
export const pack = async (folder: string, which = packages): Promise<ReadonlyArray<string>> => {
  const workspaces = which.map((name) => `--workspace=packages/${name}`)
  const names = await run(root, "npm", "pack", "--silent", "--pack-destination", folder, ...workspaces)
  return names.trim().split("\n")
}

/** Unpacks the tarballs of a folder, of every package or the given ones, into the `node_modules` of another. */
export const unpack = async (
  from: string,
  tarballs: ReadonlyArray<string>,
  folder: string,
  which = packages
): Promise<void> => {
  for (const [index, tarball] of tarballs.entries()) {
    const to = join(folder, "node_modules", "@daybook", which[index] ?? "")
    mkdirSync(to, { recursive: true })
    await run(folder, "tar", "-xzf", join(from, tarball), "-C", to, "--strip-components=1")
  }
}

const namesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder)
    .flatMap((name) => (name.startsWith("@") ? readdirSync(join(folder, name)).map((own) => `${name}/${own}`) : [name]))
    .filter((name) => !name.startsWith("."))

const isEffect = (name: string): boolean => name === "effect" || name.startsWith("@effect/")

/** Types that no package of Daybook depends on; an application has those of Node. */
const isOthersTypes = (name: string): boolean =>
  name.startsWith("@types/") &&
  name !== "@types/node" &&
  !packages.some((own) => name in (manifest(join(root, "packages", own)).dependencies ?? {}))

/**
 * Links third-party packages into a folder, one by one: `effect` and `@effect/*` from the `node_modules` of a line of
 * versions, the others from the repository. `without` names packages that the application leaves out.
 */
export const link = (folder: string, line: string, without: ReadonlyArray<string> = []): void => {
  const own = join(root, "node_modules")
  const all = [
    ...namesIn(own).flatMap((name) => (isEffect(name) || name.startsWith("@daybook/") ? [] : [[own, name] as const])),
    ...namesIn(line).flatMap((name) => (isEffect(name) ? [[line, name] as const] : []))
  ]
  for (const [from, name] of all) {
    if (without.includes(name) || isOthersTypes(name)) continue
    const to = join(folder, "node_modules", name)
    mkdirSync(dirname(to), { recursive: true })
    symlinkSync(join(from, name), to)
  }
}

/** The files that define `effect` for each package in the folder's `node_modules` that uses it. */
export const copiesOfEffect = async (folder: string): Promise<ReadonlyArray<string>> => {
  const users = ["@daybook", "@effect"].flatMap((scope) =>
    readdirSync(join(folder, "node_modules", scope)).map((name) => `${scope}/${name}`)
  )
  writeFileSync(
    join(folder, "copies.mjs"),
    `import { realpathSync } from "node:fs"
    import { createRequire } from "node:module"
    const users = ${JSON.stringify(users)}.map((name) => realpathSync(\`node_modules/\${name}/package.json\`))
    console.log(JSON.stringify([...new Set(users.map((file) => createRequire(file).resolve("effect/package.json")))]))`
  )
  return JSON.parse(await run(folder, process.execPath, "copies.mjs")) as ReadonlyArray<string>
}

const compilerOptions = {
  strict: true,
  exactOptionalPropertyTypes: true,
  module: "nodenext",
  target: "es2022",
  declaration: true,
  types: ["node"]
}

/** Compiles the project in the folder. More checkers than one would each check the libraries' types that they share. */
export const compile = (folder: string): Promise<string> =>
  run(folder, process.execPath, join(root, "node_modules", "typescript", "bin", "tsc"), "--checkers", "1")

/** Compiles the example and the surface in the folder, under `strict` and `nodenext`, the libraries' types included. */
export const typeCheck = async (folder: string): Promise<void> => {
  writeFileSync(join(folder, "example.ts"), example)
  copyFileSync(join(root, "test", "packages", "support", "surface.ts"), join(folder, "surface.ts"))
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["example.ts", "surface.ts"] }))
  await compile(folder)
}
