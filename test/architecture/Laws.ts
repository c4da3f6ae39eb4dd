/**
 * States the order of packages and folders, and finds what breaks it. A package imports only the packages named with it;
 * a folder imports itself and the folders before it. Spec: AR-1..AR-4 in specs/architecture.md.
 */
import { join } from "node:path"
import type { Module } from "./ImportGraph.ts"

/** The packages that each package may import. */
export const packages: Readonly<Record<string, ReadonlyArray<string>>> = {
  log: [],
  postgres: ["log"],
  core: ["log"],
  cluster: ["log", "core"],
  tools: ["log", "core"],
  mcp: ["log", "core"],
  shell: ["log", "core", "tools"],
  embedded: ["log", "core", "tools", "mcp"],
  models: ["log", "core"],
  transcript: ["log"],
  files: ["log", "core", "transcript"],
  formats: ["log", "transcript"],
  api: ["log", "core"],
  server: ["log", "core", "transcript", "files", "api"],
  client: ["log", "core", "api"],
  inspector: ["log", "core", "shell", "api"],
  conformance: [],
  discord: ["log", "core", "api", "client"],
  cli: [
    "log",
    "postgres",
    "core",
    "cluster",
    "tools",
    "mcp",
    "shell",
    "embedded",
    "models",
    "transcript",
    "files",
    "formats",
    "api",
    "server",
    "client",
    "inspector",
    "discord"
  ]
}

/** The folders of a package, lower first. Modules outside of a folder stand at ".", without it above all folders. */
export const folders: Readonly<Record<string, ReadonlyArray<string>>> = {
  log: [
    "support",
    "storage",
    "domain",
    "events",
    "projection",
    "log",
    "store",
    "coordination",
    "consumer",
    "search",
    "retention",
    "maintenance"
  ],
  core: [
    "support",
    "domain",
    "http",
    "glob",
    "trust",
    "definition",
    "model",
    "agent",
    "context",
    "permission",
    "child",
    "workspace",
    "picture",
    "snapshot",
    "tool",
    "prompt",
    "request",
    "compaction",
    "coordination",
    "runner",
    "session"
  ],
  shell: ["domain", "output", "policy", "transport", "session", "checkpoint", "record", ".", "mcp", "host", "agent"],
  transcript: ["row", "fold"],
  files: ["layout", "disk", "context", "render", "record", "session", "export", "verify"],
  formats: [
    "conversation",
    "lines",
    "storage",
    "blob",
    "entry",
    "discovery",
    "manager",
    "reading",
    "claude",
    "codex",
    "thread",
    "document",
    "export",
    "import"
  ],
  api: ["wire", "group", ".", "document"],
  inspector: ["page"],
  discord: ["domain", "post", "outbox", "wire", "live", "inbox", "command"],
  server: ["shared", "socket", "http"],
  cli: ["support", "render", "ctx", "config", "terminal", "arguments", "watch", "host", "commands", "screen"]
}

/** Where SQL may stand. */
export const sqlPlaces: ReadonlyArray<RegExp> = [
  /^log\/src\/(?:log|storage|projection|store|coordination|consumer|search|retention|maintenance)\//,
  /^core\/src\/permission\/SqlPermissionStore\.ts$/,
  // The exporter's own database, beside the files it describes.
  /^files\/src\/record\/Ledger(?:File|Rows)?\.ts$/,
  // The log on another database.
  /^postgres\/src\//,
  // Cursors in an application's own database.
  /^client\/src\/SqlStorage\.ts$/,
  // The Discord bot's own database.
  /^discord\/src\/outbox\//
]

/** The npm packages of `@daybook/log`. */
export const logDependencies: ReadonlyArray<string> = [
  "@effect/experimental",
  "@effect/platform",
  "@effect/sql",
  "better-sqlite3",
  "effect",
  "ulid"
]

const packageOf = (path: string): string => path.split("/")[0] ?? ""

const folderOf = (path: string): string | undefined => {
  const [, , folder, ...rest] = path.split("/")
  return rest.length === 0 ? undefined : folder
}

/** The imports of modules that break the order of packages and folders, as `file:line imports module`. */
export const backArrows = (modules: ReadonlyArray<Module>): ReadonlyArray<string> =>
  modules.flatMap(({ imports, path }) =>
    imports.flatMap(({ line, specifier, to }) => {
      if (to === undefined) return []
      const [own, other] = [packageOf(path), packageOf(to)]
      const fault = () => [`packages/${path}:${line} imports ${specifier}`]
      if (own !== other) return packages[own]?.includes(other) === true ? [] : fault()
      const order = folders[own]
      if (order === undefined) return []
      const rank = (file: string) => {
        const folder = folderOf(file)
        const place = order.indexOf(folder ?? ".")
        return folder === undefined && place < 0 ? order.length : place
      }
      return rank(path) >= 0 && rank(to) >= 0 && rank(to) <= rank(path) ? [] : fault()
    })
  )

/** Circles of modules, each as the list of its modules. */
export const circles = (modules: ReadonlyArray<Module>): ReadonlyArray<ReadonlyArray<string>> => {
  const graph = new Map(modules.map(({ imports, path }) => [path, imports.flatMap(({ to }) => (to ? [to] : []))]))
  const found: Array<ReadonlyArray<string>> = []
  const done = new Set<string>()
  const visit = (path: string, trail: ReadonlyArray<string>): void => {
    const at = trail.indexOf(path)
    if (at >= 0) found.push([...trail.slice(at), path])
    if (at >= 0 || done.has(path)) return
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path])
    done.add(path)
  }
  for (const path of graph.keys()) visit(path, [])
  return found
}

/** A tagged template whose text begins a statement of SQL, or whose tag is a client. */
const sql = /\b\w*[sS]ql(?:<[^`]*?>)?`|`\s*(?:SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM|CREATE TABLE|PRAGMA)\s/g

const withoutComments = (text: string): string =>
  text.replaceAll(/\/\*[\s\S]*?\*\//g, (comment) => comment.replaceAll(/[^\n]/g, " "))

/** Statements of SQL outside of their places, as `file:line`. */
export const strayStatements = (modules: ReadonlyArray<Module>): ReadonlyArray<string> =>
  modules
    .filter(({ path }) => !sqlPlaces.some((place) => place.test(path)))
    .flatMap(({ path, text }) => {
      const code = withoutComments(text)
      return [...code.matchAll(sql)].map(({ index }) => `packages/${path}:${code.slice(0, index).split("\n").length}`)
    })

/** Modules that know the database: SQL's clients, the database's file, event rows, and what makes commit hooks. */
const ofDatabase = /^@effect\/sql|^log\/src\/(?:storage\/Database|log\/(?:EventRow|SqlHook))\.ts$/

/** Modules that assemble layers: they open the database, and name its clients in types. */
const assemblers = /^(?:core\/src\/Runtime|embedded\/src\/Daybook)\.ts$/

/** Imports of the database from outside the places of SQL, as `file:line imports module`. */
export const strayClients = (modules: ReadonlyArray<Module>): ReadonlyArray<string> =>
  modules
    .filter(({ path }) => packageOf(path) !== "log" && !assemblers.test(path))
    .filter(({ path }) => !sqlPlaces.some((place) => place.test(path)))
    .flatMap(({ imports, path }) =>
      imports.flatMap(({ line, specifier, to }) =>
        ofDatabase.test(to ?? specifier) ? [`packages/${path}:${line} imports ${specifier}`] : []
      )
    )

/** Imports of `@daybook/log` from npm packages that are not listed, as `file:line imports module`. */
export const strayDependencies = (modules: ReadonlyArray<Module>): ReadonlyArray<string> =>
  modules
    .filter(({ path }) => packageOf(path) === "log")
    .flatMap(({ imports, path }) =>
      imports.flatMap(({ line, specifier, to }) => {
        if (to !== undefined || specifier.startsWith("node:")) return []
        const name = specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/")
        return logDependencies.includes(name) ? [] : [`packages/${path}:${line} imports ${specifier}`]
      })
    )

/** What each package exports, as its `package.json` says: the sources by their names. */
export type Exports = Readonly<Record<string, Readonly<Record<string, string>>>>

/** Exports by a pattern or of a missing module, and imports from other packages of what is not exported. */
export const unpromised = (modules: ReadonlyArray<Module>, exported: Exports): ReadonlyArray<string> => {
  const known = new Set(modules.map(({ path }) => path))
  const promised = new Set(
    Object.entries(exported).flatMap(([name, sources]) => Object.values(sources).map((path) => join(name, path)))
  )
  const faults = [...promised].filter((path) => !known.has(path)).map((path) => `${path} is exported and missing`)
  const strays = modules.flatMap(({ imports, path }) =>
    imports.flatMap(({ line, specifier, to }) =>
      to === undefined || packageOf(to) === packageOf(path) || promised.has(to)
        ? []
        : [`packages/${path}:${line} imports ${specifier}`]
    )
  )
  return [...faults, ...strays]
}

/** Imports of the root of an `@effect/*` package, which loads all its modules. */
export const barrels = (modules: ReadonlyArray<Module>): ReadonlyArray<string> =>
  modules.flatMap(({ imports, path }) =>
    imports.flatMap(({ line, specifier }) =>
      /^@effect\/[\w-]+$/.test(specifier) ? [`packages/${path}:${line} imports ${specifier}`] : []
    )
  )
