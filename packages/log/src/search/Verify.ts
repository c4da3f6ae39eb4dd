/** Compares the index with the log: reports what is missing, left over or damaged, and changes nothing. Spec: SE-60, SE-61. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import { Array as Arr, Effect, Either, Option } from "effect"
import type { LogUnavailable } from "../log/EventLog.ts"
import { selectEvents, toEvent, unavailable } from "../log/EventRow.ts"
import { type DatabaseError, ReadSql } from "../storage/Database.ts"
import { fileOf, openExisting, searchPath } from "../storage/SearchFile.ts"
import { reasonOf } from "../storage/Transaction.ts"
import { documentOf, storedNames } from "./Document.ts"
import type { Places } from "./Indexing.ts"

/** Documents and events that are compared at once. */
const portion = 512

type Position = { readonly position: number }

const positionsOf = (rows: ReadonlyArray<Position>) => JSON.stringify(rows.map(({ position }) => position))

const damages = (index: SqlClient.SqlClient) =>
  Effect.map(index.unsafe<Record<string, string>>("PRAGMA integrity_check(20)").values, (rows) =>
    rows.map(([line]) => String(line)).filter((line) => line !== "ok")
  )

/** How many documents have no words, or no event in the log: neither stored nor kept by retention. */
const countExtra = Effect.fnUntraced(function* ({ index, log }: Places) {
  let [after, extra] = [-1, 0]
  while (true) {
    const rows = yield* index<Position & { readonly session: number; readonly seq: number; readonly words: number }>`
      SELECT d.position, d.session, d.seq, z.id IS NOT NULL AS words
        FROM document d LEFT JOIN terms_docsize z ON z.id = d.position
        WHERE d.position > ${after} ORDER BY d.position LIMIT ${portion}`
    const last = rows.at(-1)
    if (last === undefined) return extra
    after = last.position
    const places = JSON.stringify(rows.map(({ position, seq, session }) => [position, session, seq]))
    const [known] = yield* log<{ readonly count: number }>`SELECT count(*) AS count FROM json_each(${places}) j
      JOIN event_sequence q ON q.session = j.value ->> 1 AND q.session_id IS NOT NULL
      LEFT JOIN event e ON e.position = j.value ->> 0
      WHERE e.position IS NOT NULL OR j.value ->> 2 <= q.floor`
    extra += rows.length - (known?.count ?? 0) + rows.filter(({ words }) => words === 0).length
  }
})

/** How many events up to the index's position have a text but no document. */
const countMissing = Effect.fnUntraced(function* ({ index, log }: Places) {
  const [state] = yield* index<Position>`SELECT position FROM state WHERE one = 1`
  const end = state?.position ?? 0
  let [after, missing] = [0, 0]
  while (true) {
    const rows = yield* log<Position>`SELECT position FROM event
      WHERE position > ${after} AND position <= ${end} AND type IN (
        SELECT type FROM event_type WHERE name IN (SELECT value FROM json_each(${JSON.stringify(storedNames)})))
      ORDER BY position LIMIT ${portion}`
    const last = rows.at(-1)
    if (last === undefined) return missing
    after = last.position
    const without = yield* index<Position>`SELECT value AS position FROM json_each(${positionsOf(rows)})
      WHERE value NOT IN (SELECT position FROM document)`
    // Events without a text, and unreadable ones, have no document. One at a time: they may be long, and there are few.
    for (const { position } of without) {
      const [row] = yield* selectEvents(log, log`WHERE e.position = ${position}`)
      const event = Option.flatMap(Option.fromNullable(row), toEvent)
      if (Option.isSome(Option.flatMap(Option.flatMap(event, Either.getRight), documentOf))) missing += 1
    }
  }
})

const texts = (count: number) => (count === 1 ? "1 text" : `${count} texts`)

const compare = Effect.fnUntraced(function* (places: Places) {
  const damaged = yield* damages(places.index)
  if (damaged.length > 0) return damaged.map((line) => `the search index is damaged: ${line}`)
  const [extra, missing] = [yield* countExtra(places), yield* countMissing(places)]
  return Arr.getSomes([
    extra === 0 ? Option.none() : Option.some(`the search index has ${texts(extra)} that the log has not`),
    missing === 0 ? Option.none() : Option.some(`the search index misses ${texts(missing)}`)
  ])
})

/** Every problem of the index beside the database, as a sentence; none if there is no index. */
export const verify: Effect.Effect<
  ReadonlyArray<string>,
  LogUnavailable | DatabaseError,
  SqlClient.SqlClient | ReadSql
> = Effect.gen(function* () {
  const log = yield* ReadSql
  const file = yield* fileOf(yield* SqlClient.SqlClient)
  const index = file === "" ? Option.none() : yield* openExisting(searchPath(file))
  return Option.isNone(index) ? [] : yield* compare({ log, index: index.value })
}).pipe(
  Effect.scoped,
  Effect.catchIf(
    (error): error is SqlError.SqlError => error instanceof SqlError.SqlError,
    (error) =>
      reasonOf(error) === "corrupt"
        ? Effect.succeed(["the search index is damaged: a page of it cannot be read"])
        : unavailable("verify the search index")(error)
  )
)
