/** Measures opening a store and reading a session's first page, which must not depend on the store's size. */
import Sqlite from "better-sqlite3"
import { Effect } from "effect"
import { SessionID } from "../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../packages/log/src/log/EventLog.ts"
import { median } from "./Figures.ts"
import { freshFile, removeFile, withOurs } from "./Stores.ts"

const eventsPerSession = 1000

/** Fills the event table with SQL alone: the events' content does not matter here. */
const fill = async (filename: string, events: number): Promise<void> => {
  await withOurs(filename, Effect.void)
  const db = new Sqlite(filename)
  db.pragma("synchronous = OFF")
  const numbers = "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ? - 1)"
  db.transaction(() => {
    db.exec("INSERT INTO event_type (type, name) VALUES (1, 'session.next.renamed.1')")
    db.prepare(`${numbers} INSERT INTO event_sequence (session_id, seq) SELECT printf('ses_%010d', i), ? FROM n`).run(
      events / eventsPerSession,
      eventsPerSession - 1
    )
    db.prepare(
      `${numbers} INSERT INTO event (session, seq, type, created, data, checksum)
        SELECT 1 + i / ${eventsPerSession}, i % ${eventsPerSession}, 1, 0, printf('{"title":"%0200d"}', i), 0 FROM n`
    ).run(events)
  })()
  db.close()
}

const open = async (filename: string): Promise<number> => {
  const started = performance.now()
  const first = Effect.flatMap(EventLog, (log) =>
    Effect.map(log.read({ sessionID: SessionID.make("ses_0000000000"), limit: 10 }), () => performance.now() - started)
  )
  return withOurs(filename, first)
}

export interface Result {
  readonly large: { readonly events: number; readonly ms: number }
  readonly small: { readonly events: number; readonly ms: number }
}

/** Alternates rounds of both; medians over the rounds. */
export const measure = async (directory: string, events: number, rounds: number): Promise<Result> => {
  const [large, small] = [freshFile(directory), freshFile(directory)]
  await fill(large, events)
  await fill(small, 1000)
  const times: { readonly large: Array<number>; readonly small: Array<number> } = { large: [], small: [] }
  for (let round = 0; round < rounds; round++) {
    times.small.push(await open(small))
    times.large.push(await open(large))
  }
  removeFile(large)
  removeFile(small)
  return { large: { events, ms: median(times.large) }, small: { events: 1000, ms: median(times.small) } }
}
