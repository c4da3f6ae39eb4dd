/**
 * Keeps events that retention removed from `event` while rows or requests still need their content, in blocks
 * (`ContentBlock.ts`). A block is never changed. Events keep position, id and checksum, so that a read verifies them and a
 * restore puts them back exactly. `EventsBySeq.ts` reads both places. Spec: ST-33..ST-35.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect, Either } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import * as EventIds from "../log/EventIds.ts"
import { sessionKey } from "../log/EventRow.ts"
import { type Block, type KeptEvent, unpack } from "./ContentBlock.ts"

/** Stores blocks of the session, in the transaction of the context. All must be newer than its present blocks. */
export const insertBlocks = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  blocks: ReadonlyArray<Block>
): Effect.Effect<void, SqlError.SqlError> =>
  Effect.forEach(
    blocks,
    ({ first, last, packed, prompts }) =>
      sql`INSERT INTO content (session, first, last, packed, prompts)
        VALUES (${sessionKey(sql, sessionID)}, ${first}, ${last}, ${packed}, ${prompts})`,
    { discard: true }
  )

interface BlockRow {
  readonly identity: string
  readonly last: number
  readonly packed: Uint8Array
}

/** A kept event's row as `toEvent` reads it. */
export type KeptRow = Omit<KeptEvent, "id"> & { readonly id: string; readonly session_id: string }

/** Rows of kept events by sequence number; the reason if an event's block is damaged. */
export type KeptBySeq = ReadonlyMap<number, Either.Either<KeptRow, string>>

/** The rows of a block, or those that are wanted; one reason if it is damaged. */
const rowsIn = (
  block: BlockRow,
  sessionID: SessionID,
  isWanted?: (seq: number) => boolean
): Effect.Effect<ReadonlyArray<Either.Either<KeptRow, string>>> => {
  const idAt = EventIds.make(block.identity)
  return Effect.map(
    unpack(block.packed, isWanted),
    Either.match({
      onLeft: (reason) => [Either.left(`the block is damaged: ${reason}`)],
      onRight: (events) =>
        events.map((event) =>
          Either.right({ ...event, id: event.id ?? idAt(event.created, event.position), session_id: sessionID })
        )
    })
  )
}

/** Reads these events of a session from its blocks, each block once. Events without a block are absent. */
export const selectContent = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  seqs: ReadonlyArray<number>
): Effect.Effect<KeptBySeq, SqlError.SqlError> =>
  Effect.gen(function* () {
    const found = new Map<number, Either.Either<KeptRow, string>>()
    let last = -1
    for (const seq of seqs.toSorted((a, b) => a - b)) {
      if (seq <= last) continue
      const [block] = yield* sql<BlockRow>`SELECT identity, last, packed FROM content JOIN log_identity ON one = 1
        WHERE session = ${sessionKey(sql, sessionID)} AND last >= ${seq} AND first <= ${seq} ORDER BY last LIMIT 1`
      if (block === undefined) continue
      last = block.last
      const wanted = new Set(seqs.filter((each) => each >= seq && each <= block.last))
      for (const row of yield* rowsIn(block, sessionID, (each) => wanted.has(each))) {
        if (Either.isLeft(row)) wanted.forEach((each) => found.set(each, row))
        else found.set(row.right.seq, row)
      }
    }
    return found
  })

/** The rows of a session's last block with events before `before`; empty if there is none. */
export const selectBlockBefore = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  before: number
): Effect.Effect<ReadonlyArray<Either.Either<KeptRow, string>>, SqlError.SqlError> =>
  Effect.flatMap(
    sql<BlockRow>`SELECT identity, last, packed FROM content JOIN log_identity ON one = 1
      WHERE session = ${sessionKey(sql, sessionID)} AND first < ${before} ORDER BY last DESC LIMIT 1`,
    ([block]) => (block === undefined ? Effect.succeed([]) : rowsIn(block, sessionID, (seq) => seq < before))
  )

/** One block as stored, and its rows; one reason in place of them if it is damaged. */
export interface StoredBlock {
  readonly first: number
  readonly last: number
  readonly rows: ReadonlyArray<Either.Either<KeptRow, string>>
}

/** The first block of a session that ends after `from`, at or before `through`. */
export const selectBlockAfter = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  { from, through }: { readonly from: number; readonly through: number }
): Effect.Effect<StoredBlock | undefined, SqlError.SqlError> =>
  Effect.flatMap(
    sql<
      BlockRow & { readonly first: number }
    >`SELECT identity, first, last, packed FROM content JOIN log_identity ON one = 1
      WHERE session = ${sessionKey(sql, sessionID)} AND last > ${from} AND last <= ${through} ORDER BY last LIMIT 1`,
    ([block]) =>
      block === undefined
        ? Effect.succeed(undefined)
        : Effect.map(rowsIn(block, sessionID), (rows) => ({ first: block.first, last: block.last, rows }))
  )

/** The events after `from`, up to `through`, that hold the content of the session's rows, in order. */
export const selectReferenced = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  { from, through }: { readonly from: number; readonly through: number }
): Effect.Effect<ReadonlyArray<number>, SqlError.SqlError> =>
  Effect.map(
    sql<{
      readonly seq: number
    }>`WITH part AS (SELECT * FROM session_part WHERE session = ${sessionKey(sql, sessionID)}),
      referred (seq) AS (
        SELECT seq FROM session_message WHERE session = ${sessionKey(sql, sessionID)} AND type <> 'user'
        UNION SELECT settled FROM session_message WHERE session = ${sessionKey(sql, sessionID)}
        UNION SELECT admitted_seq FROM session_input WHERE session = ${sessionKey(sql, sessionID)}
        UNION SELECT seq FROM session_instruction WHERE session = ${sessionKey(sql, sessionID)}
        UNION SELECT seq FROM session_leaf WHERE session = ${sessionKey(sql, sessionID)}
        UNION SELECT opened FROM part UNION SELECT raw FROM part UNION SELECT called FROM part
        UNION SELECT progress FROM part UNION SELECT settled FROM part
      )
      SELECT seq FROM referred WHERE seq > ${from} AND seq <= ${through} ORDER BY seq`,
    (rows) => rows.map(({ seq }) => seq)
  )
