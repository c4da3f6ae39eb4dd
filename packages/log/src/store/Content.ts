/**
 * Keeps events that retention removed from `event` while rows or requests still need their content, and the rows of the
 * parts of messages up to the floor, in blocks (`ContentBlock.ts`). A block is never changed. Events keep position and
 * id, and a block a sum of their checksums. Spec: ST-33..ST-37, PJ-15.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect, Either, Option } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import { EventUnreadable } from "../log/EventLog.ts"
import * as EventRow from "../log/EventRow.ts"
import { checksumOf, ofSession, selectEvents, sessionKey, toEvent } from "../log/EventRow.ts"
import * as Dialect from "../storage/Dialect.ts"
import { type Block, type CheckedEvent, type KeptPart, type OpenBlock, unpack } from "./ContentBlock.ts"

/** Stores blocks of the session, in the transaction of the context. All must be newer than its present blocks. */
export const insertBlocks = (sql: SqlClient.SqlClient, sessionID: SessionID, blocks: ReadonlyArray<Block>) =>
  Effect.forEach(
    blocks,
    ({ first, last, packed, prompts }) =>
      sql`INSERT INTO content (session, first, last, prompts, packed)
        VALUES (${sessionKey(sql, sessionID)}, ${first}, ${last}, ${prompts}, ${packed})`,
    { discard: true }
  )

interface BlockRow {
  readonly identity: string
  readonly first: number
  readonly last: number
  readonly packed: Uint8Array
}

/** A kept event's row as `toEvent` reads it. */
export type KeptRow = Omit<CheckedEvent, "id"> & { readonly id: string; readonly session_id: string }

/** Rows of kept events by sequence number; the reason if an event's block is damaged. */
export type KeptBySeq = ReadonlyMap<number, Either.Either<KeptRow, string>>

interface OpenContent extends Pick<OpenBlock, "parts" | "sum"> {
  readonly rows: (isWanted?: (seq: number) => boolean) => ReadonlyArray<KeptRow>
}

/** A block of a session that was opened; the reason if it is damaged. */
export interface StoredBlock {
  readonly first: number
  readonly last: number
  readonly content: Either.Either<OpenContent, string>
}

const openBlock = (sessionID: SessionID, { first, identity, last, packed }: BlockRow): Effect.Effect<StoredBlock> => {
  const idAt = EventRow.makeEventIds(identity)
  return Effect.map(unpack(packed), (opened) => ({
    first,
    last,
    content: Either.mapBoth(opened, {
      onLeft: (reason) => `the block is damaged: ${reason}`,
      onRight: ({ events, parts, sum }): OpenContent => ({
        sum,
        parts,
        rows: (isWanted) =>
          events(isWanted).map((event) => {
            const row = { ...event, id: event.id ?? idAt(event.created, event.position), session_id: sessionID }
            return { ...row, checksum: checksumOf(row) }
          })
      })
    })
  }))
}

/** Events after `from`, up to `through`. */
export interface Range {
  readonly from: number
  readonly through: number
}

export interface Blocks {
  /** The block whose range has this event; undefined if there is none. */
  readonly holding: (seq: number) => Effect.Effect<StoredBlock | undefined, SqlError.SqlError>
  /** The first block that ends in this range of events. */
  readonly next: (range: Range) => Effect.Effect<StoredBlock | undefined, SqlError.SqlError>
}

/** Open blocks that a read keeps: a page of messages asks one block for its parts, and again for their events. */
const keptOpen = 2

export const makeBlocks = (sql: SqlClient.SqlClient, sessionID: SessionID): Blocks => {
  let open: ReadonlyArray<StoredBlock> = []
  const holding = Effect.fnUntraced(function* (seq: number) {
    const known = open.find(({ first, last }) => first <= seq && seq <= last)
    if (known !== undefined) return known
    const [row] = yield* sql<BlockRow>`SELECT identity, first, last, packed FROM content JOIN log_identity ON one = 1
      WHERE session = ${sessionKey(sql, sessionID)} AND last >= ${seq} AND first <= ${seq} ORDER BY last LIMIT 1`
    if (row === undefined) return undefined
    const block = yield* openBlock(sessionID, row)
    open = [block, ...open].slice(0, keptOpen)
    return block
  })
  return {
    holding,
    next: ({ from, through }) =>
      Effect.flatMap(
        sql<{ readonly last: number }>`SELECT last FROM content
          WHERE session = ${sessionKey(sql, sessionID)} AND last > ${from} AND last <= ${through} ORDER BY last LIMIT 1`,
        ([row]) => (row === undefined ? Effect.succeed(undefined) : holding(row.last))
      )
  }
}

/** Visits the blocks that hold these sequence numbers, in order, each once, with the numbers in its range. */
const forBlocks = Effect.fnUntraced(function* (
  blocks: Blocks,
  seqs: ReadonlyArray<number>,
  visit: (content: StoredBlock["content"], inRange: ReadonlyArray<number>) => void
) {
  let last = -1
  for (const seq of seqs.toSorted((a, b) => a - b)) {
    if (seq <= last) continue
    const block = yield* blocks.holding(seq)
    if (block === undefined) continue
    last = block.last
    visit(
      block.content,
      seqs.filter((each) => each >= seq && each <= block.last)
    )
  }
})

/** Reads these events of a session from its blocks. Events without a block are absent. */
export const selectContent = (blocks: Blocks, seqs: ReadonlyArray<number>) => {
  const found = new Map<number, Either.Either<KeptRow, string>>()
  const add = (content: StoredBlock["content"], inRange: ReadonlyArray<number>) => {
    const wanted = new Set(inRange)
    if (Either.isLeft(content)) wanted.forEach((seq) => found.set(seq, Either.left(content.left)))
    else for (const row of content.right.rows((seq) => wanted.has(seq))) found.set(row.seq, Either.right(row))
  }
  return Effect.as(forBlocks(blocks, seqs, add), found)
}

/** Reads the parts of the messages that these events opened. Those of a damaged block are absent. */
export const selectKeptParts = (blocks: Blocks, messages: ReadonlyArray<number>) => {
  const found: Array<KeptPart> = []
  const add = (content: StoredBlock["content"], inRange: ReadonlyArray<number>) => {
    const wanted = new Set(inRange)
    if (Either.isRight(content)) found.push(...content.right.parts((message) => wanted.has(message)))
  }
  return Effect.as(forBlocks(blocks, messages, add), found)
}

/** The session's last block with events before `before`; undefined if there is none. */
export const selectBlockBefore = (sql: SqlClient.SqlClient, sessionID: SessionID, before: number) =>
  Effect.flatMap(
    sql<BlockRow>`SELECT identity, first, last, packed FROM content JOIN log_identity ON one = 1
      WHERE session = ${sessionKey(sql, sessionID)} AND first < ${before} ORDER BY last DESC LIMIT 1`,
    ([block]) => (block === undefined ? Effect.succeed(undefined) : openBlock(sessionID, block))
  )

/** The events that hold the content of the rows made in a range, without that of parts (`PrunedParts.ts`). */
export const selectReferenced = (sql: SqlClient.SqlClient, sessionID: SessionID, { from, through }: Range) => {
  const made = (column: string) =>
    sql`session = ${sessionKey(sql, sessionID)} AND ${sql(column)} > ${from} AND ${sql(column)} <= ${through}`
  return Effect.map(
    sql<{ readonly seq: number }>`SELECT seq FROM session_message WHERE ${made("seq")} AND type <> 'user'
      UNION SELECT settled FROM session_message WHERE ${made("seq")} AND settled IS NOT NULL
      UNION SELECT admitted_seq FROM session_input WHERE ${made("admitted_seq")}
      UNION SELECT seq FROM session_instruction WHERE ${made("seq")}
      UNION SELECT seq FROM session_leaf WHERE ${made("seq")}`,
    (rows) => rows.map(({ seq }) => seq)
  )
}

// Reads the events that projected rows refer to, in one statement however many, and those that retention removed from
// their blocks.

/** Events of one session by sequence number. Events that are missing, or of an unknown type, are absent. */
export type EventsBySeq = ReadonlyMap<number, Either.Either<SessionEvent, EventUnreadable>>

/** Reads these events of a session, each by its key. */
export const selectBySeq = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  seqs: Iterable<number>,
  blocks = makeBlocks(sql, sessionID)
): Effect.Effect<EventsBySeq, SqlError.SqlError> => {
  const wanted = [...new Set(seqs)]
  if (wanted.length === 0) return Effect.succeed(new Map())
  // One text for any number of keys, so that the driver prepares it once.
  return Effect.flatMap(
    selectEvents(
      sql,
      sql`WHERE ${ofSession(sql, sessionID)} AND e.seq IN (SELECT value FROM ${Dialect.numbers(sql, wanted)})`
    ),
    (rows) => {
      const events = new Map<number, Either.Either<SessionEvent, EventUnreadable>>()
      const add = (row: Readonly<Record<string, unknown>>) => {
        const event = toEvent(row)
        if (Option.isSome(event)) events.set(Number(row["seq"]), event.value)
      }
      rows.forEach(add)
      if (rows.length === wanted.length) return Effect.succeed(events)
      const stored = new Set(rows.map((row) => row["seq"]))
      const missing = wanted.filter((seq) => !stored.has(seq))
      return Effect.map(selectContent(blocks, missing), (kept) => {
        for (const [seq, found] of kept) {
          if (Either.isRight(found)) add(found.right)
          else
            events.set(seq, Either.left(new EventUnreadable({ sessionID, seq, type: "unknown", details: found.left })))
        }
        return events
      })
    }
  )
}
