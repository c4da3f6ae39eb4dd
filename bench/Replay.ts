/** Measures the decoded replay of one long session against paged `SELECT` + `JSON.parse` on the same file. */
import type { Database } from "better-sqlite3"
import { Effect, Stream } from "effect"
import { SessionID } from "../packages/log/src/domain/Identifiers.ts"
import { idColumns, kindHash, rowHash } from "../packages/log/src/log/EventRow.ts"
import { EventLog } from "../packages/log/src/log/EventLog.ts"
import { countSound } from "../packages/log/src/log/Page.ts"
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
type Stored = { readonly id: string; readonly checksum: number; readonly data: string }

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

export const tail = (sessionID: SessionID, events: number) =>
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

/** Microseconds of CPU time that a page's rows cost to verify, a row. */
const verifying = (db: Database): number => {
  const rows = db
    .prepare<[], { readonly type: string; readonly seq: number; readonly created: number } & Stored>(
      `SELECT e.seq, ${idColumns.sqlite}, e.created, e.checksum, e.data, t.name AS type
       FROM event e JOIN event_type t ON t.type = e.type WHERE e.session = 1 LIMIT 20000`
    )
    .all()
  const columns = rows.map(({ checksum, created, data, id, seq, type }) => {
    const kind = kindHash(sessionID, type)
    return { kind, seq, created, id, data, checksum }
  })
  const verifyPage = (from: number): number => {
    const some = columns.slice(from, from + page)
    const hashes = some.map(({ created, id, kind, seq }) => rowHash(kind, seq, created, id))
    return countSound({
      hashes,
      payloads: some.map(({ data }) => data),
      checksums: some.map(({ checksum }) => checksum)
    })
  }
  const passes: Array<number> = []
  // The best of them: other work of the machine only adds time.
  for (let pass = 0; pass < 8; pass++) {
    const before = process.cpuUsage()
    let sound = 0
    for (let from = 0; from < columns.length; from += page) sound += verifyPage(from)
    const { system, user } = process.cpuUsage(before)
    if (sound !== rows.length) throw new Error(`${sound} of ${rows.length} rows have their checksums`)
    passes.push((system + user) / rows.length)
  }
  return Math.min(...passes)
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
        tailRates.push(yield* timed(tail(sessionID, events)))
        const before = process.cpuUsage()
        readRates.push(yield* timed(read))
        const { system, user } = process.cpuUsage(before)
        const perEvent = (system + user) / events
        checking.push(perEvent / (perEvent - verifying(db)))
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
