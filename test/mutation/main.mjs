/**
 * `npm run mutate`: draws random sites of the source, mutates one at a time in a copy of the last commit, and runs the tests
 * that reach it. A surviving mutant means a missing test, or is equivalent to the original: a person decides. Mutants that do
 * not compile are not counted. Exits with 1 if fewer than 85 % are killed.
 *
 *   npm run mutate -- [--sample 100] [--seed N] [--only packages/files] [--tests test/files] [--json report.json]
 *   npm run mutate -- --again report.json    # the survivors of that report only
 */
import { readFileSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { copyOf } from "./copy.mjs"
import { failsWith, measure, typesFail } from "./runs.mjs"
import { keysOf, mutated, sitesOf } from "./sites.mjs"

const root = fileURLToPath(new URL("../..", import.meta.url))
const { values } = parseArgs({
  options: {
    sample: { type: "string", default: "100" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
    only: { type: "string", default: "packages" },
    tests: { type: "string", default: "test" },
    json: { type: "string" },
    again: { type: "string" }
  }
})

/** A pseudo-random order that depends only on the seed (mulberry32, then Fisher-Yates). */
const shuffled = (items, seed) => {
  let state = seed
  const random = () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  const result = [...items]
  for (let n = result.length - 1; n > 0; n--) {
    const other = Math.floor(random() * (n + 1))
    ;[result[n], result[other]] = [result[other], result[n]]
  }
  return result
}

const sourcesOf = (folder) =>
  readdirSync(join(folder, "packages"), { recursive: true, encoding: "utf8" })
    .map((file) => join("packages", file))
    .filter((file) => /^packages\/\w+\/src\/.*\.ts$/.test(file) && file.startsWith(values.only))

const lineOf = (text, at) => text.slice(0, at).split("\n").length

const shown = (text) => text.replaceAll(/\s+/g, " ").slice(0, 70)

const copy = copyOf(root)
const read = (file) => readFileSync(join(copy, file), "utf8")
const wanted = Number(values.sample)
const all = sourcesOf(copy).flatMap((file) => {
  const text = read(file)
  const sites = sitesOf(file, text)
  const keys = keysOf(sites, text)
  return sites.map((site, index) => ({ ...site, key: keys[index] }))
})

/** The survivors of an earlier report, or a sample; sites that do not compile are replaced by others. */
const draw = () => {
  if (values.again === undefined) return shuffled(all, Number(values.seed)).slice(0, wanted * 2)
  const { outcomes } = JSON.parse(readFileSync(values.again, "utf8"))
  const survivors = new Set(outcomes.filter(({ outcome }) => outcome === "survived").map(({ key }) => key))
  return all.filter(({ key }) => survivors.has(key))
}

const drawn = draw().map((site, number) => ({ ...site, number }))
console.log(
  values.again === undefined
    ? `seed ${values.seed}: ${wanted} of ${all.length} sites; the tests run once to see which reach them`
    : `${drawn.length} sites; the tests run once to see which reach them`
)

const reached = await measure(copy, drawn, values.tests)
const outcomes = []
const count = (outcome) => outcomes.filter((one) => one.outcome === outcome).length

for (const site of drawn) {
  if (count("killed") + count("survived") === wanted) break
  const text = read(site.file)
  writeFileSync(join(copy, site.file), mutated(text, site))
  const tests = reached.testsOf(site)
  const outcome = typesFail(copy, site.file)
    ? "invalid"
    : (await failsWith(copy, tests, reached))
      ? "killed"
      : "survived"
  writeFileSync(join(copy, site.file), text)
  const { end, file, key, kind, replacement, start } = site
  const place = `${file}:${lineOf(text, start)}`
  outcomes.push({
    outcome,
    place,
    key,
    kind,
    before: text.slice(start, end),
    after: replacement,
    tests: tests.length
  })
  const change = `${shown(text.slice(start, end))}  ->  ${shown(replacement)}`
  console.log(`${String(outcomes.length).padStart(3)} ${outcome.padEnd(8)} ${place} [${kind}] ${change}`)
}

const [killed, survived] = [count("killed"), count("survived")]
const share = killed / Math.max(1, killed + survived)
console.log(
  `\n${killed} killed, ${survived} survived, ${count("invalid")} did not compile: ${(share * 100).toFixed(0)} %`
)
if (values.json !== undefined) writeFileSync(values.json, JSON.stringify({ seed: values.seed, outcomes }, undefined, 2))
process.exit(share < 0.85 ? 1 : 0)
