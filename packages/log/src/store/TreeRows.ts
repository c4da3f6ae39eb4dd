/** Selects the tree of a session's messages: pages of it, the leaf, and the history up to a message. Spec: HP-4 to HP-6. */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"
import * as HistoryPath from "../domain/HistoryPath.ts"
import type { TreeNode, TreeOptions, TreePage } from "../domain/HistoryPath.ts"
import { isMessageID, MessageID, type SessionID } from "../domain/Identifiers.ts"
import { type Message, wordsOf } from "../domain/Message.ts"
import { sessionKey } from "../log/EventRow.ts"
import type { MessageRow } from "../projection/Tables.ts"
import * as Dialect from "../storage/Dialect.ts"
import { clamp } from "../support/Clamp.ts"
import { assemble } from "./Assemble.ts"
import { type Move, pathOf, selectMove, selectMoved } from "./PathRows.ts"
import { readingTogether } from "./Reading.ts"
import { withParts } from "./TranscriptRows.ts"

export interface TreePlace {
  readonly id: MessageID
  readonly seq: number
  readonly type: string
  /** The message that it follows; undefined for a root. */
  readonly parentID: MessageID | undefined
  readonly through: HistoryPath.HistoryPath
  readonly before: HistoryPath.HistoryPath
}

export interface Leaf {
  /** The last message of the history; undefined before the first message. */
  readonly messageID: MessageID | undefined
  readonly path: HistoryPath.HistoryPath
}

const messageID = (id: string | null | undefined): MessageID | undefined =>
  id === null || id === undefined ? undefined : MessageID.make(id, { disableValidation: true })

/** The parent of a message: the one before it, unless the leaf moved in between. */
const parentOf = (previous: Pick<MessageRow, "id" | "seq"> | undefined, move: Move | undefined) =>
  messageID(move !== undefined && move.seq > (previous?.seq ?? -1) ? move.message_id : previous?.id)

const selectPrevious = (sql: SqlClient.SqlClient, sessionID: SessionID, before: number) =>
  Effect.map(
    sql<Pick<MessageRow, "id" | "seq">>`SELECT id, seq FROM session_message
      WHERE session = ${sessionKey(sql, sessionID)} AND seq < ${before} ORDER BY seq DESC LIMIT 1`,
    ([row]) => row
  )

type PlaceRow = Pick<MessageRow, "id" | "seq" | "type"> & { readonly next: number }

export const selectPlace = (sql: SqlClient.SqlClient, sessionID: SessionID, id: MessageID) =>
  Effect.gen(function* () {
    const [row] = yield* sql<PlaceRow>`SELECT m.id, m.seq, m.type, ${Dialect.least(sql)}(q.seq + 1,
        coalesce((SELECT min(n.seq) FROM session_message n WHERE n.session = m.session AND n.seq > m.seq), q.seq + 1),
        coalesce((SELECT min(l.seq) FROM session_leaf l WHERE l.session = m.session AND l.seq > m.seq), q.seq + 1)) AS next
      FROM session_message m JOIN event_sequence q ON q.session = m.session
      WHERE m.id = ${id} AND m.session = ${sessionKey(sql, sessionID)}`
    if (row === undefined) return undefined
    const move = yield* selectMove(sql, sessionID, row.seq)
    const path = yield* selectMoved(sql, sessionID, move)
    const previous = yield* selectPrevious(sql, sessionID, row.seq)
    return {
      id,
      seq: row.seq,
      type: row.type,
      parentID: parentOf(previous, move),
      through: HistoryPath.until(path, row.next - 1),
      before: HistoryPath.until(path, row.seq - 1)
    } satisfies TreePlace
  })

export const place = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.place")((sessionID: SessionID, id: MessageID) =>
    readingTogether(sql)(selectPlace(sql, sessionID, id))
  )

export const selectLeaf = (sql: SqlClient.SqlClient, sessionID: SessionID) =>
  Effect.gen(function* () {
    const [session] = yield* sql<{ readonly path: string | null }>`SELECT path FROM session WHERE id = ${sessionID}`
    const last = yield* selectPrevious(sql, sessionID, HistoryPath.open)
    const move = typeof session?.path === "string" ? yield* selectMove(sql, sessionID, HistoryPath.open) : undefined
    return { messageID: parentOf(last, move), path: pathOf(session?.path) } satisfies Leaf
  })

export const leaf = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.leaf")((sessionID: SessionID) => readingTogether(sql)(selectLeaf(sql, sessionID)))

/** Code units of a node's text. */
const textLimit = 200

const words = (message: Message): string =>
  message.type !== "assistant"
    ? wordsOf(message)
    : message.content
        .map((part) => (part.type === "text" ? (part.text ?? "") : part.type === "tool" ? `[${part.name}]` : ""))
        .filter((text) => text !== "")
        .join(" ")

/** The beginning of a text, without half of a surrogate pair. */
const beginning = (text: string): string =>
  text.length <= textLimit ? text : text.slice(0, textLimit).replace(/[\uD800-\uDBFF]$/, "")

type Row = MessageRow & { readonly moved: number | null; readonly target: string | null }

const selectPage = (sql: SqlClient.SqlClient, { cursor = -1, sessionID }: TreeOptions, limit: number) =>
  sql<Row>`SELECT m.*, ${sessionID} AS session_id, l.seq AS moved, l.message_id AS target FROM session_message m
    LEFT JOIN session_leaf l ON l.session = m.session
      AND l.seq = (SELECT max(x.seq) FROM session_leaf x WHERE x.session = m.session AND x.seq < m.seq)
    WHERE m.session = ${sessionKey(sql, sessionID)} AND m.seq > ${cursor} ORDER BY m.seq LIMIT ${limit}`

const selectLabels = (sql: SqlClient.SqlClient, sessionID: SessionID) =>
  Effect.map(
    sql<{ readonly message_id: string; readonly label: string | null }>`SELECT message_id, label FROM session_label
      WHERE session = ${sessionKey(sql, sessionID)} ORDER BY seq`,
    (rows) => new Map(rows.map(({ label, message_id }) => [message_id, label]))
  )

export const tree = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.tree")(function* (options: TreeOptions) {
    const { sessionID } = options
    const limit = clamp(options.limit, 200, 500)
    const { found, labels, leaf, previous, rows, total } = yield* readingTogether(sql)(
      Effect.gen(function* () {
        const found = yield* selectPage(sql, options, limit + 1)
        const [count] = yield* sql<{ readonly total: number }>`SELECT count(*) AS total FROM session_message
          WHERE session = ${sessionKey(sql, sessionID)}`
        return {
          found,
          total: count?.total ?? 0,
          previous: yield* selectPrevious(sql, sessionID, found[0]?.seq ?? 0),
          labels: yield* selectLabels(sql, sessionID),
          leaf: yield* selectLeaf(sql, sessionID),
          rows: yield* withParts(sql, sessionID, found.slice(0, limit), HistoryPath.linear)
        }
      })
    )
    const messages = yield* assemble(sessionID, rows)
    const items = messages.map((message, at): TreeNode => {
      const row = found[at]
      const move = row === undefined || row.moved === null ? undefined : { seq: row.moved, message_id: row.target }
      const parentID = parentOf(at === 0 ? previous : found[at - 1], move)
      const label = labels.get(message.id)
      return {
        id: message.id,
        ...(parentID === undefined ? {} : { parentID }),
        seq: message.seq,
        type: message.type,
        text: beginning(words(message)),
        ...(typeof label === "string" ? { label } : {}),
        createdAt: message.createdAt,
        onPath: HistoryPath.contains(leaf.path, message.seq),
        ...(message.id === leaf.messageID ? { leaf: true } : {})
      }
    })
    const last = items.at(-1)
    return {
      items,
      total,
      ...(leaf.messageID === undefined ? {} : { leafID: leaf.messageID }),
      ...(found.length > limit && last !== undefined ? { cursor: last.seq } : {})
    } satisfies TreePage
  })

const candidates = 10

export const find = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.find")((sessionID: SessionID, reference: string) =>
    readingTogether(sql)(
      Effect.gen(function* () {
        const labels = yield* selectLabels(sql, sessionID)
        const exact = isMessageID(reference)
          ? yield* sql<{ readonly id: string }>`SELECT id FROM session_message
              WHERE id = ${reference} AND session = ${sessionKey(sql, sessionID)}`
          : []
        const labeled = [...labels].flatMap(([id, label]) => (label === reference ? [{ id }] : []))
        const like = Dialect.like(sql)
        const escaped = reference.replace(/[\\%_]/g, "\\$&")
        const parts =
          exact.length + labeled.length > 0
            ? []
            : yield* sql<{ readonly id: string }>`SELECT id FROM session_message
                WHERE session = ${sessionKey(sql, sessionID)}
                AND (id ${like} ${`${escaped}%`} ESCAPE '\\' OR id ${like} ${`%${escaped}`} ESCAPE '\\')
                ORDER BY seq LIMIT ${candidates}`
        const found = exact.length > 0 ? exact : labeled.length > 0 ? labeled : parts
        return found.map(({ id }) => MessageID.make(id, { disableValidation: true }))
      })
    )
  )
