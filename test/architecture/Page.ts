/** Compares the page about the architecture with the modules and the laws. Spec: AR-9 in specs/architecture.md. */
import { dirname, join, normalize } from "node:path"
import { Record } from "effect"

const spans = /`([^`]+)`/g

const isFile = (name: string) => /\.tsx?$/.test(name)

/** The folders of the modules, relative to `packages/`, and the folders above them. */
const foldersOf = (paths: ReadonlySet<string>): ReadonlySet<string> => {
  const folders = new Set<string>()
  for (const path of paths) for (let at = dirname(path); at !== "."; at = dirname(at)) folders.add(at)
  return folders
}

/**
 * The names of modules and folders on the page that do not exist, as `line: name`. A name in a table is relative to the
 * package in the table's head, or to the last package that the table names; a bare name may also be beside the name
 * before it in the row. Elsewhere a name is the end of a path.
 */
export const missingNames = (page: string, paths: ReadonlySet<string>): ReadonlyArray<string> => {
  const folders = foldersOf(paths)
  const exists = (path: string) => paths.has(path) || folders.has(path)
  const missing: Array<string> = []
  let root = ""
  page.split("\n").forEach((line, index) => {
    const isRow = line.startsWith("|")
    if (!isRow) root = ""
    let folder = root
    const find = (name: string): string | undefined => {
      if (name.startsWith("packages/")) return [name.slice("packages/".length).replace(/\/$/, "")].find(exists)
      if (!isRow) return [...paths].find((path) => path.endsWith(`/${name}`))
      return [join(folder, name), join(root, name)].map((path) => path.replace(/\/$/, "")).find(exists)
    }
    for (const [, name = ""] of line.matchAll(spans)) {
      const rooted = /^packages\/([\w-]+\/src)$/.exec(name)?.[1] ?? (isRow ? `${name}/src` : "")
      if (folders.has(rooted)) root = folder = rooted
      else if (isFile(name) || name.startsWith("packages/") || (isRow && /^[a-z]+\/$/.test(name))) {
        const path = find(normalize(name))
        if (path === undefined) missing.push(`${index + 1}: ${name}`)
        else if (isFile(path)) folder = dirname(path)
      }
    }
  })
  return missing
}

const meanings: ReadonlyMap<string, string> = new Map([["the modules outside of folders", "."]])

/** The words in one cell of each row of a table about packages, by the package's short name. */
const cells = (page: string, head: string, cell: number): Readonly<Record<string, ReadonlyArray<string>>> => {
  const table = page.split(`${head}\n`)[1]?.split("\n\n")[0] ?? ""
  const rows = table.split("\n").slice(1)
  return Object.fromEntries(
    rows.map((row) => {
      const parts = row.split("|").map((part) => part.trim())
      const words = parts[cell] === "nothing of ours" ? [] : (parts[cell] ?? "").split(", ")
      const name = parts[1]?.replace(/^`@daybook\/|`$/g, "") ?? ""
      return [name, words.map((word) => meanings.get(word) ?? word)]
    })
  )
}

/** The orders that the page states: which packages a package imports, and the folders of a package, lower first. */
export const statedOrders = (page: string) => {
  const imports = cells(page, "| package | holds | imports |", 3)
  const all = Object.keys(imports)
  const importsOf = (words: ReadonlyArray<string>, own: string) => {
    const [, excluded] = /^all but (.+)$/.exec(words.join()) ?? []
    if (excluded === undefined) return words
    return all.filter((name) => name !== own && !excluded.split(" and ").includes(name))
  }
  return { packages: Record.map(imports, importsOf), folders: cells(page, "| package | folders, lower first |", 2) }
}
