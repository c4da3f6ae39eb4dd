/** Packs Daybook's packages and uses them from outside the repository. */
import { spawnSync } from "node:child_process"
import { copyFileSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"

export const root = fileURLToPath(new URL("../../..", import.meta.url))

/** The README's embedding example, as printed: its first `ts` block. */
export const example = /```ts\n([\s\S]*?)```/.exec(readFileSync(join(root, "README.md"), "utf8"))?.[1] ?? ""

export const packages = [
  "log",
  "core",
  "tools",
  "mcp",
  "embedded",
  "models",
  "transcript",
  "files",
  "server",
  "cli"
] as const

/** Runs a command to its end and returns its output; it must succeed. */
export const run = (cwd: string, command: string, ...words: ReadonlyArray<string>): string => {
  // Without keys and database of the person who runs the tests.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/_API_KEY$|_BASE_URL$|^DAYBOOK_|^XDG_/.test(name))
  )
  const { status, stderr, stdout } = spawnSync(command, words, {
    cwd,
    env: { ...env, DAYBOOK_DB: join(cwd, "data.sqlite") },
    encoding: "utf8"
  })
  assert.strictEqual(status, 0, `${command} ${words.join(" ")}: ${stdout}${stderr}`)
  return stdout
}

/** Packs every package into the folder and returns the file names. */
export const pack = (folder: string): ReadonlyArray<string> =>
  packages.map((name) =>
    run(root, "npm", "pack", "--silent", "--workspace", `packages/${name}`, "--pack-destination", folder).trim()
  )

/** Compiles the example and the surface in the folder, under `strict` and `nodenext`, the libraries' types included. */
export const typeCheck = (folder: string): void => {
  const compilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    module: "nodenext",
    target: "es2022",
    declaration: true,
    types: ["node"]
  }
  writeFileSync(join(folder, "example.ts"), example)
  copyFileSync(join(root, "test", "packages", "support", "surface.ts"), join(folder, "surface.ts"))
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["example.ts", "surface.ts"] }))
  run(folder, process.execPath, join(root, "node_modules", "typescript", "bin", "tsc"))
}
