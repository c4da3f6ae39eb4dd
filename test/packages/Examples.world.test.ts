/** Compiles the code of the documentation against the packages, and runs `examples/` offline. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { compile, packages, root, run } from "./support/Packages.ts"

const folder = mkdtempSync(join(tmpdir(), "daybook-examples-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The TypeScript blocks of a README. */
const readme = (file: string) =>
  [...readFileSync(join(root, file), "utf8").matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, text = ""]) => text)

/** The blocks of `@example` in a module's comments. */
const documented = (file: string) =>
  [...readFileSync(file, "utf8").matchAll(/^ \* @example\n \* ```ts\n([\s\S]*?)^ \* ```/gm)].map(([, text = ""]) =>
    text.replaceAll(/^ \* ?/gm, "")
  )

const sources = packages.flatMap((name) => {
  const src = join(root, "packages", name, "src")
  return readdirSync(src, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => join(src, file))
})
const blocks = [
  ...readme("README.md"),
  ...readme("GUIDE.md"),
  ...packages.flatMap((name) => readme(`packages/${name}/README.md`)),
  ...sources.flatMap(documented)
]
const examples = readdirSync(join(root, "examples")).filter((file) => file.endsWith(".ts"))

describe("the documentation", () => {
  beforeAll(async () => {
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
    mkdirSync(join(folder, "blocks"))
    for (const file of examples) copyFileSync(join(root, "examples", file), join(folder, file))
    blocks.forEach((text, index) => writeFileSync(join(folder, "blocks", `${index}.ts`), text))
    const compilerOptions = {
      strict: true,
      exactOptionalPropertyTypes: true,
      module: "nodenext",
      target: "es2022",
      types: ["node"],
      skipLibCheck: true
    }
    writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", private: true }))
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts", "blocks/*.ts"] }))
    await compile(folder)
  })

  it("PA-8: the TypeScript blocks of READMEs and comments, and the examples, compile", () => {
    assert.isAbove(blocks.length, 15)
    assert.deepStrictEqual(examples, ["embed.ts", "own-model.ts", "own-tool.ts", "replay.ts", "telemetry.ts"])
  })

  const example = (name: string) => run(folder, process.execPath, `${name}.js`)

  it("PA-9: embed prints the events of a prompt, and replay the same events from their log", async () => {
    assert.match(await example("embed"), /^1 session\.next\.prompt\.admitted\n[\s\S]*activity\.settled\n$/)
    assert.match(await example("replay"), /session\.next\.prompt\.admitted\n[\s\S]*activity\.settled\n/)
    // The cursor is in the database, so the next run begins there.
    assert.strictEqual(await example("replay"), "")
  })

  it("PA-9: own-model answers with its own sentence", async () => {
    assert.strictEqual(await example("own-model"), "I am a model of your own.\n")
  })

  it("PA-9: own-tool prints what its handler returned", async () => {
    assert.strictEqual(await example("own-tool"), '{"count":6}\n')
  })

  it("PA-9: telemetry collects the span of the prompt", async () => {
    assert.strictEqual(await example("telemetry"), "Sessions.prompt: true\n")
  })
})
