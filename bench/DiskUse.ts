/** Measures a transcript on disk: events, projections and indexes, after the store is closed. */
import { statSync } from "node:fs"
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
  removeFile(filename)
  return { transcriptBytes, diskBytes, ratio: diskBytes / transcriptBytes }
}
