/** Measures opening a store and reading a session's first page, which must not depend on the store's size. */
import Sqlite from "better-sqlite3"
import { Effect } from "effect"
import { SessionID } from "../packages/log/src/domain/Identifiers.ts"
import * as EventRow from "../packages/log/src/log/EventRow.ts"
import { checksumOf } from "../packages/log/src/log/EventRow.ts"
import { EventLog } from "../packages/log/src/log/EventLog.ts"
import { median } from "./Figures.ts"
import { freshFile, removeFile, withOurs } from "./Stores.ts"

const eventsPerSession = 1000

interface Row {
  readonly position: number
  readonly seq: number
  readonly created: number
  readonly data: string
}

/** Gives the events of the first session their checksums: only they are read. */
const sealFirst = (db: Sqlite.Database): void => {
  const idAt = EventRow.makeEventIds(db.prepare<[], string>("SELECT identity FROM log_identity").pluck().get() ?? "")
  const seal = db.prepare("UPDATE event SET checksum = ? WHERE position = ?")
  const rows = db.prepare<[], Row>("SELECT position, seq, created, data FROM event WHERE session = 1").all()
  for (const { created, data, position, seq } of rows) {
    const type = "session.next.renamed.1"
    seal.run(
      checksumOf({ id: idAt(created, position), session_id: "ses_0000000000", seq, type, created, data }),
      position
    )
  }
}

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
    sealFirst(db)
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
