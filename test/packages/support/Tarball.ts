/** What the contents of a package must be, in its folder here and in its tarball. Spec: PA-5 to PA-7. */
import { assert } from "@effect/vitest"
import { existsSync, readFileSync } from "node:fs"
import { builtinModules } from "node:module"
import { dirname, join } from "node:path"
import { manifest, root } from "./Packages.ts"

/** Packages that are bundled, with types of their own or none; the others are libraries. */
export const bundles: ReadonlyArray<string> = ["cli", "promise"]

const isLibrary = (name: string): boolean => !bundles.includes(name)

/** It has the licence, and a README without links. */
export const checkTexts = (name: string, folder: string): void => {
  const read = (file: string) => readFileSync(join(folder, file), "utf8")
  assert.strictEqual(read("LICENSE"), readFileSync(join(root, "LICENSE"), "utf8"))
  assert.match(read("README.md"), new RegExp(`^# @daybook/${name}\n`))
  assert.notMatch(read("README.md"), /\]\(|<https?:/)
}

/** Its files are none but those for its users, and each declaration has a map to its source. */
export const checkFiles = (name: string, folder: string, files: ReadonlyArray<string>): void => {
  assert.deepStrictEqual(
    files.filter((file) => /\.tsbuildinfo$|\.cache$|\.test\.|(?:^|\/)\.(?!\/)/.test(file)),
    []
  )
  if (!isLibrary(name)) return
  const modules = files.filter((file) => /^dist\/(?!bundle\/).*\.js$/.test(file))
  assert.isAbove(modules.length, 1)
  for (const module of modules) {
    for (const map of [`${module}.map`, module.replace(/\.js$/, ".d.ts.map")]) {
      const { sources } = JSON.parse(readFileSync(join(folder, map), "utf8")) as {
        readonly sources: ReadonlyArray<string>
      }
      for (const source of sources) assert.isTrue(existsSync(join(folder, dirname(map), source)), `${map}: ${source}`)
    }
  }
}

/** These modules, of a library, import only its dependencies and peers. */
export const checkImports = (folder: string, modules: ReadonlyArray<string>): void => {
  const { dependencies = {}, name: own, optionalDependencies = {}, peerDependencies = {} } = manifest(folder)
  const known = new Set([
    ...builtinModules,
    own,
    ...Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })
  ])
  const imports = /(?:^(?:import|export|\}) [^"\n]*?from |^import |\bimport\()"((?:@[^/"]+\/)?[^./"][^/"]*)[^"]*"/gm
  for (const file of modules) {
    const code = readFileSync(join(folder, file), "utf8").replaceAll(/\/\*[\s\S]*?\*\//g, "")
    for (const [, imported = ""] of code.matchAll(imports)) {
      assert.isTrue(imported.startsWith("node:") || known.has(imported), `${file} imports ${imported}`)
    }
  }
}

/** Packages that depend on SQLite's driver: the log opens it, and the command's bundle leaves it outside. */
const withDriver: ReadonlyArray<string> = ["cli", "log"]

/** Checks that the manifest describes the package, that `effect` is a peer, and that the log brings the driver. */
export const checkManifest = (name: string, folder: string): void => {
  const { dependencies = {}, ...fields } = manifest(folder)
  for (const field of ["description", "homepage", "engines", "keywords"]) assert.isDefined(fields[field], field)
  assert.strictEqual(fields["license"], "MIT")
  assert.deepStrictEqual(fields["publishConfig"], { access: "public" })
  assert.deepStrictEqual(fields["engines"], { node: ">=22" })
  assert.deepStrictEqual(
    Object.keys(dependencies).filter((each) => /^(?:effect|@effect\/.*|gpt-tokenizer)$/.test(each)),
    []
  )
  const { peerDependencies = {} } = fields
  assert.notProperty(peerDependencies, "@effect/sql-sqlite-node")
  assert.strictEqual("better-sqlite3" in dependencies, withDriver.includes(name))
  if ("better-sqlite3" in dependencies) assert.match(dependencies["better-sqlite3"] ?? "", /^\^?13\./)
}
