/** Reads the texts of indexed documents back from the log, also those that retention moved to blocks. Spec: SE-2, SE-6. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Array as Arr, Effect, Either, Option } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import { selectEvents, toEvent } from "../log/EventRow.ts"
import { selectBySeq } from "../store/EventsBySeq.ts"
import { type Document, documentOf } from "./Document.ts"

/** Where a document's event is. */
export interface Place {
  readonly sessionID: SessionID
  readonly seq: number
  readonly position: number
}

/** The documents by position. Those whose event cannot be read are absent. */
export const readDocuments = (
  log: SqlClient.SqlClient,
  places: ReadonlyArray<Place>
): Effect.Effect<ReadonlyMap<number, Document>, SqlError> =>
  Effect.gen(function* () {
    const positions = JSON.stringify(places.map(({ position }) => position))
    const rows = yield* selectEvents(log, log`WHERE e.position IN (SELECT value FROM json_each(${positions}))`)
    const events = Arr.filterMap(rows, (row) => Option.flatMap(toEvent(row), Either.getRight))
    const stored = new Set(events.map(({ position }) => position))
    const pruned = Arr.groupBy(
      places.filter(({ position }) => !stored.has(position)),
      ({ sessionID }) => sessionID
    )
    const kept = yield* Effect.forEach(Object.values(pruned), (some) =>
      selectBySeq(
        log,
        some[0].sessionID,
        some.map(({ seq }) => seq)
      )
    )
    const blocks = kept.flatMap((each) => Arr.filterMap([...each.values()], Either.getRight))
    const documents = Arr.filterMap([...events, ...blocks], documentOf)
    return new Map(documents.map((document) => [document.position, document]))
  })
