/**
 * Method: each package is packed as it would be published and unpacked into an empty folder outside of the repository,
 * where only the published entry points exist. Third-party packages are linked from the repository, so that this stays
 * quick; `test/long/Install.test.ts` installs everything from the registry.
 */
import { assert, it } from "@effect/vitest"
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { pack, packages, root, run, typeCheck } from "./support/Packages.ts"

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
      for (const [index, tarball] of pack(folder).entries()) {
        const to = join(folder, "node_modules", "@daybook", packages[index] ?? "")
        mkdirSync(to, { recursive: true })
        run(folder, "tar", "-xzf", tarball, "-C", to, "--strip-components=1")
      }
      linkDependencies(folder)
      writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", private: true }))
      typeCheck(folder)
      assert.match(run(folder, process.execPath, "example.js"), /^on disk as event 1\n[\s\S]*activity\.settled\n$/)
      const daybook = join("node_modules", "@daybook", "cli", "bin", "daybook.js")
      assert.strictEqual(run(folder, process.execPath, daybook, "--version"), "0.1.0\n")
      assert.match(run(folder, process.execPath, daybook, "prompt", "hello"), /offline model/)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
)
