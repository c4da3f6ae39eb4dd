/**
 * Measures searches over many texts, building the index, its size, the removal of a session from it, and appends while the
 * index follows. The texts are pieces of this project's specifications, each with a word of its own.
 */
import { readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { join, resolve } from "node:path"
import Sqlite from "better-sqlite3"
import { Effect, Layer } from "effect"
import { SessionID } from "../packages/log/src/domain/Identifiers.ts"
import * as EventRow from "../packages/log/src/log/EventRow.ts"
import { checksumOf } from "../packages/log/src/log/EventRow.ts"
import { EventLog } from "../packages/log/src/log/EventLog.ts"
import { Search } from "../packages/log/src/search/Search.ts"
import * as SqlSearch from "../packages/log/src/search/SqlSearch.ts"
import { searchPath } from "../packages/log/src/storage/SearchFile.ts"
import { median, quantile } from "./Figures.ts"
import { freshFile, ours, removeFile, withOurs } from "./Stores.ts"
import * as Workload from "./Workload.ts"

const partsPerSession = 1_000
const start = Date.UTC(2026, 0, 1)
/** A text every 20 seconds: a million in 231 days. */
const every = 20_000

/** The words of the specifications. */
const corpus = (): ReadonlyArray<string> =>
  readdirSync(resolve("specs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .toSorted()
    .flatMap((name) => readFileSync(join(resolve("specs"), name), "utf8").split(/\s+/))

/** The same sequence in every run, from 0 to 1. */
const randoms = () => {
  let state = 42
  return () => (state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648
}

const names = ["session.next.prompt.admitted.1", "session.next.text.ended.1", "session.next.tool.called.1"] as const

const dataOf = (kind: number, position: number, text: string): unknown => {
  const assistantMessageID = `msg_a${position}`
  switch (kind) {
    case 0:
      return { messageID: `msg_p${position}`, prompt: { text }, delivery: "steer" }
    case 1:
      return { assistantMessageID, textID: "t", text }
    default: {
      const provider = { executed: false }
      return { assistantMessageID, callID: "c", tool: position % 2 === 0 ? "bash" : "read", input: { text }, provider }
    }
  }
}

const insertSession = `INSERT INTO session (id, directory, location, cost, tokens_input, tokens_output, tokens_reasoning,
  tokens_cache_read, tokens_cache_write, turns, tool_calls, duration_ms, time_created, time_updated)
  VALUES (?, ?, ?, 0, 0, 0, 0, 0, 0, 0, 0, 0, ?, ?)`

/** Fills the database with sessions of prompts, answers and calls. Returns the bytes of their texts. */
export const fill = async (filename: string, parts: number): Promise<number> => {
  await withOurs(filename, Effect.void)
  const [words, random] = [corpus(), randoms()]
  const db = new Sqlite(filename)
  db.pragma("synchronous = OFF")
  const idAt = EventRow.makeEventIds(db.prepare<[], string>("SELECT identity FROM log_identity").pluck().get() ?? "")
  const addSession = db.prepare(insertSession)
  const addHead = db.prepare("INSERT INTO event_sequence (session_id, seq, incarnation) VALUES (?, ?, ?)")
  const addEvent = db.prepare(
    "INSERT INTO event (position, session, seq, type, created, checksum, data) VALUES (?, ?, ?, ?, ?, ?, ?)"
  )
  let bytes = 0
  const part = (position: number, session: number, session_id: string, seq: number) => {
    const from = Math.floor(random() * (words.length - 100))
    const text = `${words.slice(from, from + 5 + Math.floor(random() * 75)).join(" ")} word${position.toString(36)}`
    const [kind, created] = [position % 3, start + position * every]
    const data = JSON.stringify(dataOf(kind, position, text))
    bytes += text.length
    const type = names[kind] ?? names[0]
    const checksum = checksumOf({ id: idAt(created, position), session_id, seq, type, created, data })
    addEvent.run(position, session, seq, kind + 1, created, checksum, data)
  }
  db.transaction(() => {
    names.forEach((name, at) => db.prepare("INSERT INTO event_type (type, name) VALUES (?, ?)").run(at + 1, name))
    for (let session = 1; session <= parts / partsPerSession; session++) {
      const [id, first] = [`ses_${String(session).padStart(10, "0")}`, (session - 1) * partsPerSession + 1]
      const directory = `/work/${session % 10}`
      addHead.run(id, partsPerSession - 1, first)
      addSession.run(id, directory, JSON.stringify({ directory }), start + first * every, start + first * every)
      for (let seq = 0; seq < partsPerSession; seq++) part(first + seq, session, id, seq)
    }
  })()
  db.close()
  return bytes
}

/** Searches as people write them: from words of one text to words of most texts. */
export const queries = (parts: number): ReadonlyArray<string> => [
  `word${Math.floor(parts / 2).toString(36)}`,
  "session",
  "the",
  "session event",
  '"write-ahead log"',
  "compac*",
  "permission role:user",
  "the -session role:assistant",
  "tool:bash sandbox",
  `session:ses_${"5".padStart(10, "0")} event`,
  "cwd:/work/3 snapshot",
  "after:2026-02-01 before:2026-02-08 prompt",
  "append commit transaction"
]

const searching = (filename: string) => SqlSearch.layer.pipe(Layer.provideMerge(ours(filename)), Layer.orDie)

type Searching = Layer.Layer.Success<ReturnType<typeof searching>>

export const run = <A, E>(filename: string, effect: Effect.Effect<A, E, Searching>): Promise<A> =>
  Effect.runPromise(Effect.provide(effect, searching(filename)))

/** The milliseconds of each search, a query after the other. */
const times = (parts: number, rounds: number) =>
  Effect.gen(function* () {
    const search = yield* Search
    const found: Array<{ readonly query: string; readonly ms: number; readonly hits: number }> = []
    for (let round = 0; round < rounds; round++) {
      for (const query of queries(parts)) {
        const started = performance.now()
        const { items } = yield* search.search({ query })
        found.push({ query, ms: performance.now() - started, hits: items.length })
      }
    }
    return found
  })

/** Latencies of single appends, one every few milliseconds. */
const appends = (count: number) =>
  Effect.gen(function* () {
    const [log, id] = [yield* EventLog, SessionID.make(`ses_append${Math.random().toString(36).slice(2)}`)]
    yield* log.append(id, [Workload.created])
    const [drafts, latencies] = [Workload.events(), [] as Array<number>]
    for (let left = count; left > 0; left--) {
      const { value } = drafts.next()
      const started = performance.now()
      yield* log.append(id, [value])
      latencies.push(performance.now() - started)
      yield* Effect.sleep("2 millis")
    }
    return latencies
  })

export interface Result {
  readonly parts: number
  readonly textBytes: number
  readonly indexBytes: number
  readonly indexSeconds: number
  readonly p50: number
  readonly p99: number
  readonly slowest: string
  /** The queries that found nothing. */
  readonly empty: ReadonlyArray<string>
  readonly removeMs: number
  readonly alone: ReadonlyArray<number>
  readonly followed: ReadonlyArray<number>
}

/** Medians over the rounds; appends with and without the index alternate. */
export const measure = async (directory: string, parts: number, rounds: number): Promise<Result> => {
  const filename = freshFile(directory)
  const textBytes = await fill(filename, parts)
  const started = process.cpuUsage()
  await run(
    filename,
    Effect.flatMap(Search, (search) => search.update())
  )
  const { system, user } = process.cpuUsage(started)
  const indexBytes = statSync(searchPath(filename)).size
  const found = await run(filename, times(parts, rounds))
  const [alone, followed]: [Array<number>, Array<number>] = [[], []]
  for (let round = 0; round < rounds; round++) {
    alone.push(...(await run(filename, appends(300))))
    followed.push(...(await run(filename, Effect.provide(appends(300), SqlSearch.layerFollowing))))
  }
  const removing = performance.now()
  await run(
    filename,
    Effect.flatMap(EventLog, (log) => log.remove(SessionID.make("ses_0000000003")))
  )
  const removeMs = performance.now() - removing
  for (const suffix of ["", "-wal", "-shm"]) rmSync(`${searchPath(filename)}${suffix}`, { force: true })
  removeFile(filename)
  const ms = found.map((each) => each.ms)
  const byQuery = queries(parts).map((query) => {
    const own = found.filter((each) => each.query === query)
    return { query, ms: median(own.map((each) => each.ms)) }
  })
  const slowest = byQuery.toSorted((a, b) => b.ms - a.ms).slice(0, 4)
  return {
    parts,
    textBytes,
    indexBytes,
    indexSeconds: (system + user) / 1e6,
    p50: median(ms),
    p99: quantile(ms, 0.99),
    slowest: slowest.map((each) => `${each.query} ${each.ms.toFixed(1)} ms`).join("; "),
    empty: found.filter(({ hits }) => hits === 0).map(({ query }) => query),
    removeMs,
    alone,
    followed
  }
}
