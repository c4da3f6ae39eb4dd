/**
 * Prunes a store to a tenth of its size while a runtime in the same process admits prompts at a steady rate, and compares
 * their latency with that of a quiet stretch of the same run. Every session's shown state is hashed before and after.
 */
import { createHash } from "node:crypto"
import { statSync } from "node:fs"
import { tmpdir } from "node:os"
import * as SqlClient from "@effect/sql/SqlClient"
import { Clock, Effect, Either, Fiber, Layer } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { Sessions } from "../packages/core/src/session/Sessions.ts"
import * as Daybook from "../packages/embedded/src/Daybook.ts"
import { SessionID } from "../packages/log/src/domain/Identifiers.ts"
import type { Draft } from "../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../packages/log/src/log/EventLog.ts"
import type { Pace } from "../packages/log/src/retention/Pace.ts"
import * as Retention from "../packages/log/src/retention/Retention.ts"
import * as Space from "../packages/log/src/retention/Space.ts"
import { ReadSql } from "../packages/log/src/storage/Database.ts"
import * as Store from "../packages/log/src/Store.ts"
import * as ContentBlock from "../packages/log/src/store/ContentBlock.ts"
import { SessionStore } from "../packages/log/src/store/SessionStore.ts"
import * as Conversations from "./Conversations.ts"
import { quantile } from "./Figures.ts"
import { model } from "./Turn.ts"
import * as Work from "./Work.ts"
import { createdAt } from "./Workload.ts"

export interface Size {
  readonly sessions: number
  /** Bytes of the file before, and the size that the prune is asked for. */
  readonly bytes: number
  readonly target: number
}

const seed = 12

/** Sessions that are written at the same time: their pages lie between each other. */
const together = 10

/** Turns of one append. */
const turnsAtOnce = 4

const fileBytes = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.map(Space.measure(sql), ({ pageSize, pages }) => pages * pageSize)
)

const idsOf = (count: number) =>
  Array.from({ length: count }, (_, index) => SessionID.make(`ses_${String(index).padStart(26, "0")}`))

/** Writes the sessions, group by group, until the file has its size. */
const fill = Effect.fnUntraced(function* ({ bytes, sessions }: Size) {
  const [log, sql] = [yield* EventLog, yield* SqlClient.SqlClient]
  yield* sql`PRAGMA synchronous = OFF`
  const session = Conversations.sessions(Work.corpus(), seed)
  const ids = idsOf(sessions)
  for (let first = 0; first < sessions; first += together) {
    const group = ids.slice(first, first + together)
    const turns = new Map(group.map((id) => [id, session()]))
    for (const id of group) yield* log.append(id, [createdAt("/home/ada/project")])
    const end = (bytes * Math.min(sessions, first + together)) / sessions
    while ((yield* fileBytes) < end) {
      for (const [id, turn] of turns) {
        const drafts = Array.from({ length: turnsAtOnce }, turn).flat()
        // A turn has events.
        yield* log.append(id, drafts as unknown as NonEmptyReadonlyArray<Draft>)
      }
    }
  }
})

/** A hash of what the store shows of each session: its row, all messages, and the model's context. */
const shown = Effect.fnUntraced(function* (count: number) {
  const store = yield* SessionStore
  return yield* Effect.forEach(idsOf(count), (sessionID) =>
    Effect.gen(function* () {
      const hash = createHash("sha256").update(JSON.stringify(yield* store.get(sessionID)))
      let cursor: number | undefined
      do {
        const page = yield* store.messages({ sessionID, limit: 100, cursor })
        hash.update(JSON.stringify(page.items))
        cursor = page.cursor
      } while (cursor !== undefined)
      hash.update(JSON.stringify(yield* store.context(sessionID, -1)))
      return hash.digest("hex")
    })
  )
})

/** Prompts come so many milliseconds apart, whether the one before is admitted or not. */
const every = 40
const quietPrompts = 500
/** The inbox of a session is bounded. */
const promptsOfSession = 500

/** Admits prompts without running them until interrupted or done; adds the milliseconds since each one was due. */
const admitting = (times: Array<number>, most: number) =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const fibers: Array<Fiber.Fiber<unknown, unknown>> = []
    const create = sessions.create({ location: { directory: tmpdir() } })
    let { id } = yield* create
    const started = performance.now()
    for (let index = 0; index < most; index++) {
      const due = started + index * every
      yield* Effect.sleep(Math.max(0, due - performance.now()))
      if (index > 0 && index % promptsOfSession === 0) id = (yield* create).id
      const admit = sessions.prompt({ sessionID: id, prompt: { text: "And the last one?" }, resume: false })
      fibers.push(yield* Effect.fork(Effect.tap(admit, () => Effect.sync(() => times.push(performance.now() - due)))))
    }
    yield* Fiber.joinAll(fibers)
  })

export interface Latency {
  readonly prompts: number
  readonly p50: number
  readonly p99: number
  readonly longest: number
}

const latencyOf = (times: ReadonlyArray<number>): Latency => ({
  prompts: times.length,
  p50: quantile(times, 0.5),
  p99: quantile(times, 0.99),
  longest: Math.max(...times)
})

const contentBytes = Effect.fnUntraced(function* (count: number) {
  const read = yield* ReadSql
  let [plain, stored] = [0, 0]
  for (const id of idsOf(count)) {
    const blocks = yield* read<{ readonly packed: Uint8Array }>`SELECT c.packed FROM content c
      JOIN event_sequence h ON h.session = c.session WHERE h.session_id = ${id}`
    for (const { packed } of blocks) {
      stored += packed.length
      for (const { data } of Either.getOrThrow(yield* ContentBlock.unpack(packed)).events())
        plain += Buffer.byteLength(data)
    }
  }
  return { plain, stored }
})

/** Prunes beside prompts; returns both latencies and what the prune did. */
const pruning = (filename: string, { target }: Size, pace: Pace) =>
  Effect.gen(function* () {
    yield* admitting([], 50)
    const [quiet, beside]: [Array<number>, Array<number>] = [[], []]
    yield* admitting(quiet, quietPrompts)
    let [steps, removed] = [0, 0]
    const step = () => Effect.sync(() => void (steps += 1))
    const prompts = yield* Effect.fork(admitting(beside, Number.MAX_SAFE_INTEGER))
    const started = yield* Clock.currentTimeMillis
    const outcome = yield* Retention.run(
      { maxSize: target, holders: Retention.noHolders },
      {
        pace,
        progress: step,
        freed: step,
        pruned: ({ bytes }) => Effect.sync(() => void (removed += bytes))
      }
    )
    const seconds = ((yield* Clock.currentTimeMillis) - started) / 1000
    yield* Fiber.interrupt(prompts)
    return { outcome, steps, seconds, removed, quiet: latencyOf(quiet), beside: latencyOf(beside) }
  }).pipe(Effect.provide(Layer.provide(Daybook.layer({ filename }), model)), Effect.scoped)

export interface Result {
  readonly before: number
  readonly after: number
  readonly sessions: number
  readonly events: number
  readonly seconds: number
  readonly steps: number
  readonly quiet: Latency
  readonly beside: Latency
  /** Sessions that show something else than before. */
  readonly changed: number
  /** Payload bytes that were dropped, and those that compression saved. */
  readonly dropped: number
  readonly compressed: number
}

/** Fills a store and prunes it. */
export const measure = (filename: string, size: Size, pace: Pace): Promise<Result> =>
  Effect.gen(function* () {
    const store = Store.layer({ filename })
    const hashes = yield* Effect.provide(Effect.zipRight(fill(size), shown(size.sessions)), store)
    const { beside, outcome, quiet, removed, seconds, steps } = yield* pruning(filename, size, pace)
    const [now, content] = yield* Effect.provide(Effect.all([shown(size.sessions), contentBytes(size.sessions)]), store)
    return {
      before: outcome.before,
      after: statSync(filename).size,
      sessions: outcome.sessions,
      events: outcome.events,
      seconds,
      steps,
      quiet,
      beside,
      changed: now.filter((hash, index) => hash !== hashes[index]).length,
      dropped: removed - content.plain,
      compressed: content.plain - content.stored
    }
  }).pipe(Effect.runPromise)
