/**
 * Method: each package is packed as it would be published and unpacked into an empty folder outside of the repository,
 * where only the published entry points exist. Third-party packages are linked from the repository, so that this stays
 * quick; `test/long` installs everything from the registry.
 */
import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../..", import.meta.url))
const example = /```ts\n([\s\S]*?)```/.exec(readFileSync(join(root, "README.md"), "utf8"))?.[1] ?? ""

const run = (cwd: string, command: string, ...words: ReadonlyArray<string>) => {
  const env = { PATH: process.env["PATH"], HOME: cwd, npm_config_cache: process.env["npm_config_cache"] }
  const { status, stderr, stdout } = spawnSync(command, words, { cwd, env, encoding: "utf8" })
  assert.strictEqual(status, 0, `${command} ${words.join(" ")}: ${stdout}${stderr}`)
  return stdout
}

/** Links every third-party package of the repository, one by one, so that `@daybook` stays what was unpacked. */
const linkDependencies = (folder: string) => {
  const from = join(root, "node_modules")
  const names = readdirSync(from).flatMap((name) =>
    name.startsWith("@") ? readdirSync(join(from, name)).map((inner) => `${name}/${inner}`) : [name]
  )
  for (const name of names.filter((each) => !each.startsWith(".") && !each.startsWith("@daybook/"))) {
    const to = join(folder, "node_modules", name)
    mkdirSync(dirname(to), { recursive: true })
    symlinkSync(join(from, name), to)
  }
}

it(
  "the packed packages type-check under strict and nodenext, and run the README's example",
  { timeout: 120_000 },
  () => {
    const folder = mkdtempSync(join(tmpdir(), "daybook-pack-"))
    try {
      for (const name of ["core", "models", "cli"]) {
        run(root, "npm", "pack", "--silent", "--workspace", `packages/${name}`, "--pack-destination", folder)
        const to = join(folder, "node_modules", "@daybook", name)
        mkdirSync(to, { recursive: true })
        run(folder, "tar", "-xzf", join(folder, `daybook-${name}-0.1.0.tgz`), "-C", to, "--strip-components=1")
      }
      linkDependencies(folder)
      writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", private: true }))
      writeFileSync(join(folder, "example.ts"), example)
      const compilerOptions = {
        strict: true,
        module: "nodenext",
        target: "es2022",
        types: ["node"],
        exactOptionalPropertyTypes: true,
        skipLibCheck: false,
        preserveSymlinks: false
      }
      writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["example.ts"] }))
      run(folder, process.execPath, join(root, "node_modules", "typescript", "bin", "tsc"))
      assert.match(run(folder, process.execPath, "example.js"), /^on disk as event 1\n[\s\S]*activity\.settled\n$/)
      const daybook = join("node_modules", "@daybook", "cli", "bin", "daybook.js")
      assert.match(run(folder, process.execPath, daybook, "--version"), /^0\.1\.0\n$/)
      assert.match(run(folder, process.execPath, daybook, "prompt", "hello"), /offline|Daybook/)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
)
