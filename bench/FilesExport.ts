/**
 * Measures the export of a store into files against a plain loop that writes the same lines with `JSON.stringify` and an
 * append per page: the cost of reading, schemas, fold, index, checks and the ledger. The export runs in a process of its own,
 * in the exporter's thread; memory is the peak resident size of that process. `PromptBeside.ts` measures a server's turns
 * meanwhile.
 */
import { execFileSync } from "node:child_process"
import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { SqlClient } from "@effect/sql"
import { Array as Arr, Effect, Schema } from "effect"
import { SessionID } from "../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../packages/log/src/log/EventLog.ts"
import * as Store from "../packages/log/src/Store.ts"
import { median } from "./Figures.ts"
import * as PromptBeside from "./PromptBeside.ts"
import { freshFile, removeFile } from "./Stores.ts"
import * as Workload from "./Workload.ts"

const sessions = 20
const turnsPerAppend = 100
/** Lines per append of the plain loop: the rows of a page of the log. */
const linesPerAppend = 512

export interface Result {
  /** Size of the lines in messages.jsonl and events.jsonl. */
  readonly megabytes: number
  readonly plain: number
  readonly exported: number
  readonly ratio: number
  /** Peak resident megabytes. */
  readonly memory: number
  readonly prompt: PromptBeside.Result
}

const Child = Schema.parseJson(Schema.Struct({ ms: Schema.Number, memory: Schema.Number }))

/** Fills a store with this many messages: a prompt and an answer per turn. */
const fill = Effect.fnUntraced(function* (messages: number) {
  const log = yield* EventLog
  yield* (yield* SqlClient.SqlClient)`PRAGMA synchronous = OFF`
  for (let session = 0; session < sessions; session++) {
    const sessionID = SessionID.make(`ses_export${session}`)
    yield* log.append(sessionID, [Workload.created])
    const turns = messages / 2 / sessions
    for (let done = 0; done < turns; done += turnsPerAppend) {
      const drafts = Array.from({ length: Math.min(turnsPerAppend, turns - done) }, Workload.turn).flat()
      if (Arr.isNonEmptyReadonlyArray(drafts)) yield* log.append(sessionID, drafts)
    }
  }
})

/** Every JSONL file below the folder. */
const lineFiles = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith("messages.jsonl") || name.endsWith("events.jsonl"))
    .map((name) => join(folder, name))

/** Copies the lines of one file; only writing is timed. */
const writePlainly = (from: string, to: string): number => {
  const rows = readFileSync(from, "utf8")
    .trimEnd()
    .split("\n")
    .map((line): unknown => JSON.parse(line))
  const began = performance.now()
  for (let at = 0; at < rows.length; at += linesPerAppend) {
    const page = rows.slice(at, at + linesPerAppend)
    appendFileSync(to, page.map((row) => `${JSON.stringify(row)}\n`).join(""))
  }
  return performance.now() - began
}

const round = (filename: string, root: string) => {
  const child = fileURLToPath(new URL("./ExportChild.mjs", import.meta.url))
  const { memory, ms: exportMs } = Schema.decodeSync(Child)(
    execFileSync(process.execPath, [child, filename, root], { encoding: "utf8" })
  )
  const files = lineFiles(root)
  const bytes = files.reduce((sum, file) => sum + statSync(file).size, 0)
  const copies = join(root, "plain")
  mkdirSync(copies)
  const plainMs = files.reduce((sum, file, index) => sum + writePlainly(file, join(copies, `${index}.jsonl`)), 0)
  rmSync(root, { recursive: true })
  const rate = (ms: number) => bytes / 1e6 / (ms / 1000)
  return { megabytes: bytes / 1e6, plain: rate(plainMs), exported: rate(exportMs), memory }
}

export const measure = async (directory: string, messages: number, rounds: number): Promise<Result> => {
  const filename = freshFile(directory)
  await Effect.runPromise(Effect.provide(fill(messages), Store.layer({ filename })))
  const found = Array.from({ length: rounds }, (_, n) => round(filename, join(directory, `root${n}`)))
  const prompt = await PromptBeside.measure(filename, directory)
  removeFile(filename)
  const of = (figure: (one: (typeof found)[number]) => number) => median(found.map(figure))
  return {
    megabytes: of(({ megabytes }) => megabytes),
    plain: of(({ plain }) => plain),
    exported: of(({ exported }) => exported),
    ratio: of(({ exported, plain }) => exported / plain),
    memory: Math.max(...found.map(({ memory }) => memory)),
    prompt
  }
}
