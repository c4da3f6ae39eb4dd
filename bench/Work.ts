/**
 * The calls of coding sessions: files are read, searched, edited and read again, and tests run after each change. Texts are
 * those of this project; a session stays with a few files for some turns, and returns to earlier ones. The mix and the
 * repetition are those of sessions that were made from the project's history (bench/README.md).
 */
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"

/** Numbers in [0, 1) that depend on the seed alone (mulberry32). */
const randomFrom = (seed: number) => {
  let state = seed
  return (): number => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Choices that depend on a seed alone. */
export const choosing = (seed: number) => {
  const random = randomFrom(seed)
  const between = (low: number, high: number) => low + Math.floor(random() * (high - low + 1))
  const one = <A>(from: ReadonlyArray<A>): A => {
    const found = from[Math.floor(random() * from.length)]
    if (found === undefined) throw new Error("nothing to choose from")
    return found
  }
  return { random, between, one }
}
type Choosing = ReturnType<typeof choosing>

interface File {
  readonly path: string
  readonly lines: ReadonlyArray<string>
}

export interface Corpus {
  readonly sentences: ReadonlyArray<string>
  /** Neighbours are of one folder. */
  readonly sources: ReadonlyArray<File>
  /** The lines of the sources that have a word, as a search prints them. */
  readonly found: ReadonlyMap<string, ReadonlyArray<string>>
  /** The titles of the tests of a file. */
  readonly tests: ReadonlyArray<{ readonly path: string; readonly titles: ReadonlyArray<string> }>
}

const filesBelow = (folder: string, end: string) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(end) && !/node_modules|(^|\/)dist\//.test(name))
    .toSorted()
    .map((name) => ({ path: join(folder, name), text: readFileSync(join(folder, name), "utf8") }))

const wordsOf = (line: string): ReadonlyArray<string> => line.match(/[A-Za-z]{6,}/g) ?? []

/** The most lines that a search prints. */
const mostFound = 60

const foundIn = (sources: ReadonlyArray<File>): Corpus["found"] => {
  const found = new Map<string, Array<string>>()
  for (const { lines, path } of sources) {
    for (const [index, line] of lines.entries()) {
      for (const word of new Set(wordsOf(line))) {
        const printed = found.get(word)
        if (printed === undefined) found.set(word, [`${path}:${index + 1}:${line}`])
        else if (printed.length < mostFound) printed.push(`${path}:${index + 1}:${line}`)
      }
    }
  }
  return found
}

/** The texts of the project in the working directory. */
export const corpus = (): Corpus => {
  const sources = filesBelow("packages", ".ts").map(({ path, text }) => ({ path, lines: text.split("\n") }))
  const prose = filesBelow("specs", ".md")
    .map(({ text }) => text)
    .join("\n")
    .replace(/\s+/g, " ")
  return {
    sources,
    sentences: prose.split(/(?<=\.) /).filter((sentence) => sentence.length > 30),
    found: foundIn(sources),
    tests: filesBelow("test", ".test.ts")
      .map(({ path, text }) => ({
        path,
        titles: [...text.matchAll(/\bit(?:\.\w+)*\(\s*"([^"]+)"/g)].map((found) => found[1] ?? "")
      }))
      .filter(({ titles }) => titles.length > 0)
  }
}

/** A call: its tool, its input, what it returns, and whether it reports progress. */
export interface Call {
  readonly tool: string
  readonly input: Readonly<Record<string, unknown>>
  readonly output: string
  readonly structured: Readonly<Record<string, unknown>>
}

/** Files that a session works with at the same time, and calls until it turns to others. */
const [filesTogether, callsTogether] = [4, 40]

/** The longest page that is read, in lines. */
const page = 200

/** The calls of one session. */
export const calls = ({ found, sources, tests }: Corpus, { between, one, random }: Choosing) => {
  /** The files that it has changed. */
  const changed = new Map<string, ReadonlyArray<string>>()
  const places: Array<number> = []
  let files: ReadonlyArray<File> = []
  let run = one(tests)
  let diffs: Array<string> = []
  let left = 0

  const turnTo = (): void => {
    // One task in three uses files of an earlier task.
    const first = places.length > 0 && random() < 0.33 ? one(places) : between(0, sources.length - filesTogether)
    places.push(first)
    files = sources.slice(first, first + filesTogether)
    run = one(tests)
    diffs = []
    left = between(callsTogether >> 1, callsTogether)
  }

  const current = ({ lines, path }: File): ReadonlyArray<string> => changed.get(path) ?? lines

  const read = (file: File): Call => {
    const lines = current(file)
    const offset = lines.length > page ? between(0, lines.length - 20) : 0
    const limit = between(page >> 2, page)
    const text = lines.slice(offset, offset + limit).join("\n")
    const structured = { type: "text", path: file.path, offset: offset + 1, lines: limit, notices: [] }
    return { tool: "read", input: { path: file.path, offset: offset + 1, limit }, output: text, structured }
  }

  const edit = (file: File): Call => {
    const lines = current(file)
    const at = between(0, Math.max(0, lines.length - 8))
    const old = lines.slice(at, at + between(1, 6))
    const other = one(sources).lines
    const from = between(0, other.length - 1)
    const written = other.slice(from, from + between(1, 6))
    changed.set(file.path, [...lines.slice(0, at), ...written, ...lines.slice(at + old.length)])
    const around = (start: number, end: number) => lines.slice(Math.max(0, start), end).map((line) => ` ${line}`)
    const diff = [
      `@@ -${at + 1},${old.length} +${at + 1},${written.length} @@`,
      ...around(at - 3, at),
      ...old.map((line) => `-${line}`),
      ...written.map((line) => `+${line}`),
      ...around(at + old.length, at + old.length + 3)
    ].join("\n")
    diffs.push(`--- ${file.path}\n${diff}`)
    const input = { path: file.path, oldText: old.join("\n"), newText: written.join("\n") }
    return { tool: "edit", input, output: `Changed ${file.path}\n${diff}`, structured: { path: file.path } }
  }

  const write = (file: File): Call => {
    const { lines } = one(sources)
    const from = between(0, lines.length >> 1)
    const path = `${dirname(file.path)}/New${between(0, 999)}.ts`
    const content = lines.slice(from, from + between(20, 120)).join("\n")
    return { tool: "write", input: { path, content }, output: `Wrote ${path}`, structured: { path, created: true } }
  }

  const grep = (file: File): Call => {
    const words = wordsOf(file.lines.join("\n"))
    const word = words.length === 0 ? "export" : one(words)
    const lines = found.get(word) ?? []
    return { tool: "grep", input: { pattern: word }, output: lines.join("\n"), structured: { matches: lines.length } }
  }

  const bash = (command: string, output: string): Call => ({
    tool: "bash",
    input: { command },
    output,
    structured: { exitCode: 0, truncated: false }
  })

  const test = (): Call => {
    const lines = run.titles.map((title) => ` ✓ ${title} ${between(1, 900)}ms`)
    const end = `\n Tests  ${lines.length} passed\n Duration  ${between(1000, 9000)}ms\n`
    return bash(`npx vitest run ${run.path}`, `${lines.join("\n")}${end}`)
  }

  /** The next call. */
  return (): Call => {
    if (left-- <= 0) turnTo()
    const [file, kind] = [one(files), random()]
    if (kind < 0.3) return read(file)
    if (kind < 0.55) return edit(file)
    if (kind < 0.6) return write(file)
    if (kind < 0.75) return grep(file)
    return kind < 0.9 ? test() : bash("git diff", diffs.join("\n"))
  }
}
