/** Opens the two sides of each comparison: our log, and bare better-sqlite3 on the same disk and schema. */
import { rmSync } from "node:fs"
import { join } from "node:path"
import type { SqlClient } from "@effect/sql"
import Sqlite from "better-sqlite3"
import { Effect, Layer } from "effect"
import * as Identifiers from "../packages/log/src/domain/Identifiers.ts"
import * as Registry from "../packages/log/src/events/Registry.ts"
import type { Draft } from "../packages/log/src/events/SessionEvents.ts"
import * as EventRow from "../packages/log/src/log/EventRow.ts"
import { checksumOf } from "../packages/log/src/log/EventRow.ts"
import type { EventLog } from "../packages/log/src/log/EventLog.ts"
import * as SqlEventLog from "../packages/log/src/log/SqlEventLog.ts"
import * as Database from "../packages/log/src/storage/Database.ts"

let files = 0

/** An unused file name in the run's folder. */
export const freshFile = (directory: string): string => join(directory, `${files++}.db`)

export const removeFile = (filename: string): void => {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(filename + suffix, { force: true })
}

/** The whole path: schemas, the writer, projections, tails. */
export const ours = (filename: string) =>
  SqlEventLog.layer().pipe(
    Layer.provideMerge(Layer.mergeAll(Database.layer({ filename }), Identifiers.layer)),
    Layer.orDie
  )

export type Ours = EventLog | Identifiers.Identifiers | SqlClient.SqlClient

/** Runs the effect with our log over the file. */
export const withOurs = <A, E>(filename: string, effect: Effect.Effect<A, E, Ours>): Promise<A> =>
  Effect.runPromise(Effect.provide(effect, ours(filename)))

/** Bare better-sqlite3 with our pragmas, on a file with the schema of our migrations. */
export const raw = async (filename: string): Promise<Sqlite.Database> => {
  await withOurs(filename, Effect.void)
  const db = new Sqlite(filename)
  db.pragma("journal_mode = WAL")
  db.pragma("synchronous = FULL")
  db.pragma("foreign_keys = ON")
  db.pragma("cache_size = -16000")
  return db
}

/** Inserts events of one session into the event table only, which is empty. */
export const rawSession = (db: Sqlite.Database, sessionID: string) => {
  const insert = db.prepare(
    "INSERT INTO event (position, session, seq, type, created, checksum, data) VALUES (?, ?, ?, ?, ?, ?, ?)"
  )
  const [identity] = db.prepare<[], string>("SELECT identity FROM log_identity").pluck().all()
  const idAt = EventRow.makeEventIds(identity ?? "")
  const insertName = db.prepare("INSERT INTO event_type (name) VALUES (?)")
  const types = new Map<string, number>()
  const typeOf = (name: string): number => {
    const type = types.get(name) ?? Number(insertName.run(name).lastInsertRowid)
    types.set(name, type)
    return type
  }
  let seq = 0
  const added = db.prepare("INSERT INTO event_sequence (session_id, seq, incarnation) VALUES (?, -1, 1)").run(sessionID)
  const session = Number(added.lastInsertRowid)
  return {
    insert: (draft: Draft): void => {
      const type = storedNames.get(draft.type) ?? draft.type
      const [created, data, position] = [Date.now(), JSON.stringify(draft.data), seq + 1]
      const id = idAt(created, position)
      const checksum = checksumOf({ id, session_id: sessionID, seq, type, created, data })
      insert.run(position, session, seq, typeOf(type), created, checksum, data)
      seq += 1
    },
    /** Turns the rows into a session that our log can read. */
    finish: (): void => {
      db.prepare("UPDATE event_sequence SET seq = ? WHERE session_id = ?").run(seq - 1, sessionID)
    }
  }
}

const storedNames = new Map(Registry.storedNames().map((stored) => [Registry.splitStored(stored).type, stored]))
