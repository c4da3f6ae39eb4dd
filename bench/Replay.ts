/** Measures the decoded replay of one long session against paged `SELECT` + `JSON.parse` on the same file. */
import type { Database } from "better-sqlite3"
import { Effect, Stream } from "effect"
import { SessionID } from "../packages/log/src/domain/Identifiers.ts"
import { idColumn } from "../packages/log/src/log/EventIds.ts"
import { EventLog } from "../packages/log/src/log/EventLog.ts"
import { decodeRow, type EventRow, toEvent } from "../packages/log/src/log/EventRow.ts"
import { median, perSecond } from "./Figures.ts"
import { freshFile, raw, rawSession, removeFile, withOurs } from "./Stores.ts"
import * as Workload from "./Workload.ts"

const sessionID = SessionID.make("ses_long")
const page = 512

const fill = (db: Database, events: number): void => {
  const session = rawSession(db, sessionID)
  const drafts = Workload.events()
  db.transaction(() => {
    session.insert(Workload.created)
    for (let i = 1; i < events; i++) session.insert(drafts.next().value)
    session.finish()
  })()
}

type Row = { readonly seq: number; readonly data: string }

/** Reads pages of rows and parses each payload, without checks: the hand-written baseline. */
const bare = (db: Database): number => {
  const select = db.prepare<[number, number], Row>(
    "SELECT position, session, seq, type, created, data FROM event " +
      "WHERE session = 1 AND seq > ? ORDER BY seq LIMIT ?"
  )
  let count = 0
  for (let after = -1; ;) {
    const events = select.all(after, page).map((row) => ({ ...row, data: JSON.parse(row.data) as unknown }))
    count += events.length
    const last = events.at(-1)
    if (last === undefined || events.length < page) return count
    after = last.seq
  }
}

const tail = (events: number) =>
  Effect.flatMap(EventLog, (log) =>
    log.tail({ sessionID }).pipe(
      Stream.take(events),
      Stream.runFold(0, (count) => count + 1)
    )
  )

const read = Effect.gen(function* () {
  const log = yield* EventLog
  let count = 0
  for (let after = -1; ;) {
    const found = yield* log.read({ sessionID, after })
    count += found.events.length
    after = found.cursor
    if (!found.hasMore) return count
  }
})

/** Decodes rows repeatedly, with or without checksums; microseconds of CPU time per row. */
const decoding = (db: Database) => {
  const rows = db
    .prepare<[], EventRow & Record<string, unknown>>(
      `SELECT e.position, ${idColumn}, e.seq, e.created, e.checksum, e.data, '${sessionID}' AS session_id, t.name AS type
       FROM event e JOIN event_type t ON t.type = e.type WHERE e.session = 1 LIMIT 20000`
    )
    .all()
  const microseconds = (decode: (row: EventRow & Record<string, unknown>) => unknown) => {
    const before = process.cpuUsage()
    for (const row of rows) decode(row)
    const { system, user } = process.cpuUsage(before)
    return (system + user) / rows.length
  }
  const [checked, unchecked]: [Array<number>, Array<number>] = [[], []]
  // Alternating, and the best of each: other work of the machine only adds time.
  for (let pass = 0; pass < 8; pass++) {
    checked.push(microseconds(toEvent))
    unchecked.push(microseconds(decodeRow))
  }
  return { checked: Math.min(...checked), unchecked: Math.min(...unchecked) }
}

export interface Result {
  readonly raw: number
  readonly tail: number
  readonly read: number
  /** `tail` against the bare replay measured beside it. */
  readonly ratio: number
  /** How much checksum comparison adds to `read`, in CPU time of this process. */
  readonly checking: number
}

/** Alternates rounds of all three; medians over the rounds, in events per second. */
export const measure = async (directory: string, events: number, rounds: number): Promise<Result> => {
  const filename = freshFile(directory)
  const db = await raw(filename)
  fill(db, events)
  const timed = (run: Effect.Effect<number, unknown, EventLog>) =>
    Effect.gen(function* () {
      const started = performance.now()
      const count = yield* run
      if (count !== events) yield* Effect.dieMessage(`replayed ${count} of ${events} events`)
      return perSecond(count, started)
    })
  const bareRates: Array<number> = []
  const tailRates: Array<number> = []
  const readRates: Array<number> = []
  const checking: Array<number> = []
  await withOurs(
    filename,
    Effect.gen(function* () {
      for (let round = 0; round < rounds; round++) {
        bareRates.push(yield* timed(Effect.sync(() => bare(db))))
        tailRates.push(yield* timed(tail(events)))
        const before = process.cpuUsage()
        readRates.push(yield* timed(read))
        const { system, user } = process.cpuUsage(before)
        const { checked, unchecked } = decoding(db)
        const added = checked - unchecked
        checking.push((system + user) / events / ((system + user) / events - added))
      }
    })
  )
  db.close()
  removeFile(filename)
  return {
    raw: median(bareRates),
    tail: median(tailRates),
    read: median(readRates),
    checking: median(checking),
    ratio: median(tailRates.map((rate, round) => rate / (bareRates[round] ?? Number.NaN)))
  }
}
