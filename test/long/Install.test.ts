/**
 * Method: the packages are packed and installed with npm into an empty folder outside of the repository, from the
 * registry and with their native parts built, as somebody else would. Then the README's example is checked and run.
 */
import { assert, it } from "@effect/vitest"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { example, pack, run, typeCheck } from "../packages/support/Packages.ts"

it(
  "the packed packages install in an empty folder, type-check, and run the README's example",
  { timeout: 900_000 },
  () => {
    const folder = mkdtempSync(join(tmpdir(), "daybook-install-"))
    try {
      writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", private: true }))
      const tarballs = pack(folder)
      const tools = ["@types/node@20", "@effect/platform-node@0.108.2", "effect@3.22.4"]
      run(folder, "npm", "install", "--no-audit", "--no-fund", ...tarballs.map((file) => `./${file}`), ...tools)
      typeCheck(folder)
      assert.match(run(folder, process.execPath, "example.js"), /^on disk as event 1\n[\s\S]*activity\.settled\n$/)
      assert.match(run(folder, "npx", "daybook", "prompt", "hello"), /offline/)
      assert.isAbove(example.length, 0)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
)
