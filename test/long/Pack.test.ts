/**
 * Method: each package is packed as it would be published and unpacked into a folder outside of the repository, where
 * only the published entry points exist. Third-party packages are linked, so that this stays quick;
 * `test/long/Install.test.ts` installs everything from the registry.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import {
  copiesOfEffect,
  emptyFolder,
  example,
  link,
  manifest,
  pack,
  packages,
  root,
  run,
  typeCheck,
  unpack,
  withServer
} from "../packages/support/Packages.ts"
import { checkFiles, checkImports, checkManifest, checkTexts } from "../packages/support/Tarball.ts"

/** Packages that an application may leave out (PA-4). */
const optional = ["@effect/opentelemetry", "gpt-tokenizer", "sharp"]

const folder = emptyFolder("daybook-pack-")
let tarballs: ReadonlyArray<string> = []
/** An application with the newest supported versions. */
let newest = ""
/** The files of each package before anything ran: a command stores its compiled code beside its bundle (CL-292). */
let unpacked: ReadonlyMap<string, ReadonlyArray<string>> = new Map()

const packageFolder = (name: string) => join(newest, "node_modules", "@daybook", name)

const filesIn = (from: string): ReadonlyArray<string> =>
  readdirSync(from, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(from, join(entry.parentPath, entry.name)))
    .sort()

beforeAll(async () => {
  tarballs = await pack(folder)
  newest = await application("newest", join(root, "node_modules"))
  unpacked = new Map(packages.map((name) => [name, filesIn(packageFolder(name))]))
}, 600_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** An application with the packed packages and a line of effect. */
const application = async (name: string, line: string, without: ReadonlyArray<string> = []): Promise<string> => {
  const app = join(folder, name)
  mkdirSync(app)
  writeFileSync(join(app, "package.json"), JSON.stringify({ type: "module", private: true }))
  await unpack(folder, tarballs, app)
  link(app, line, without)
  return app
}

describe("the packed packages", () => {
  it(
    "PA-2: the packed packages type-check under strict and nodenext, and run the README's example",
    { timeout: 120_000 },
    async () => {
      assert.isBelow(example.trimEnd().split("\n").length, 25)
      await typeCheck(newest)
      assert.match(
        await run(newest, process.execPath, "example.js"),
        /^on disk as event 1\n1 session\.next\.prompt\.admitted\n[\s\S]*\n\d+ session\.next\.activity\.settled\n$/
      )
      assert.isTrue(existsSync(join(newest, "daybook.sqlite")))
      const daybook = join("node_modules", "@daybook", "cli", "bin", "daybook.js")
      assert.strictEqual(await run(newest, process.execPath, daybook, "--version"), "0.1.0\n")
      assert.match(await run(newest, process.execPath, daybook, "prompt", "hello"), /offline model/)
    }
  )

  it("FI-117: the packed exporter finds the program of its thread", { timeout: 120_000 }, async () => {
    writeFileSync(
      join(newest, "thread.mjs"),
      `import { Exporter, ExporterThread } from "@daybook/files"
      import * as Store from "@daybook/log/Store"
      import { Effect, Layer } from "effect"
      const filename = "store.db"
      const files = Layer.provide(ExporterThread.layer({ filename, root: "ctx" }), Store.layer({ filename }))
      const caught = Effect.flatMap(Exporter, ({ catchUp }) => catchUp)
      console.log(JSON.stringify(await Effect.runPromise(Effect.provide(caught, files))))`
    )
    assert.strictEqual(await run(newest, process.execPath, "thread.mjs"), '{"position":0,"sessions":0}\n')
  })

  it("HT-68: the packed conformance suite holds for the packed server", async () => {
    const suite = join("node_modules", "@daybook", "conformance", "bin", "conformance.js")
    const said = await withServer(newest, (url, token) => run(newest, process.execPath, suite, url, token))
    const [, holding, all] = /\n(\d+) of (\d+) hold\n$/.exec(said) ?? []
    assert.strictEqual(holding, all)
    assert.isAbove(Number(all), 8)
  })

  it(
    "PA-1: beside the oldest supported effect they do the same, with one copy of it and without optional packages",
    { timeout: 120_000 },
    async () => {
      const line = join(root, "compat", "effect-3.21", "node_modules")
      const app = await application("oldest", line, optional)
      const copies = await copiesOfEffect(app)
      assert.deepStrictEqual(copies, [join(line, "effect", "package.json")])
      assert.match(manifest(dirname(copies[0] ?? "")).version, /^3\.21\./)
      await typeCheck(app)
      assert.match(await run(app, process.execPath, "example.js"), /^on disk as event 1\n[\s\S]*activity\.settled\n$/)
      writeFileSync(
        join(app, "resolved.mjs"),
        `import { ModelResolver } from "@daybook/core"
        import { Models } from "@daybook/models"
        import { Effect, Redacted } from "effect"
        const providers = { acme: { api: "openai", baseUrl: "http://localhost:1", apiKey: Redacted.make("key"), models: { m1: {} } } }
        const resolved = Effect.flatMap(Models.make({ providers }), ({ resolve }) => resolve({ providerID: "acme", id: "m1" }))
        console.log((await Effect.runPromise(resolved)).countTokens)`
      )
      assert.strictEqual(await run(app, process.execPath, "resolved.mjs"), "undefined\n")
    }
  )
})

describe.each(packages)("the tarball of %s", (name) => {
  const here = () => packageFolder(name)
  const files = () => unpacked.get(name) ?? []
  const isModule = (file: string) => name !== "cli" && /^dist\/(?!bundle\/).*\.(?:js|d\.ts)$/.test(file)

  it("PA-5: it has the licence, a README without links, and declarations with maps to its sources", () => {
    checkTexts(name, here())
    checkFiles(name, here(), files())
  })

  it("PA-6: its modules import only its dependencies and peers", () => checkImports(here(), files().filter(isModule)))

  it("PA-7: its manifest says what it is, and leaves effect and the driver to the application", () =>
    checkManifest(name, here()))
})
