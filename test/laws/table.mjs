/**
 * Writes `specs/laws.md`: each law, the clauses of `specs/` that state it, and the tests that prove it. With `--check` it
 * writes nothing and fails if a law has no clause or no test, if two clauses have the same number, or if the table is out of
 * date.
 *
 * A clause is a list item that starts with a bold number and names its laws. A test names its laws before the colon of its
 * title.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../..", import.meta.url))
const laws = JSON.parse(readFileSync(new URL("laws.json", import.meta.url), "utf8"))
const tableFile = join(root, "specs", "laws.md")

const walk = (folder) =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? walk(path) : [path]
  })

const lawPattern = /\b(?:EV|RP|TL|CR|IN|PR|CO|TU|TO|MS|EP|CM|FR|CW|NA|SC|FL|IX|AB|PK|DC)-\d+\b/g
const add = (map, law, value) => {
  if (laws[law] !== undefined) map.set(law, (map.get(law) ?? new Set()).add(value))
}

/** Law -> clauses. A clause with a law's number states that law. */
const clauses = new Map()
const numbers = new Set()
const repeated = []
for (const file of walk(join(root, "specs")).filter((path) => path.endsWith(".md") && path !== tableFile)) {
  const name = relative(join(root, "specs"), file)
  for (const item of readFileSync(file, "utf8").split(/\n(?=\s*[-*] \*\*|#)/)) {
    const clause = /^\s*[-*] \*\*([A-Z]{2}-[A-Z]?\d+)/.exec(item)?.[1]
    if (clause === undefined) continue
    if (numbers.has(clause)) repeated.push(`two clauses have the number ${clause} (${name})`)
    numbers.add(clause)
    for (const [law] of item.matchAll(lawPattern)) add(clauses, law, `${clause} (${name})`)
  }
}

/** Law -> test files. Titles are in `it(...)`, `it.effect(...)` and the like, on the call's line or the next. */
const tests = new Map()
const titlePattern = /\b(?:it|test)\b[\w.]*(?:\([^()"'`]*\))?\(\s*(["'`])([^"'`]*?):/g
const contracts = walk(join(root, "packages", "log", "src", "testing"))
for (const file of [...walk(join(root, "test")), ...contracts].filter((path) => path.endsWith(".ts"))) {
  for (const [, , lead] of readFileSync(file, "utf8").matchAll(titlePattern)) {
    for (const [law] of lead.matchAll(lawPattern)) add(tests, law, relative(join(root, "test"), file))
  }
}

const list = (set) => [...(set ?? [])].sort().join(", ")
const rows = Object.entries(laws).map(
  ([law, text]) => `| ${law} | ${text} | ${list(clauses.get(law))} | ${list(tests.get(law))} |`
)
const table = `# Laws

Made by \`npm run laws\`; do not edit. Each law with the clauses that state it and the tests, under \`test/\`, whose titles
name it.

| law | text | clauses | tests |
|---|---|---|---|
${rows.join("\n")}
`

if (!process.argv.includes("--check")) writeFileSync(tableFile, table)
else {
  const missing = Object.keys(laws).flatMap((law) => [
    ...(clauses.has(law) ? [] : [`${law} has no clause in specs/`]),
    ...(tests.has(law) ? [] : [`${law} has no test titled with it`])
  ])
  let stored = ""
  try {
    stored = readFileSync(tableFile, "utf8")
  } catch {
    // Reported below as out of date.
  }
  missing.push(...repeated)
  if (stored !== table) missing.push("specs/laws.md is out of date: run `npm run laws`")
  if (missing.length > 0) {
    console.error(missing.join("\n"))
    process.exitCode = 1
  }
}
