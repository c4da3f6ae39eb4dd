/** Runs the copy's compiler and tests: once with reports from every drawn site, then for each mutant. */
import { spawn, spawnSync } from "node:child_process"
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import { instrumented, sitesOf } from "./sites.mjs"

const vitest = (copy, args, { env = {}, limit }) =>
  new Promise((resolve) => {
    const child = spawn("npx", ["vitest", "run", "--config", "test/mutation/vitest.config.ts", ...args], {
      cwd: copy,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true
    })
    let output = ""
    const keep = (part) => (output = (output + part).slice(-4_000))
    child.stdout.setEncoding("utf8").on("data", keep)
    child.stderr.setEncoding("utf8").on("data", keep)
    // A mutant may loop for ever: kill its whole process group.
    const timer = setTimeout(() => process.kill(-child.pid, "SIGKILL"), limit)
    child.once("close", (code) => {
      clearTimeout(timer)
      resolve({ passed: code === 0, output })
    })
  })

/** Whether the compiler rejects the file's package. */
export const typesFail = (copy, file) =>
  spawnSync("npx", ["tsc", "-p", file.split("/").slice(0, 2).join("/"), "--noEmit"], { cwd: copy }).status !== 0

const byFile = (sites) => Map.groupBy?.(sites, ({ file }) => file) ?? grouped(sites)

const grouped = (sites) => {
  const files = new Map()
  for (const site of sites) files.set(site.file, [...(files.get(site.file) ?? []), site])
  return files
}

/** The file's sites by name: a drawn site has its number, all others share the file's name. */
const namedSites = (file, text, drawn) => {
  const numbers = new Map(drawn.map(({ end, kind, number, start }) => [`${start} ${end} ${kind}`, number]))
  return sitesOf(file, text).map((site) => ({
    ...site,
    name: numbers.get(`${site.start} ${site.end} ${site.kind}`) ?? file
  }))
}

/**
 * Runs the folder's tests with reporting sites. Tests that fail without a mutant are left out. A site that runs at module load
 * runs once for many test files: tests that call functions of its file count as reaching it.
 */
export const measure = async (copy, sites, folder) => {
  const [report, hits] = [join(copy, "measure.json"), join(copy, "hits.txt")]
  const originals = new Map()
  for (const [file, numbered] of byFile(sites)) {
    const text = readFileSync(join(copy, file), "utf8")
    originals.set(file, text)
    writeFileSync(join(copy, file), instrumented(text, namedSites(file, text, numbered)))
  }
  // Some tests run processes of another user.
  writeFileSync(hits, "")
  chmodSync(hits, 0o666)
  const args = [folder, "--reporter=json", `--outputFile=${report}`]
  const { output } = await vitest(copy, args, { env: { DAYBOOK_HITS: hits }, limit: 30 * 60_000 })
  for (const [file, text] of originals) writeFileSync(join(copy, file), text)
  if (!existsSync(report)) throw new Error(`the tests did not run:\n${output}`)
  const durations = new Map()
  for (const { endTime, name, startTime, status } of JSON.parse(readFileSync(report, "utf8")).testResults) {
    const file = relative(copy, name)
    if (status === "passed") durations.set(file, endTime - startTime)
    else console.log(`skipped, because it fails without a mutant: ${file}`)
  }
  const reaching = new Map()
  for (const line of readFileSync(hits, "utf8").split("\n").filter(Boolean)) {
    const [name, ...rest] = line.split(" ")
    reaching.set(name, (reaching.get(name) ?? new Set()).add(relative(copy, rest.join(" "))))
  }
  const quickFirst = (files) =>
    [...files].filter((file) => durations.has(file)).toSorted((a, b) => durations.get(a) - durations.get(b))
  const testsOf = ({ called, file, number }) => {
    const own = reaching.get(String(number)) ?? new Set()
    if (called && own.size > 0) return quickFirst(own)
    const near = new Set([...own, ...(reaching.get(file) ?? [])])
    return quickFirst(near.size > 0 ? near : durations.keys())
  }
  return { durationOf: (file) => durations.get(file) ?? 0, testsOf }
}

/** As many tests as take a minute together, the quick ones first: a site that all tests reach would take an hour. */
const budgetMillis = 60_000

const affordable = (tests, durationOf) => {
  let left = budgetMillis
  return tests.filter((file) => (left -= durationOf(file)) > 0)
}

/** Whether one of the tests fails; quick tests run first. A run that takes far longer than without a mutant fails. */
export const failsWith = async (copy, tests, { durationOf }) => {
  const files = affordable(tests, durationOf)
  for (const group of [files.slice(0, 15), files.slice(15)]) {
    if (group.length === 0) continue
    const expected = group.reduce((sum, file) => sum + durationOf(file), 0)
    const { passed } = await vitest(copy, ["--bail=1", ...group], { limit: 90_000 + 4 * expected })
    if (!passed) return true
  }
  return false
}
