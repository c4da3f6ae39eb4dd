/** Writes small logs for tests, and reads the rows that a database stores for them. */
import { SqlClient } from "@effect/sql"
import { Chunk, Effect, Option, Stream } from "effect"
import { EventID, MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { type Checked, checksumOf } from "../../packages/log/src/log/Checksum.ts"
import { EventLog, type ForeignEvent } from "../../packages/log/src/log/EventLog.ts"
import { unique } from "./Database.ts"

export const session = (name: string = unique()): SessionID => SessionID.make(`ses_${name}`)
export const message = (name: string = unique()): MessageID => MessageID.make(`msg_${name}`)

/** The first event of a session's log. */
export const created = draft("session.created", { location: { directory: "/work" } })

/** An event without special rules, to fill logs. */
export const renamed = (title: string) => draft("session.next.renamed", { title })

export const admitted = (messageID: MessageID, text = "hello", delivery: "steer" | "queue" = "steer") =>
  draft("session.next.prompt.admitted", { messageID, prompt: { text }, delivery })

/** Creates a session with `count` further events in one append. */
export const begin = Effect.fnUntraced(function* (sessionID: SessionID, count = 0) {
  const log = yield* EventLog
  const more = Array.from({ length: count }, (_, index) => renamed(`title ${index + 1}`))
  return yield* log.append(sessionID, [created, ...more])
})

/** Replaces the type and payload of a stored row, and their checksum, as if a later build had written it. */
export const storeAs = Effect.fnUntraced(function* (
  sessionID: SessionID,
  seq: number,
  as: { readonly type: string; readonly data?: string }
) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Checked>`SELECT * FROM event WHERE session_id = ${sessionID} AND seq = ${seq}`
  if (row === undefined) return yield* Effect.dieMessage(`there is no event ${seq}`)
  const { data, type, ...rest } = { ...row, ...as }
  yield* sql`UPDATE event SET type = ${type}, data = ${data}, checksum = ${checksumOf({ ...rest, type, data })}
    WHERE session_id = ${sessionID} AND seq = ${seq}`
})

/** Every stored event of a session after the cursor, page by page. */
export const readAll = Effect.fnUntraced(function* (sessionID: SessionID, after = -1) {
  const log = yield* EventLog
  const pages = Stream.paginateChunkEffect(after, (cursor) =>
    Effect.map(
      log.read({ sessionID, after: cursor }),
      (page) => [Chunk.fromIterable(page.events), page.hasMore ? Option.some(page.cursor) : Option.none()] as const
    )
  )
  return Chunk.toReadonlyArray(yield* Stream.runCollect(pages))
})

const tableNames = [
  "event_sequence",
  "event",
  "session",
  "session_input",
  "session_message",
  "session_instruction",
  "session_part",
  "session_context_epoch"
] as const

/** Every row of the log's tables, to compare before and after. */
export const contents = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* Effect.forEach(tableNames, (table) =>
    sql.unsafe(`SELECT * FROM ${table} ORDER BY 1, 2${table === "session_instruction" ? "" : ", 3, 4"}`)
  )
  return Object.fromEntries(tableNames.map((table, index) => [table, rows[index] ?? []]))
})

/** A session's events in the form in which another log replays them. */
export const foreign = Effect.fnUntraced(function* (sessionID: SessionID) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{
    readonly id: string
    readonly seq: number
    readonly type: string
    readonly created: number
    readonly data: string
  }>`SELECT id, seq, type, created, data FROM event WHERE session_id = ${sessionID} ORDER BY seq`
  return rows.map(({ created, data, id, seq, type }): ForeignEvent => ({
    id: EventID.make(id),
    sessionID,
    seq,
    type,
    created,
    data: JSON.parse(data)
  }))
})
