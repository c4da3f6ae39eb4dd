/** Reads which modules of the packages import which, type imports included. */
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { Either, Record, Schema } from "effect"
import { parseSync } from "oxc-parser"

export const packagesFolder = fileURLToPath(new URL("../../packages/", import.meta.url))

/** One import, with the line that states it. */
export interface Import {
  /** The importing module, relative to `packages/`. */
  readonly from: string
  readonly line: number
  readonly specifier: string
  /** The imported module, relative to `packages/`; undefined outside of Daybook. */
  readonly to: string | undefined
}

/** A source file. */
export interface Module {
  readonly path: string
  readonly text: string
  readonly imports: ReadonlyArray<Import>
}

const resolved = (from: string, specifier: string): string | undefined => {
  if (specifier.startsWith(".")) return relative(packagesFolder, resolve(packagesFolder, dirname(from), specifier))
  const [, name, path = "index"] = /^@daybook\/([\w-]+)(?:\/(.+))?$/.exec(specifier) ?? []
  return name === undefined ? undefined : `${name}/src/${path}.ts`
}

const importTypes = /\bimport\(\s*["']([^"']+)["']/g

/** Reads a module's imports: declarations, re-exports, and `import()` of values and types. */
export const readModule = (path: string, text: string): Module => {
  const { module } = parseSync(path, text)
  const found = new Map<number, string>()
  for (const { moduleRequest } of module.staticImports) found.set(moduleRequest.start, moduleRequest.value)
  for (const { moduleRequest } of module.staticExports.flatMap(({ entries }) => entries)) {
    if (moduleRequest) found.set(moduleRequest.start, moduleRequest.value)
  }
  for (const { 1: specifier = "", index } of text.matchAll(importTypes)) found.set(index, specifier)
  const imports = [...found].map(([start, specifier]) => ({
    from: path,
    line: text.slice(0, start).split("\n").length,
    specifier,
    to: resolved(path, specifier)
  }))
  return { path, text, imports }
}

/** Every file under `packages/NAME/src` with such a name. */
export const readSources = (name: RegExp) =>
  readdirSync(packagesFolder).flatMap((folder) =>
    readdirSync(join(packagesFolder, folder, "src"), { recursive: true, encoding: "utf8" })
      .filter((path) => name.test(path))
      .map((path) => `${folder}/src/${path}`)
      .map((path) => ({ path, text: readFileSync(join(packagesFolder, path), "utf8") }))
  )

/** Every module under `packages/NAME/src`. */
export const readModules = (): ReadonlyArray<Module> =>
  readSources(/\.tsx?$/).map(({ path, text }) => readModule(path, text))

const PackageFile = Schema.parseJson(
  Schema.Struct({
    exports: Schema.Record({ key: Schema.String, value: Schema.Struct({ "@daybook/source": Schema.String }) })
  })
)

/** The sources that each package exports, by the name of the package and of the module. */
export const readExports = (): Readonly<Record<string, Readonly<Record<string, string>>>> =>
  Object.fromEntries(
    readdirSync(packagesFolder).flatMap((name) => {
      const text = readFileSync(join(packagesFolder, name, "package.json"), "utf8")
      const found = Schema.decodeEither(PackageFile)(text)
      if (Either.isLeft(found)) return []
      return [[name, Record.map(found.right.exports, (each) => each["@daybook/source"])]]
    })
  )
