/**
 * Writes `specs/laws.md`: each law, the clauses of `specs/` that state it, the tests that prove it, and the suites that run them.
 * With `--check` it writes nothing and fails if a law has no clause, or no test that a suite runs, if two clauses have the same
 * number, or if the table is out of date.
 *
 * A clause is a list item that starts with a bold number and names its laws. A test names its laws before the colon of its
 * title. A suite runs its test files, and the contracts that these import.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
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

const texts = new Map(
  walk(join(root, "test"))
    .filter((path) => path.endsWith(".ts"))
    .map((path) => [path, readFileSync(path, "utf8")])
)

/** The suite that runs a test file. Specs: PA-22. */
const suiteOf = (path) =>
  path.startsWith(join(root, "test", "long")) ? "long" : path.endsWith(".world.test.ts") ? "world" : "test"

/** File -> suites that run it, or import it at any distance. */
const suites = new Map()
const reach = (path, suite) => {
  const reached = suites.get(path) ?? new Set()
  if (!texts.has(path) || reached.has(suite)) return
  suites.set(path, reached.add(suite))
  for (const [, name] of texts.get(path).matchAll(/(?:from|import) "(\.[^"]+)"/g))
    reach(join(dirname(path), name), suite)
}
for (const path of texts.keys()) if (path.endsWith(".test.ts")) reach(path, suiteOf(path))

/** Law -> test files, and law -> suites. Titles are in `it(...)`, `it.effect(...)` and the like, on the call's line or the next. */
const tests = new Map()
const provenIn = new Map()
const titlePattern = /\b(?:it|test)\b[\w.]*(?:\([^()"'`]*\))?\(\s*(["'`])([^"'`]*?):/g
for (const [file, text] of texts) {
  for (const [, , lead] of text.matchAll(titlePattern)) {
    for (const [law] of lead.matchAll(lawPattern)) {
      add(tests, law, relative(join(root, "test"), file))
      for (const suite of suites.get(file) ?? []) add(provenIn, law, suite)
    }
  }
}

const list = (set) => [...(set ?? [])].sort().join(", ")
const rows = Object.entries(laws).map(
  ([law, text]) =>
    `| ${law} | ${text} | ${list(clauses.get(law))} | ${list(provenIn.get(law))} | ${list(tests.get(law))} |`
)
const table = `# Laws

Made by \`npm run laws\`; do not edit. Each law with the clauses that state it, the suites that prove it (\`test\`: \`npm test\`,
\`world\`: \`npm run test:world\`, \`long\`: \`npm run test:long\`), and the files under \`test/\` with tests whose titles name it.

| law | text | clauses | suites | tests |
|---|---|---|---|---|
${rows.join("\n")}
`

if (!process.argv.includes("--check")) writeFileSync(tableFile, table)
else {
  const missing = Object.keys(laws).flatMap((law) => [
    ...(clauses.has(law) ? [] : [`${law} has no clause in specs/`]),
    ...(provenIn.has(law) ? [] : [`${law} has no test titled with it that a suite runs`])
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
