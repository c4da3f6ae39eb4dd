/** Compares the glossary with the modules that it names. Spec: AR-9 in specs/architecture.md. */
import { parseSync } from "oxc-parser"
import type { Module } from "./ImportGraph.ts"

const row = /^\| ([^|]+) \| [^|]+ \| `([^`]+)` `(\w+)(?:\.(\w+))?` \|$/

const isExported = ({ path, text }: Module, name: string): boolean =>
  parseSync(path, text).module.staticExports.some(({ entries }) =>
    entries.some(({ exportName }) => exportName.name === name)
  )

/** A field or method: of the export itself, or shared by it and declared in the same module. */
const isDeclared = ({ text }: Module, field: string): boolean =>
  new RegExp(String.raw`^\s+(?:readonly )?${field}\??:`, "m").test(text)

/** Entries whose module, export or field does not exist, words that are explained twice, and lines that are no entry. */
export const glossaryFaults = (glossary: string, modules: ReadonlyArray<Module>): ReadonlyArray<string> => {
  const seen = new Set<string>()
  return glossary.split("\n").flatMap((line) => {
    if (!line.startsWith("| ") || line.startsWith("| word ")) return []
    const [, word, path, name, field] = row.exec(line) ?? []
    if (word === undefined || path === undefined || name === undefined) return [`not an entry: ${line}`]
    if (seen.has(word.toLowerCase())) return [`${word} is explained twice`]
    seen.add(word.toLowerCase())
    const module = modules.find((each) => each.path === path)
    if (module === undefined) return [`${word}: there is no module ${path}`]
    if (!isExported(module, name)) return [`${word}: ${path} does not export ${name}`]
    return field === undefined || isDeclared(module, field)
      ? []
      : [`${word}: ${path} does not declare ${name}.${field}`]
  })
}
