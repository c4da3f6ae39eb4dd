import { assert, it } from "@effect/vitest"
import { build } from "esbuild"
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { example, root, run } from "./support/Packages.ts"

it("the README's embedding example runs as printed, in under 25 lines", async () => {
  assert.isBelow(example.trimEnd().split("\n").length, 25)
  const folder = mkdtempSync(join(tmpdir(), "daybook-readme-"))
  try {
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
    writeFileSync(join(folder, "example.ts"), example)
    await build({
      entryPoints: [join(folder, "example.ts")],
      outfile: join(folder, "example.mjs"),
      bundle: true,
      platform: "node",
      format: "esm",
      conditions: ["@daybook/source"],
      preserveSymlinks: true,
      external: ["better-sqlite3", "sharp"],
      banner: {
        js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);"
      }
    })
    const lines = run(folder, process.execPath, "example.mjs").trimEnd().split("\n")
    assert.strictEqual(lines[0], "on disk as event 1")
    assert.strictEqual(lines[1], "1 session.next.prompt.admitted")
    assert.match(lines.at(-1) ?? "", /^\d+ session\.next\.activity\.settled$/)
    assert.isTrue(existsSync(join(folder, "daybook.sqlite")))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
