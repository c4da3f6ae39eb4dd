/**
 * Measures imports of entry logs, and the context of an imported session, each in a process of its own, against parsing the
 * same file whole; and a list of logs beside its system calls. Every process, of either side, finds its code compiled, as the
 * commands do (CL-60). Memory is the peak resident size of the process. The parsing reader keeps the records, indexes them by
 * id, walks from the leaf to the root and applies the last compaction, as the tools that write such logs do.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, rmSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { median } from "./Figures.ts"
import * as FormatLogs from "./FormatLogs.ts"
import type { Work } from "./FormatsChild.ts"
import { freshFile, removeFile } from "./Stores.ts"

const Done = Schema.parseJson(
  Schema.Struct({
    ms: Schema.Number,
    cpuMs: Schema.Number,
    /** Peak resident megabytes. */
    memory: Schema.Number,
    /** The session, how many messages were shown, or what lists took. */
    result: Schema.String
  })
)
type Done = typeof Done.Type

const commands = fileURLToPath(new URL("./commands/", import.meta.url))
const cli = (path: string) => fileURLToPath(new URL(`../../../packages/cli/${path}`, import.meta.url))

const node = (words: ReadonlyArray<string>): Done =>
  Schema.decodeSync(Done)(execFileSync(process.execPath, words, { encoding: "utf8" }))

/** Loads the program as `bin/daybook.js` loads the bundle. */
const program = `require(${JSON.stringify(cli("bin/load.js"))}).load(process.argv[1]).main(process.argv.slice(2))`

const run = (name: Work, ...words: ReadonlyArray<string>): Done =>
  node(["-e", program, join(commands, "FormatsChild.js"), name, ...words])

/** Runs the work once and stores the code that V8 compiled for it, as the build of the commands does. */
const store = (name: Work, ...words: ReadonlyArray<string>): Done =>
  node([cli("scripts/warm.cjs"), commands, "FormatsChild.js", name, ...words])

/** Stores the code of every work, of both sides of a ratio, on a small log. */
const storeAll = (directory: string): void => {
  const [sessions, filename] = [join(directory, "stored"), freshFile(directory)]
  const path = join(sessions, "--work--", "0.jsonl")
  mkdirSync(dirname(path), { recursive: true })
  FormatLogs.write(path, 100)
  store("parse", path)
  const { result } = store("import", path, filename)
  store("walk", path)
  store("context", result, filename)
  store("list", sessions)
  rmSync(sessions, { recursive: true })
  removeFile(filename)
}

/** Milliseconds of each turn. */
const Turns = Schema.parseJson(
  Schema.Struct({ context: Schema.Array(Schema.Number), walk: Schema.Array(Schema.Number) })
)

export interface Import {
  readonly megabytes: number
  /** Megabytes of the log per second of processor time. */
  readonly rate: number
  /** The processor time against that of parsing the file. */
  readonly ratio: number
  readonly memory: number
  readonly disk: number
}

export interface Result {
  readonly imports: ReadonlyArray<Import>
  readonly context: {
    readonly entries: number
    readonly ms: number
    /** Parsing everything and walking, against it. */
    readonly ratio: number
    /** The same in a process that has done both before. */
    readonly againMs: number
    readonly againRatio: number
    readonly memory: number
  }
  readonly list: {
    readonly logs: number
    readonly ms: number
    /** Against the system calls alone. */
    readonly ratio: number
    readonly firstMs: number
  }
}

const Listed = Schema.parseJson(
  Schema.Struct({
    logs: Schema.Number,
    first: Schema.Number,
    rounds: Schema.Array(Schema.Struct({ list: Schema.Number, bare: Schema.Number }))
  })
)

/** Lists 500 logs in ten folders. */
const measureList = (directory: string): Result["list"] => {
  const sessions = join(directory, "sessions")
  for (let log = 0; log < 500; log++) {
    const folder = join(sessions, `--work-${log % 10}--`)
    mkdirSync(folder, { recursive: true })
    FormatLogs.write(join(folder, `${log}.jsonl`), 8)
  }
  const { first, logs, rounds } = Schema.decodeSync(Listed)(run("list", sessions).result)
  rmSync(sessions, { recursive: true })
  return {
    logs,
    ms: median(rounds.map(({ list }) => list)),
    ratio: median(rounds.map(({ bare, list }) => list / bare)),
    firstMs: first
  }
}

/** Imports a log of so many entries, and opens the session if it is the largest. */
const measureOne = (directory: string, entries: number, rounds: number) => {
  const path = join(directory, `entries-${entries}.jsonl`)
  FormatLogs.write(path, entries)
  const megabytes = statSync(path).size / 1e6
  const imports: Array<Import> = []
  const contexts: Array<Omit<Result["context"], "entries">> = []
  for (let round = 0; round < rounds; round++) {
    const filename = freshFile(directory)
    const parsed = run("parse", path)
    const imported = run("import", path, filename)
    const disk = statSync(filename).size / 1e6
    imports.push({
      megabytes,
      rate: megabytes / (imported.cpuMs / 1000),
      ratio: imported.cpuMs / parsed.cpuMs,
      memory: imported.memory,
      disk: disk / megabytes
    })
    const whole = run("walk", path)
    const opened = run("context", imported.result, filename)
    if (opened.result !== whole.result)
      throw new Error(`the session shows ${opened.result} messages, and the log ${whole.result}`)
    const turns = Schema.decodeSync(Turns)(run("turns", imported.result, filename, path).result)
    const againMs = median(turns.context)
    contexts.push({
      ms: opened.ms,
      ratio: whole.ms / opened.ms,
      againMs,
      againRatio: median(turns.walk) / againMs,
      memory: opened.memory
    })
    removeFile(filename)
  }
  rmSync(path)
  const of = (figure: (one: Import) => number) => median(imports.map(figure))
  return {
    import: {
      megabytes,
      rate: of(({ rate }) => rate),
      ratio: of(({ ratio }) => ratio),
      memory: Math.max(...imports.map(({ memory }) => memory)),
      disk: of(({ disk }) => disk)
    },
    context: {
      entries,
      ms: median(contexts.map(({ ms }) => ms)),
      ratio: median(contexts.map(({ ratio }) => ratio)),
      againMs: median(contexts.map(({ againMs }) => againMs)),
      againRatio: median(contexts.map(({ againRatio }) => againRatio)),
      memory: Math.max(...contexts.map(({ memory }) => memory))
    }
  }
}

/** Entries of logs of 2, 24 and 120 MB. */
const sizes = [800, 10_000, 50_000] as const

export const measure = (directory: string, quick: boolean, rounds: number): Result => {
  storeAll(directory)
  const found = (quick ? sizes.slice(0, 2) : sizes).map((entries) => measureOne(directory, entries, rounds))
  const context = found.at(-1)?.context ?? { entries: 0, ms: 0, ratio: 0, againMs: 0, againRatio: 0, memory: 0 }
  return { imports: found.map((one) => one.import), context, list: measureList(directory) }
}
