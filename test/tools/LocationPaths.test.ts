/** Absolute paths, as models give them for every tool that takes one: inside the Location, and outside of it. */
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { makeLocationFiles } from "../../packages/core/src/workspace/LocationFiles.ts"
import { patchOf } from "./PatchTree.ts"
import { makeWorkbench, type Options, sessionID, textOf } from "./Workbench.ts"

const makeDesk = Effect.fnUntraced(function* (options?: Options) {
  const bench = yield* makeWorkbench(options)
  mkdirSync(join(bench.folder, "src"))
  writeFileSync(join(bench.folder, "src/a.ts"), "one\ntwo\n")
  const said = (name: string, input: unknown) => Effect.map(bench.succeed(name, input), textOf)
  const file = () => readFileSync(join(bench.folder, "src/a.ts"), "utf8")
  return { ...bench, said, file }
})

describe("paths of the Location", () => {
  it.scoped("TO-19: an absolute path inside is the file, under every spelling of the Location", () =>
    Effect.gen(function* () {
      const { file, folder, outside, said, succeed } = yield* makeDesk()
      symlinkSync(folder, join(outside, "alias"))
      symlinkSync(join(folder, "src"), join(outside, "inner"))
      for (const root of [folder, join(outside, "alias"), `${folder}/./src/..`, `/${folder}/`]) {
        assert.strictEqual(yield* said("read", { path: `${root}/src/a.ts` }), "one\ntwo\n")
        assert.strictEqual(yield* said("read", { path: root }), "src/\n")
        assert.strictEqual(yield* said("glob", { pattern: "*.ts", path: `${root}/src` }), "src/a.ts")
        assert.strictEqual(yield* said("grep", { pattern: "two", path: `${root}/src/a.ts` }), "src/a.ts:2: two")
        yield* succeed("write", { path: `${root}/src/new/b.ts`, content: "b" })
        yield* succeed("edit", { path: `${root}/src/new/b.ts`, oldText: "b", newText: "c" })
        yield* succeed("apply_patch", {
          patch: patchOf(`*** Update File: ${root}/src/new/b.ts`, `*** Move to: ${root}/c.ts`, "-c", "+one")
        })
        assert.strictEqual(readFileSync(join(folder, "c.ts"), "utf8"), "one")
        yield* succeed("apply_patch", { patch: patchOf(`*** Delete File: ${root}/c.ts`) })
        yield* succeed("bash", { command: "rm -r new", workdir: `${root}/src` })
      }
      assert.strictEqual(yield* said("read", { path: join(outside, "inner", "a.ts") }), file())
      assert.strictEqual(yield* said("read", { path: "." }), "src/\n")
    })
  )

  it.scoped("TO-560: a composed name finds the file that has the decomposed one, and the other way round", () =>
    Effect.gen(function* () {
      const { folder, said, succeed } = yield* makeDesk()
      const name = "r\u00e9sum\u00e9.md"
      for (const [stored, typed] of [
        [name.normalize("NFD"), name],
        [`b${name}`, `b${name}`.normalize("NFD")]
      ] as const) {
        writeFileSync(join(folder, stored), "one\n")
        assert.strictEqual(yield* said("read", { path: typed }), "one\n")
        yield* succeed("edit", { path: typed, oldText: "one", newText: "two" })
        yield* succeed("write", { path: typed, content: "three\n" })
        assert.strictEqual(readFileSync(join(folder, stored), "utf8"), "three\n")
      }
      assert.lengthOf(readdirSync(folder), 3)
    })
  )

  const globs: ReadonlyArray<readonly [pattern: string, path: string | undefined]> = [
    ["<root>/**/*.ts", undefined],
    ["<root>/src/*.ts", undefined],
    ["<root>/src/a.ts", undefined],
    ["<root>/src/{a,b}.ts", "src"],
    ["<root>/src/*", "<root>/src"],
    ["<root>//src/*", "<root>"],
    ["<root>/src", "src"],
    ["<alias>/s*/*.ts", undefined],
    ["<alias>/src/*.ts", "<root>/src"]
  ]
  it.scoped.each(globs)("TO-19: the absolute glob %s in %s is one of the Location", ([pattern, path]) =>
    Effect.gen(function* () {
      const { folder, outside, said } = yield* makeDesk()
      symlinkSync(folder, join(outside, "alias"))
      const spelled = (text: string) => text.replace("<root>", folder).replace("<alias>", join(outside, "alias"))
      const at = path === undefined ? {} : { path: spelled(path) }
      assert.strictEqual(yield* said("glob", { pattern: spelled(pattern), ...at }), "src/a.ts")
      assert.strictEqual(yield* said("grep", { pattern: "two", include: spelled(pattern), ...at }), "src/a.ts:2: two")
    })
  )

  it.scoped("TO-19: an absolute glob in a Location whose name looks like one is found", () =>
    Effect.gen(function* () {
      const { folder, said } = yield* makeDesk()
      mkdirSync(join(folder, "[app] {x}*"))
      writeFileSync(join(folder, "[app] {x}*", "b.ts"), "")
      assert.strictEqual(yield* said("glob", { pattern: `${folder}/[[]app] *x*/*.ts` }), "[app] {x}*/b.ts")
      assert.strictEqual(
        yield* said("glob", { pattern: `${folder}/[app] {x}*/*.ts`, path: "[app] {x}*" }),
        "[app] {x}*/b.ts"
      )
    })
  )

  it.scoped("TO-19: a Location that is given through a link is known under both its spellings", () =>
    Effect.gen(function* () {
      const { folder, outside } = yield* makeDesk()
      const alias = join(outside, "alias")
      symlinkSync(folder, alias)
      const files = makeLocationFiles({ directory: alias, locate: () => Option.none(), references: new Map() })
      for (const root of [alias, folder]) {
        const { real, resource } = yield* files.resolve(sessionID, join(root, "src/a.ts"))
        assert.deepStrictEqual([real, resource], [join(folder, "src/a.ts"), "src/a.ts"])
        assert.strictEqual((yield* files.resolveWritable(join(root, "new/b.ts"))).resource, "new/b.ts")
        const within = yield* files.resolve(sessionID, "src")
        assert.strictEqual(yield* files.relativeGlob(within, join(root, "src/**/*.ts")), "**/*.ts")
      }
    })
  )

  it.scoped("TO-19: an absolute path or glob outside is refused alike, whether it is there or not", () =>
    Effect.gen(function* () {
      const { asked, fail, folder, outside } = yield* makeDesk({ rules: [] })
      writeFileSync(join(outside, "secret.ts"), "SECRET")
      symlinkSync(outside, join(folder, "link"))
      symlinkSync(join(folder, "src"), join(outside, "inner"))
      const paths = [
        join(outside, "secret.ts"),
        join(outside, "missing.ts"),
        join(folder, "..", "outside", "secret.ts"),
        `${folder}x/secret.ts`,
        "/",
        "/etc/passwd/x"
      ]
      for (const path of paths) {
        const failures = yield* Effect.forEach(
          [
            ["read", { path }],
            ["write", { path, content: "" }],
            ["edit", { path, oldText: "a", newText: "b" }],
            ["apply_patch", { patch: patchOf(`*** Add File: ${path}`, "+x") }],
            ["glob", { pattern: "*", path }],
            ["glob", { pattern: `${path}/*` }],
            ["grep", { pattern: "x", path }],
            ["grep", { pattern: "x", include: `${path}/*` }]
          ] as const,
          ([tool, input]) => fail(tool, input)
        )
        assert.deepStrictEqual(
          new Set(failures.map(({ type }) => type)),
          new Set(["path.outside"]),
          `${path}: ${failures.map(({ message }) => message).join("; ")}`
        )
      }
      assert.strictEqual((yield* fail("read", { path: join(folder, "link", "secret.ts") })).type, "path.outside")
      assert.strictEqual((yield* fail("glob", { pattern: join(folder, "*"), path: "src" })).type, "tool.input")
      assert.deepStrictEqual(asked, [])
    })
  )

  it.scopedLive("TO-12, TO-19: a command in an absolute folder outside needs external_directory as before", () =>
    Effect.gen(function* () {
      const { asked, fail, outside } = yield* makeDesk({ rules: [] })
      assert.strictEqual((yield* fail("bash", { cmd: "true", cwd: outside })).type, "permission.denied")
      assert.deepStrictEqual(
        asked.map(({ permission, resources }) => [permission, resources]),
        [["external_directory", [outside]]]
      )
    })
  )
})
