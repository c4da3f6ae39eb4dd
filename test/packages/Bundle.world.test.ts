/**
 * Method: the packages that an embedding program needs are packed and unpacked outside of the repository, without optional
 * peers. The command that bundles is the one that the guide about installing prints.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { cpSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { emptyFolder, example, link, pack, root, run, typeCheck, unpack } from "./support/Packages.ts"

/** Packages that an application may leave out (PA-4). */
const optional = ["@effect/opentelemetry", "gpt-tokenizer", "sharp"]
const embedding = ["core", "embedded", "files", "log", "mcp", "models", "server", "shell", "tools", "transcript"]

const command = /^npx (esbuild [^\n]+)$/m.exec(readFileSync(join(root, "docs/guides/install.md"), "utf8"))?.[1] ?? ""

const folder = emptyFolder("daybook-bundle-")
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe("a program outside of the repository, without optional peers", () => {
  /** A folder with SQLite's driver and nothing else. */
  const alone = join(folder, "alone")

  beforeAll(async () => {
    writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", private: true }))
    await unpack(folder, await pack(folder, embedding), folder, embedding)
    link(folder, join(root, "node_modules"), optional)
    mkdirSync(join(alone, "node_modules"), { recursive: true })
    const driver = realpathSync(join(root, "node_modules", "better-sqlite3"))
    cpSync(driver, join(alone, "node_modules", "better-sqlite3"), { recursive: true, dereference: true })
  })

  /** Runs a program as one file, in the folder that has the driver only. */
  const bundled = async (text: string): Promise<string> => {
    writeFileSync(join(folder, "program.ts"), text)
    await run(folder, "bash", "-c", `${join(root, "node_modules", ".bin")}/${command}`)
    cpSync(join(folder, "program.js"), join(alone, "program.mjs"))
    return run(alone, process.execPath, "program.mjs")
  }

  it("PA-2: the packages type-check with the libraries' types, of which only those of Node are installed beside them", () =>
    typeCheck(folder))

  it("PA-4: the README's example runs as one file", async () => {
    assert.match(await bundled(example), /^on disk as event 1\n[\s\S]*activity\.settled\n$/)
  })

  it("PA-4: one file with a model whose tokenizer is absent resolves the model, and estimates", async () => {
    const printed = await bundled(`import { ModelResolver } from "@daybook/core"
    import { Models } from "@daybook/models"
    import { Effect, Redacted } from "effect"
    const key = { apiKey: Redacted.make("key") }
    const providers = { acme: { api: "openai", baseUrl: "http://localhost:1", ...key, models: { "gpt-5": {} } } }
    const resolved = Effect.flatMap(Models.make({ providers }), ({ resolve }) =>
      resolve({ providerID: "acme", id: "gpt-5" }))
    console.log((await Effect.runPromise(resolved)).countTokens)`)
    assert.strictEqual(printed, "undefined\n")
  })
})
