/**
 * Verifies what a pruned session still has of its removed events: the state at its floor, the blocks of kept events, and
 * that every event that a row refers to is in a block. Spec: RT-17.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Array as Arr, Effect, Either, Option } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import { toEvent } from "../log/EventRow.ts"
import type { SessionBase } from "../projection/SessionBase.ts"
import { selectBase } from "../retention/Prune.ts"
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

/** The problems of one block's events: wrong places, checksums and payloads. */
const checkBlock = ({ first, last, rows }: Content.StoredBlock, previous: Position): ReadonlyArray<string> => {
  const found = Either.all(rows)
  if (Either.isLeft(found)) return [`the kept events ${first} to ${last} cannot be read: ${found.left}`]
  const problems: Array<string> = []
  let before = previous
  for (const row of found.right) {
    if (row.seq <= before.seq || row.position <= before.position) {
      problems.push(`the kept event ${row.seq} follows event ${before.seq}, or has a position before it`)
    }
    before = row
    const event = toEvent(row)
    if (Option.isSome(event) && Either.isLeft(event.value)) {
      problems.push(`the kept event ${row.seq} (${row.type}) cannot be read: ${event.value.left.details}`)
    }
  }
  if (found.right[0]?.seq !== first || before.seq !== last) {
    problems.push(`the block of the kept events ${first} to ${last} begins or ends with another event`)
  }
  return problems
}

/** Reads every block. Marks the events that blocks hold, or that a damaged block may hold: a byte per removed event. */
const checkBlocks = Effect.fnUntraced(function* (sql: Sql, sessionID: SessionID, floor: number) {
  const problems: Array<string> = []
  const kept = new Uint8Array(floor + 1)
  let before: Position = { seq: -1, position: 0 }
  while (problems.length < enough) {
    const block = yield* Content.selectBlockAfter(sql, sessionID, { from: before.seq, through: floor })
    if (block === undefined) break
    const found = checkBlock(block, before)
    problems.push(...found)
    const rows = Arr.getRights(block.rows)
    if (found.length > 0) kept.fill(1, Math.max(0, block.first), block.last + 1)
    else for (const { seq } of rows) kept[seq] = 1
    before = { seq: block.last, position: Arr.last(rows).pipe(Option.getOrElse(() => before)).position }
  }
  // After enough problems the other blocks are not read.
  if (problems.length >= enough) kept.fill(1, before.seq + 1)
  return { problems, kept, last: before }
})

/** The events in a range that must be in a block: rows refer to them, or the list of decisions. */
const selectNeeded = (
  sql: Sql,
  sessionID: SessionID,
  { from, through }: { readonly from: number; readonly through: number }
): Effect.Effect<ReadonlyArray<number>, SqlError.SqlError> =>
  Effect.zipWith(
    Content.selectReferenced(sql, sessionID, { from, through }),
    sql<{ readonly seq: number }>`SELECT seq FROM kept_decision
      WHERE session_id = ${sessionID} AND seq > ${from} AND seq <= ${through}`,
    (referenced, decisions) => Arr.dedupe([...referenced, ...decisions.map(({ seq }) => seq)])
  )

const checkReferences = Effect.fnUntraced(function* (sql: Sql, sessionID: SessionID, kept: Uint8Array) {
  const problems: Array<string> = []
  const floor = kept.length - 1
  for (let from = -1; from < floor && problems.length < enough; from += range) {
    const needed = yield* selectNeeded(sql, sessionID, { from, through: Math.min(floor, from + range) })
    const missing = needed.filter((seq) => kept[seq] === 0).slice(0, enough)
    problems.push(...missing.map((seq) => `the removed event ${seq}, to which its rows refer, is in no block`))
  }
  return problems
})

/** Compares the state at the floor with the blocks: the event at the floor and that of the epoch are always kept. */
const checkBase = ({ position, row }: NonNullable<Below["base"]>, kept: Uint8Array, last: Position) => {
  const floor = kept.length - 1
  const problems: Array<string> = []
  if (kept[floor] === 0) problems.push(`the event ${floor} at its floor is in no block`)
  else if (last.position !== position) {
    problems.push(`its floor is at position ${position}, the event there at ${last.position}`)
  }
  if (row.epoch !== null && kept[row.epoch] === 0) problems.push(`the event ${row.epoch} of its epoch is in no block`)
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
