/** Packs what an embedding program installs, and uses it outside of the repository without the packages that it may leave out. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "esbuild"
import { emptyFolder, link, pack, root, run, typeCheck, unpack } from "./support/Packages.ts"

const needed = ["core", "embedded", "log", "mcp", "models", "shell", "tools", "transcript"]
/** Packages that an application may leave out (PA-4). The types of the driver are not the application's either. */
const absent = ["@effect/opentelemetry", "@opentelemetry", "gpt-tokenizer", "sharp"]

const folder = emptyFolder("daybook-consumer-")
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe("an embedding program outside of the repository", () => {
  beforeAll(async () => {
    writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", private: true }))
    await unpack(folder, await pack(folder, needed), folder)
    link(folder, join(root, "node_modules"), absent)
  }, 120_000)

  it("PA-4: a bundle in one file answers where only the driver is installed, without optional peers", async () => {
    const entry = join(folder, "program.ts")
    const readme = /```ts\n([\s\S]*?)```/.exec(readFileSync(join(root, "README.md"), "utf8"))?.[1] ?? ""
    writeFileSync(entry, readme)
    const alone = join(folder, "alone")
    mkdirSync(join(alone, "node_modules"), { recursive: true })
    const banner = 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url)'
    const { warnings } = await build({
      absWorkingDir: folder,
      entryPoints: [entry],
      outfile: join(alone, "program.mjs"),
      bundle: true,
      platform: "node",
      format: "esm",
      banner: { js: banner },
      external: ["better-sqlite3", "sharp"],
      logLevel: "silent"
    })
    for (const { text } of warnings) assert.notMatch(text, /^(?!.*gpt-tokenizer).*could not be resolved/i)
    cpSync(join(root, "node_modules", "better-sqlite3"), join(alone, "node_modules", "better-sqlite3"), {
      recursive: true
    })
    assert.match(
      await run(alone, process.execPath, "program.mjs"),
      /^on disk as event 1\n[\s\S]*session\.next\.text\.ended\n[\s\S]*activity\.settled\n$/
    )
  })
})
