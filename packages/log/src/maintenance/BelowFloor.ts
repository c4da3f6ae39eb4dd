/**
 * Verifies what a pruned session still has of its removed events: the state at its floor, the blocks of kept events and
 * parts, and that every event that a row or such a part refers to is in a block. Spec: RT-17.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Array as Arr, Effect, Either, Option } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import { toEvent } from "../log/EventRow.ts"
import type { SessionBase } from "../projection/SessionBase.ts"
import { selectBase } from "../retention/Prune.ts"
import * as PrunedParts from "../retention/PrunedParts.ts"
import { referencesOf, sumOf } from "../store/ContentBlock.ts"
import * as Content from "../store/Content.ts"

type Sql = SqlClient.SqlClient

/** What was found up to the floor. */
export interface Below {
  readonly problems: ReadonlyArray<string>
  /** The state at the floor; undefined if there is no floor, or if it cannot be read. */
  readonly base: (SessionBase & { readonly position: number }) | undefined
}

/** The place of an event. */
interface Position {
  readonly seq: number
  readonly position: number
}

/** Maximum number of problems per kind. */
const enough = 20

/** Sequence numbers per query of references. */
const range = 0x1_0000

/** The problems of one block's events: wrong places and payloads, and checksums other than those that the rows had. */
const checkEvents = (
  { first, last, sum }: { readonly first: number; readonly last: number; readonly sum: number },
  rows: ReadonlyArray<Content.KeptRow>,
  previous: Position
): ReadonlyArray<string> => {
  const problems: Array<string> = []
  let before = previous
  for (const row of rows) {
    if (row.seq <= before.seq || row.position <= before.position) {
      problems.push(`the kept event ${row.seq} follows event ${before.seq}, or has a position before it`)
    }
    before = row
    const event = toEvent(row)
    if (Option.isSome(event) && Either.isLeft(event.value)) {
      problems.push(`the kept event ${row.seq} (${row.type}) cannot be read: ${event.value.left.details}`)
    }
  }
  if (sumOf(rows.map(({ checksum }) => checksum)) !== sum) {
    problems.push(`the kept events ${first} to ${last} differ from what was written`)
  }
  if (rows[0]?.seq !== first || before.seq !== last) {
    problems.push(`the block of the kept events ${first} to ${last} begins or ends with another event`)
  }
  return problems
}

/** The marks of a removed event: it is in a block; something refers to it. */
const [held, needed] = [1, 2]

/**
 * Reads every block. Marks the events that blocks hold, or that a damaged block may hold, and those that the blocks' parts
 * refer to: a byte per removed event.
 */
const checkBlocks = Effect.fnUntraced(function* (sql: Sql, sessionID: SessionID, floor: number) {
  const problems: Array<string> = []
  const kept = new Uint8Array(floor + 1)
  const mark = (seq: number, as: number) => void (kept[seq] = (kept[seq] ?? 0) | as)
  const blocks = Content.makeBlocks(sql, sessionID)
  let before: Position = { seq: -1, position: 0 }
  while (problems.length < enough) {
    const block = yield* blocks.next({ from: before.seq, through: floor })
    if (block === undefined) break
    const { content, first, last } = block
    const rows = Either.match(content, { onLeft: () => [], onRight: (opened) => opened.rows() })
    const found = Either.match(content, {
      onLeft: (reason) => [`the kept events ${first} to ${last} cannot be read: ${reason}`],
      onRight: ({ sum }) => checkEvents({ first, last, sum }, rows, before)
    })
    problems.push(...found)
    if (found.length > 0) for (let seq = Math.max(0, first); seq <= last; seq++) mark(seq, held)
    for (const { seq } of rows) mark(seq, held)
    const parts = Either.match(content, { onLeft: () => [], onRight: (opened) => opened.parts() })
    for (const part of parts) for (const seq of referencesOf(part)) mark(seq, needed)
    before = { seq: last, position: Arr.last(rows).pipe(Option.getOrElse(() => before)).position }
  }
  // After enough problems the other blocks are not read.
  if (problems.length >= enough) kept.fill(held, before.seq + 1)
  return { problems, kept, last: before }
})

/** The events that must be in a block: rows made in a range refer to them, or the list of decisions has them. */
const selectNeeded = Effect.fnUntraced(function* (sql: Sql, sessionID: SessionID, range: Content.Range) {
  const referenced = yield* Content.selectReferenced(sql, sessionID, range)
  const parts = yield* PrunedParts.select(sql, sessionID, range)
  const decisions = yield* sql<{ readonly seq: number }>`SELECT seq FROM kept_decision
    WHERE session_id = ${sessionID} AND seq > ${range.from} AND seq <= ${range.through}`
  return [...referenced, ...parts.flatMap(referencesOf), ...decisions.map(({ seq }) => seq)]
})

const checkReferences = Effect.fnUntraced(function* (sql: Sql, sessionID: SessionID, kept: Uint8Array) {
  const problems: Array<string> = []
  const floor = kept.length - 1
  for (let from = -1; from < floor; from += range) {
    const referred = yield* selectNeeded(sql, sessionID, { from, through: Math.min(floor, from + range) })
    for (const seq of referred) kept[seq] = (kept[seq] ?? 0) | needed
  }
  for (let seq = 0; seq <= floor && problems.length < enough; seq++) {
    if (kept[seq] === needed) problems.push(`the removed event ${seq}, to which its rows refer, is in no block`)
  }
  return problems
})

/** Compares the state at the floor with the blocks: the event at the floor and that of the epoch are always kept. */
const checkBase = ({ position, row }: NonNullable<Below["base"]>, kept: Uint8Array, last: Position) => {
  const floor = kept.length - 1
  const problems: Array<string> = []
  const isHeld = (seq: number) => ((kept[seq] ?? 0) & held) !== 0
  if (!isHeld(floor)) problems.push(`the event ${floor} at its floor is in no block`)
  else if (last.position !== position) {
    problems.push(`its floor is at position ${position}, the event there at ${last.position}`)
  }
  if (row.epoch !== null && !isHeld(row.epoch)) problems.push(`the event ${row.epoch} of its epoch is in no block`)
  return problems
}

/** Verifies a session up to its floor. */
export const checkBelow = Effect.fnUntraced(function* (
  sql: Sql,
  sessionID: SessionID,
  floor: number
): Effect.fn.Return<Below, SqlError.SqlError> {
  if (floor < 0) return { problems: [], base: undefined }
  const unreadable: Array<string> = []
  const base = yield* Effect.catchTag(selectBase(sql, sessionID, floor), "EventUnreadable", ({ details }) =>
    Effect.sync(() => void unreadable.push(details))
  )
  const { kept, last, problems } = yield* checkBlocks(sql, sessionID, floor)
  const references = yield* checkReferences(sql, sessionID, kept)
  // A damaged block may hold what the state refers to.
  const ofBase = base === undefined || problems.length > 0 ? [] : checkBase(base, kept, last)
  return { problems: [...unreadable, ...problems, ...ofBase, ...references], base }
})
