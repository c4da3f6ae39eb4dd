/** Measures a transcript on disk: events, projections and indexes, after the store is closed. */
import { statSync } from "node:fs"
import Sqlite from "better-sqlite3"
import { Array as Arr, Effect } from "effect"
import { Identifiers } from "../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../packages/log/src/log/EventLog.ts"
import { freshFile, removeFile, withOurs } from "./Stores.ts"
import * as Workload from "./Workload.ts"

const sessions = 20

export interface Result {
  readonly transcriptBytes: number
  readonly diskBytes: number
  readonly ratio: number
  /** The bytes of each table and index, largest first. */
  readonly parts: ReadonlyArray<{ readonly name: string; readonly bytes: number }>
}

/** Where the bytes are, by `dbstat`. */
const partsOf = (filename: string): Result["parts"] => {
  const database = new Sqlite(filename, { readonly: true })
  try {
    return database
      .prepare<[], { readonly name: string; readonly bytes: number }>(
        "SELECT name, sum(pgsize) AS bytes FROM dbstat GROUP BY name ORDER BY bytes DESC"
      )
      .all()
  } finally {
    database.close()
  }
}

/**
 * The transcript is counted as JSON lines of each event's payload once and each prompt once, without envelopes. That is
 * what session files of other agents contain.
 */
export const measure = async (directory: string, turnsPerSession: number): Promise<Result> => {
  const filename = freshFile(directory)
  let transcriptBytes = 0
  await withOurs(
    filename,
    Effect.gen(function* () {
      const log = yield* EventLog
      const identifiers = yield* Identifiers
      for (let session = 0; session < sessions; session++) {
        const sessionID = yield* identifiers.session
        yield* log.append(sessionID, [Workload.created])
        for (let n = 0; n < turnsPerSession; n++) {
          const drafts = Workload.turn()
          for (const { data, type } of drafts) {
            if (type !== "session.next.prompt.promoted") transcriptBytes += JSON.stringify(data).length
          }
          if (Arr.isNonEmptyReadonlyArray(drafts)) yield* log.append(sessionID, drafts)
        }
      }
    })
  )
  const diskBytes = statSync(filename).size
  const parts = partsOf(filename)
  removeFile(filename)
  return { transcriptBytes, diskBytes, ratio: diskBytes / transcriptBytes, parts }
}
