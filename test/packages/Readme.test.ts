import { assert, it } from "@effect/vitest"
import { build } from "esbuild"
import { spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** The example as printed: the first `ts` block of the README. */
const example = /```ts\n([\s\S]*?)```/.exec(readFileSync(join(root, "README.md"), "utf8"))?.[1] ?? ""

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
      external: ["better-sqlite3"],
      banner: {
        js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);"
      }
    })
    const env = { PATH: process.env["PATH"], HOME: folder }
    const { status, stderr, stdout } = spawnSync(process.execPath, ["example.mjs"], {
      cwd: folder,
      env,
      encoding: "utf8"
    })
    assert.strictEqual(stderr, "")
    assert.strictEqual(status, 0)
    const lines = stdout.trimEnd().split("\n")
    assert.strictEqual(lines[0], "on disk as event 1")
    assert.strictEqual(lines[1], "1 session.next.prompt.admitted")
    assert.match(lines.at(-1) ?? "", /^\d+ session\.next\.activity\.settled$/)
    assert.isTrue(existsSync(join(folder, "daybook.sqlite")))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
