/**
 * Removes from the search index what belongs to removed sessions, without a trace. FTS5 only marks deleted documents; their
 * terms go when segments are merged. Spec: SE-20..SE-22.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Clock, Effect, Option } from "effect"
import { truncate } from "./Checkpoint.ts"
import { type DatabaseError } from "./Database.ts"
import { directly, immediately, retryBusy } from "./Transaction.ts"
import { discard, fileOf, openExisting, searchPath } from "./SearchFile.ts"
import { reasonOf } from "./StorageReason.ts"
import * as UnusedBytes from "./UnusedBytes.ts"

/** Documents that one transaction deletes. */
const stepDocuments = 500

/** Pages that one transaction merges: a few milliseconds. */
const stepPages = 32

/** Between two steps other processes get the index. */
const betweenSteps = Effect.withClock(Effect.sleep("1 millis"), Clock.make())

/** The sessions of the index that the log does not have any more. */
const selectGone = Effect.fnUntraced(function* (log: SqlClient.SqlClient, index: SqlClient.SqlClient) {
  const indexed = yield* index<{ readonly session: number }>`SELECT session FROM session`
  if (indexed.length === 0) return []
  const gone = yield* log<{ readonly session: number }>`SELECT value AS session
    FROM json_each(${JSON.stringify(indexed.map(({ session }) => session))})
    WHERE value NOT IN (SELECT session FROM event_sequence WHERE session_id IS NOT NULL)`
  return gone.map(({ session }) => session)
})

/** Deletes some of a session's documents. Returns whether there may be more. */
const deleteStep = (index: SqlClient.SqlClient, session: number) =>
  retryBusy(
    immediately(index)(
      directly(index, (statements) => {
        const found = statements.all<{ readonly position: number }>(
          `SELECT rowid AS position FROM terms WHERE terms MATCH ? LIMIT ${stepDocuments}`,
          [`tag : "s${session}"`]
        )
        for (const { position } of found) {
          statements.run("DELETE FROM terms WHERE rowid = ?", [position])
          statements.run("DELETE FROM document WHERE position = ?", [position])
        }
        return found.length === stepDocuments
      })
    )
  )

/** Merges some pages of segments. `first` begins a merge of all segments. Returns whether there was work. */
const mergeStep = (index: SqlClient.SqlClient, first: boolean) =>
  retryBusy(
    immediately(index)(
      directly(index, (statements) => {
        const changes = () => statements.all<{ readonly n: number }>("SELECT total_changes() AS n", [])[0]?.n ?? 0
        const before = changes()
        statements.run("INSERT INTO terms (terms, rank) VALUES ('merge', ?)", [first ? -stepPages : stepPages])
        return changes() - before >= 2
      })
    )
  )

/** Deletes the documents of removed sessions, and merges all segments, so that none of their terms is left. */
export const erase = Effect.fnUntraced(function* (log: SqlClient.SqlClient, index: SqlClient.SqlClient) {
  const gone = yield* selectGone(log, index)
  if (gone.length === 0) return
  for (const session of gone) while (yield* deleteStep(index, session)) yield* betweenSteps
  let first = true
  while (yield* mergeStep(index, first)) {
    first = false
    yield* betweenSteps
  }
  // Last: after a kill before this, the next run merges again.
  yield* retryBusy(index`DELETE FROM session WHERE session IN (SELECT value FROM json_each(${JSON.stringify(gone)}))`)
})

/** Truncates the write-ahead log of the index, and overwrites unused bytes. Returns whether no reader prevented it. */
const overwritten = (index: SqlClient.SqlClient, path: string) =>
  Effect.flatMap(truncate(index), (truncated) =>
    truncated ? UnusedBytes.overwriteShared(index, path) : Effect.succeed(false)
  )

/**
 * Erases removed sessions from the index beside the log's database, if there is one. Returns whether nothing is left of
 * them; false if a reader still needs the write-ahead log.
 */
export const eraseBeside = (log: SqlClient.SqlClient): Effect.Effect<boolean, SqlError.SqlError | DatabaseError> =>
  Effect.gen(function* () {
    const file = yield* fileOf(log)
    if (file === "") return true
    const path = searchPath(file)
    const index = yield* openExisting(path)
    if (Option.isNone(index)) return true
    return yield* Effect.catchIf(
      Effect.zipRight(erase(log, index.value), overwritten(index.value, path)),
      // A damaged index is deleted as a whole; the next update builds it again.
      (error) => reasonOf(error) === "corrupt",
      () => Effect.as(discard(path), true)
    )
  }).pipe(Effect.scoped)
