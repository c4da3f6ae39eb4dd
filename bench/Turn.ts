/**
 * Compares a turn in a session of 100 messages with one in a session of 100,000. Both models get the same context, so both
 * turns should cost the same (EX-R9). Everything is real but the model, which answers immediately, part by part. Statements
 * and rows are counted at the driver, on both connections; commits and WAL pages are read from the WAL's index. Each fresh
 * session ends with a checkpoint and the same turns after it.
 */
import { closeSync, mkdirSync, openSync, readSync } from "node:fs"
import { endianness } from "node:os"
import { dirname } from "node:path"
import { LanguageModel, type Response } from "@effect/ai"
import { SqlClient } from "@effect/sql"
import Sqlite from "better-sqlite3"
import { Array as Arr, Effect, Layer, Predicate, Stream } from "effect"
import { layerLanguageModel } from "../packages/core/src/model/ModelResolver.ts"
import * as ProviderModel from "../packages/core/src/model/ProviderModel.ts"
import { Sessions } from "../packages/core/src/session/Sessions.ts"
import * as Daybook from "../packages/embedded/src/Daybook.ts"
import { ActivityID, MessageID, SessionID } from "../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft } from "../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../packages/log/src/log/EventLog.ts"
import { median } from "./Figures.ts"
import { freshFile, ours, removeFile } from "./Stores.ts"
import * as TurnCalls from "./TurnCalls.ts"
import * as Workload from "./Workload.ts"

export const sessionID = SessionID.make("ses_turn")
/** Turns after the last checkpoint, in both stores. */
const shownTurns = 20
/** Turns between the checkpoints before. */
const turnsPerCheckpoint = 500
/** Turns per append. */
const turnsPerAppend = 200

let made = 0
const identifier = (prefix: string): string => `${prefix}_9${String(made++).padStart(25, "0")}`

/** A turn that no request contains any more: only its stored size matters. */
const pastTurn = (): ReadonlyArray<Draft> => {
  const messageID = MessageID.make(identifier("msg"))
  const assistantMessageID = MessageID.make(identifier("msg"))
  const activityID = ActivityID.make(identifier("act"))
  const prompt = { text: "And what does the next workspace hold?" }
  return [
    draft("session.next.prompt.admitted", { messageID, prompt, delivery: "steer" }),
    draft("session.next.prompt.promoted", { messageID, prompt, timeCreated: 1_750_000_000_000 }),
    draft("session.next.activity.started", { activityID, trigger: "steer" }),
    draft("session.next.step.started", { assistantMessageID, agent: "build", model: Workload.model }),
    draft("session.next.text.started", { assistantMessageID, textID: "0" }),
    draft("session.next.text.ended", {
      assistantMessageID,
      textID: "0",
      text: "It holds the tests of the one before."
    }),
    draft("session.next.step.ended", { assistantMessageID, finish: "stop", cost: 0, tokens: Workload.tokens }),
    draft("session.next.activity.settled", { activityID, outcome: "completed" })
  ]
}

const checkpoint = (): ReadonlyArray<Draft> => {
  const messageID = MessageID.make(identifier("msg"))
  return [
    draft("session.next.compaction.started", { messageID, reason: "auto" }),
    draft("session.next.compaction.ended", { messageID, reason: "auto", text: "## Goal\nTo read.", recent: "" })
  ]
}

/** Makes a session of this many messages, two per turn, with the checkpoints. */
const fill = (filename: string, messages: number): Promise<void> =>
  Effect.gen(function* () {
    const log = yield* EventLog
    yield* (yield* SqlClient.SqlClient)`PRAGMA synchronous = OFF`
    yield* log.append(sessionID, [Workload.createdAt(dirname(filename))])
    const append = (drafts: ReadonlyArray<Draft>) =>
      Arr.isNonEmptyReadonlyArray(drafts) ? log.append(sessionID, drafts) : Effect.void
    const past = messages / 2 - shownTurns
    for (let turns = 0; turns < past; turns += turnsPerAppend) {
      const count = Math.min(turnsPerAppend, past - turns)
      yield* append(Array.from({ length: count }, pastTurn).flat())
      if (turns % turnsPerCheckpoint === 0) yield* append(checkpoint())
    }
    yield* append(checkpoint())
    for (let turns = 0; turns < shownTurns; turns++) yield* append(Workload.turn())
  }).pipe(Effect.provide(ours(filename)), Effect.runPromise)

const answer: ReadonlyArray<Response.StreamPartEncoded> = [
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: "It holds the tests." },
  { type: "text-end", id: "t" },
  { type: "finish", reason: "stop", usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 } }
]

/** A model that answers at once. */
export const model = layerLanguageModel({ ref: Workload.model }).pipe(
  Layer.provide(
    Layer.effect(
      LanguageModel.LanguageModel,
      ProviderModel.make({
        generateText: () => Effect.dieMessage("the runner streams"),
        streamText: () => Stream.rechunk(Stream.fromIterable(answer), 1)
      })
    )
  )
)

/** The cost of one turn. */
export interface Cost {
  readonly ms: number
  /** Processor time of the whole process. */
  readonly cpuMs: number
  readonly statements: number
  readonly rows: number
  /** Write transactions, each with an fsync of the WAL. */
  readonly commits: number
  /** Pages written to the WAL. */
  readonly pages: number
}

/** Where the header of SQLite's WAL index has the number of write transactions, and of valid pages. */
const [changeAt, pagesAt, headerBytes] = [8, 16, 48]

/** The counters of a database's WAL index: SQLite's own, exact and without a statement. */
const walOf = (filename: string): { readonly commits: number; readonly pages: number } => {
  const header = Buffer.alloc(headerBytes)
  const file = openSync(`${filename}-shm`, "r")
  readSync(file, header, 0, headerBytes, 0)
  closeSync(file)
  const at = (offset: number) => (endianness() === "LE" ? header.readUInt32LE(offset) : header.readUInt32BE(offset))
  return { commits: at(changeAt), pages: at(pagesAt) }
}

/** Statements and rows of every connection since the process started. */
const counted = { statements: 0, rows: 0 }

/** Makes the driver count its statements and rows. */
const countStatements = (): void => {
  const database = new Sqlite(":memory:")
  const prototype: unknown = Object.getPrototypeOf(database.prepare("SELECT 1"))
  database.close()
  if (!Predicate.isRecord(prototype)) throw new Error("the driver's statements have no prototype")
  for (const name of ["all", "run"]) {
    const original = prototype[name]
    if (typeof original !== "function") throw new Error(`the driver's statements have no ${name}`)
    prototype[name] = function (this: unknown, ...parameters: ReadonlyArray<unknown>): unknown {
      counted.statements += 1
      const result: unknown = original.apply(this, parameters)
      if (Array.isArray(result)) counted.rows += result.length
      return result
    }
  }
}

/** A prompt and its turn. */
export const turn = Effect.gen(function* () {
  const sessions = yield* Sessions
  yield* sessions.prompt({ sessionID, prompt: { text: "And the last one?" }, resume: false })
  yield* sessions.resume(sessionID)
})

const turnCost = (filename: string) =>
  Effect.gen(function* () {
    const before = { ...counted }
    const wal = walOf(filename)
    const cpu = process.cpuUsage()
    const started = performance.now()
    yield* turn
    const ms = performance.now() - started
    const { system, user } = process.cpuUsage(cpu)
    const after = walOf(filename)
    return {
      ms,
      cpuMs: (user + system) / 1000,
      statements: counted.statements - before.statements,
      rows: counted.rows - before.rows,
      commits: after.commits - wal.commits,
      // After a checkpoint the WAL begins anew.
      pages: after.pages < wal.pages ? after.pages : after.pages - wal.pages
    } satisfies Cost
  })

/** Pairs of warm turns in a round. */
const warmTurns = 30

const runtime = (filename: string) => Layer.build(Daybook.layer({ filename }).pipe(Layer.provide(model)))

/** The costs of a first and a warm turn, for the small and the large store. */
interface Round {
  readonly cold: Pair<Cost>
  readonly warm: Pair<Cost>
}

interface Pair<A> {
  readonly small: A
  readonly large: A
}

/** Runs the first turn of a runtime on each store, then alternates turns, so that a slow moment affects both sides. */
const round = (filenames: Pair<string>): Promise<Round> =>
  Effect.gen(function* () {
    const services = { small: yield* runtime(filenames.small), large: yield* runtime(filenames.large) }
    const turnOf = (size: keyof Pair<string>) => Effect.provide(turnCost(filenames[size]), services[size])
    const cold = { small: yield* turnOf("small"), large: yield* turnOf("large") }
    const warm: Pair<Array<Cost>> = { small: [], large: [] }
    for (let pair = 0; pair < warmTurns; pair++) {
      for (const size of pair % 2 === 0 ? (["small", "large"] as const) : (["large", "small"] as const)) {
        warm[size].push(yield* turnOf(size))
      }
    }
    return { cold, warm: { small: middle(warm.small), large: middle(warm.large) } }
  }).pipe(Effect.scoped, Effect.runPromise)

const middle = (costs: ReadonlyArray<Cost>): Cost => ({
  ms: median(costs.map(({ ms }) => ms)),
  cpuMs: median(costs.map(({ cpuMs }) => cpuMs)),
  statements: median(costs.map(({ statements }) => statements)),
  rows: median(costs.map(({ rows }) => rows)),
  commits: median(costs.map(({ commits }) => commits)),
  pages: median(costs.map(({ pages }) => pages))
})

export interface Compared extends Pair<Cost> {
  /** Median over the rounds of the ratio of times within a round. */
  readonly timeRatio: number
}

export interface Result {
  readonly cold: Compared
  readonly warm: Compared
  /** Undefined where system calls cannot be counted. */
  readonly calls: TurnCalls.Calls | undefined
}

/** Runs turns in a new session of a new database, for `TurnCalls`. */
export const run = (directory: string, turns: number): Promise<void> => {
  mkdirSync(directory, { recursive: true })
  const filename = freshFile(directory)
  return Effect.gen(function* () {
    const log = yield* EventLog
    yield* log.append(sessionID, [Workload.createdAt(directory)])
  }).pipe(
    Effect.provide(ours(filename)),
    Effect.zipRight(
      Effect.flatMap(runtime(filename), (services) => Effect.provide(Effect.repeatN(turn, turns - 1), services))
    ),
    Effect.scoped,
    Effect.runPromise
  )
}

const compared = (pairs: ReadonlyArray<Pair<Cost>>): Compared => ({
  small: middle(pairs.map(({ small }) => small)),
  large: middle(pairs.map(({ large }) => large)),
  timeRatio: median(pairs.map(({ large, small }) => large.ms / small.ms))
})

/** Runs this many rounds of both. */
export const measure = async (directory: string, messages: number, rounds: number): Promise<Result> => {
  const filenames = { small: freshFile(directory), large: freshFile(directory) }
  await fill(filenames.small, 100)
  await fill(filenames.large, messages)
  countStatements()
  // Warms up: loads the modules that a process loads once.
  await round(filenames)
  const found: Array<Round> = []
  for (let nth = 0; nth < rounds; nth++) found.push(await round(filenames))
  removeFile(filenames.small)
  removeFile(filenames.large)
  const calls = TurnCalls.measure(directory)
  return { cold: compared(found.map(({ cold }) => cold)), warm: compared(found.map(({ warm }) => warm)), calls }
}
