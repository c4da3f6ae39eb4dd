/**
 * Keeps events that retention removed from `event` while rows or requests still need their content: compressed blocks
 * of lines, a line per event. A block is never changed. Events keep position, id and checksum, so that a read verifies
 * them and a restore puts them back exactly. `EventsBySeq.ts` reads both places. Spec: ST-33..ST-35.
 */
import { promisify } from "node:util"
import { deflate, inflateSync } from "node:zlib"
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Array as Arr, Effect, Either, Option, Schema } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import * as EventIds from "../log/EventIds.ts"
import { sessionKey } from "../log/EventRow.ts"

/** An event's row without its session. */
export const KeptEvent = Schema.Struct({
  seq: Schema.Int,
  position: Schema.Int,
  /** The stored name: type and version. */
  type: Schema.String,
  created: Schema.Int,
  /** Null if the position gives the event its id. */
  id: Schema.NullOr(Schema.String),
  checksum: Schema.Int,
  data: Schema.String
})
export type KeptEvent = typeof KeptEvent.Type

/** Events `first` to `last` of one session; not all of them need to be in it. */
export interface Block {
  readonly first: number
  readonly last: number
  /** The lines, deflated. */
  readonly lines: Uint8Array
  /** The texts of its prompts as a JSON array, for searches; null if it has none. */
  readonly prompts: string | null
}

/** Bytes of lines per block, before compression. A longer line is a block of its own. */
export const blockBytes = 64 * 1024

const lineOf = ({ checksum, created, data, id, position, seq, type }: KeptEvent): string =>
  `${JSON.stringify({ seq, position, type, created, id, checksum, data })}\n`

const Admission = Schema.parseJson(Schema.Struct({ prompt: Schema.Struct({ text: Schema.String }) }))
const decodeAdmission = Schema.decodeUnknownOption(Admission)

const promptOf = ({ data, type }: KeptEvent): Option.Option<string> =>
  /^session\.next\.(prompt\.admitted|prompted)\.\d+$/.test(type)
    ? Option.map(decodeAdmission(data), ({ prompt }) => prompt.text)
    : Option.none()

/** A block before compression. */
export type Plain = Omit<Block, "lines"> & { readonly text: string }

const toPlain = (events: Arr.NonEmptyReadonlyArray<KeptEvent>, text: string): Plain => {
  const prompts = Arr.getSomes(events.map(promptOf))
  return {
    first: Arr.headNonEmpty(events).seq,
    last: Arr.lastNonEmpty(events).seq,
    text,
    prompts: prompts.length === 0 ? null : JSON.stringify(prompts)
  }
}

const deflating = promisify(deflate)

/** Compresses a block off the event loop. */
export const compressed = ({ text, ...block }: Plain): Effect.Effect<Block> =>
  Effect.map(
    Effect.promise(() => deflating(text)),
    (lines) => ({ ...block, lines })
  )

/** Packs events, ordered by sequence number, into blocks. */
export const pack = (events: ReadonlyArray<KeptEvent>): ReadonlyArray<Plain> => {
  const blocks: Array<Plain> = []
  let [held, text, bytes]: [Array<KeptEvent>, string, number] = [[], "", 0]
  const close = () => {
    if (Arr.isNonEmptyReadonlyArray(held)) blocks.push(toPlain(held, text))
    ;[held, text, bytes] = [[], "", 0]
  }
  for (const event of events) {
    const line = lineOf(event)
    const length = Buffer.byteLength(line)
    if (bytes + length > blockBytes) close()
    held.push(event)
    text += line
    bytes += length
  }
  close()
  return blocks
}

const decodeLines = Schema.decodeUnknownEither(Schema.Array(Schema.parseJson(KeptEvent)))

/** The events of a block; the reason if it is damaged. */
export const unpack = (lines: Uint8Array): Either.Either<ReadonlyArray<KeptEvent>, string> =>
  Either.try({
    try: () => inflateSync(lines).toString().split("\n").slice(0, -1),
    catch: (cause) => (cause instanceof Error ? cause.message : String(cause))
  }).pipe(Either.flatMap((texts) => Either.mapLeft(decodeLines(texts), ({ message }) => message)))

/** Stores blocks of the session, in the transaction of the context. All must be newer than its present blocks. */
export const insertBlocks = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  blocks: ReadonlyArray<Block>
): Effect.Effect<void, SqlError.SqlError> =>
  Effect.forEach(
    blocks,
    ({ first, last, lines, prompts }) =>
      sql`INSERT INTO content (session, first, last, lines, prompts)
        VALUES (${sessionKey(sql, sessionID)}, ${first}, ${last}, ${lines}, ${prompts})`,
    { discard: true }
  )

interface BlockRow {
  readonly identity: string
  readonly last: number
  readonly lines: Uint8Array
}

/** A kept event's row as `toEvent` reads it. */
export type KeptRow = Omit<KeptEvent, "id"> & { readonly id: string; readonly session_id: string }

/** Rows of kept events by sequence number; the reason if an event's block is damaged. */
export type KeptBySeq = ReadonlyMap<number, Either.Either<KeptRow, string>>

/** The rows of a block, or one reason if it is damaged. */
const rowsIn = (block: BlockRow, sessionID: SessionID): ReadonlyArray<Either.Either<KeptRow, string>> => {
  const idAt = EventIds.make(block.identity)
  return Either.match(unpack(block.lines), {
    onLeft: (reason) => [Either.left(`the block is damaged: ${reason}`)],
    onRight: (events) =>
      events.map((event) =>
        Either.right({ ...event, id: event.id ?? idAt(event.created, event.position), session_id: sessionID })
      )
  })
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
      const [block] = yield* sql<BlockRow>`SELECT identity, last, lines FROM content JOIN log_identity ON one = 1
        WHERE session = ${sessionKey(sql, sessionID)} AND last >= ${seq} AND first <= ${seq} ORDER BY last LIMIT 1`
      if (block === undefined) continue
      last = block.last
      const wanted = new Set(seqs.filter((each) => each >= seq && each <= block.last))
      for (const row of rowsIn(block, sessionID)) {
        if (Either.isLeft(row)) wanted.forEach((each) => found.set(each, row))
        else if (wanted.has(row.right.seq)) found.set(row.right.seq, row)
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
  Effect.map(
    sql<BlockRow>`SELECT identity, last, lines FROM content JOIN log_identity ON one = 1
      WHERE session = ${sessionKey(sql, sessionID)} AND first < ${before} ORDER BY last DESC LIMIT 1`,
    ([block]) =>
      block === undefined ? [] : rowsIn(block, sessionID).filter((row) => Either.isLeft(row) || row.right.seq < before)
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
  Effect.map(
    sql<
      BlockRow & { readonly first: number }
    >`SELECT identity, first, last, lines FROM content JOIN log_identity ON one = 1
      WHERE session = ${sessionKey(sql, sessionID)} AND last > ${from} AND last <= ${through} ORDER BY last LIMIT 1`,
    ([block]) => block && { first: block.first, last: block.last, rows: rowsIn(block, sessionID) }
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
