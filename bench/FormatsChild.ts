/**
 * A process of `Formats.ts`: imports a log, reads a session's context, does the same with the parsed log, or lists logs.
 * It prints time and memory. Words: the work; a log, session or folder; the database; the log of the session.
 */
import { readFileSync } from "node:fs"
import { Effect, Layer } from "effect"
import { SessionID } from "../packages/log/src/domain/Identifiers.ts"
import * as Store from "../packages/log/src/Store.ts"
import { SessionStore } from "../packages/log/src/store/SessionStore.ts"

/** Runs the work and prints what it took. */
const timed = async (work: () => Promise<string>): Promise<void> => {
  const began = performance.now()
  const before = process.cpuUsage()
  const result = await work()
  const { system, user } = process.cpuUsage(before)
  const ms = performance.now() - began
  // The kernel counts in kilobytes.
  const memory = process.resourceUsage().maxRSS / 1000
  console.log(JSON.stringify({ ms, cpuMs: (user + system) / 1000, memory, result }))
}

type Fields = Readonly<Record<string, unknown>>

const parse = (path: string): ReadonlyArray<Fields> =>
  readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Fields)

/** The messages that a reader shows that has parsed everything. */
const walked = (path: string): number => {
  const records = parse(path)
  const byID = new Map(records.map((record) => [record["id"], record]))
  const branch: Array<Fields> = []
  for (let at = records.at(-1); at !== undefined; at = byID.get(at["parentId"])) branch.push(at)
  branch.reverse()
  const compaction = branch.findLastIndex(({ type }) => type === "compaction")
  const kept = branch.findIndex(({ id }) => id === branch[compaction]?.["firstKeptEntryId"])
  const shown = branch.slice(kept < 0 ? compaction + 1 : kept).filter(({ type }) => type === "message")
  // The runtime keeps a result with its call.
  const messages = shown.filter(({ message }) => (message as Fields)["role"] !== "toolResult")
  return messages.length + (compaction < 0 ? 0 : 1)
}

/** Opens the database, reads a session's context, and closes it. */
const context = (sessionID: string, filename: string) =>
  Effect.flatMap(SessionStore, (store) => store.context(SessionID.make(sessionID), -1)).pipe(
    Effect.map((messages) => String(messages.length)),
    Effect.provide(Store.layerReading({ filename })),
    Effect.runPromise
  )

const millis = async (work: () => unknown): Promise<number> => {
  const began = performance.now()
  await work()
  return performance.now() - began
}

/** What the processes do, by name. */
const works = {
  parse: (path: string) => Promise.resolve(String(parse(path).length)),
  walk: (path: string) => Promise.resolve(String(walked(path))),
  import: async (path: string, filename: string) => {
    // Loaded here: a reader of a session needs none of it.
    const { Garbage, importLog, LogSource, NodeFileSystem } = await import("./FormatsImport.ts")
    // As `daybook import` does.
    Garbage.bound()
    return importLog((ends) => LogSource.open(path, "auto", ends), { directory: "/tmp" }).pipe(
      Effect.map(({ sessionID }) => sessionID),
      Effect.provide(Layer.merge(Store.layer({ filename }), NodeFileSystem.layer)),
      Effect.runPromise
    )
  },
  list: async (folder: string) => JSON.stringify((await import("./FormatsListing.ts")).measure(folder)),
  context,
  /** Both ways in turn in one process, whose code is compiled after the first turns. */
  turns: async (sessionID: string, filename: string, path: string) => {
    const found = { context: new Array<number>(), walk: new Array<number>() }
    for (let turn = 0; turn < 6; turn++) {
      found.walk.push(await millis(() => walked(path)))
      found.context.push(await millis(() => context(sessionID, filename)))
    }
    return JSON.stringify({ context: found.context.slice(2), walk: found.walk.slice(2) })
  }
}

/** What the process can do. */
export type Work = keyof typeof works

const isWork = (name: string): name is Work => Object.hasOwn(works, name)

/** Runs the work that the words name, as the bundles of the commands do. */
export const main = async (_version: string, [name = "", subject = "", filename = "", path = ""]: Array<string>) => {
  if (isWork(name)) await timed(() => works[name](subject, filename, path))
}
