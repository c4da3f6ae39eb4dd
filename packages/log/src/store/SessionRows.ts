/**
 * Selects sessions, by id, address or title, in pages, and those that were cut off; and a session's todo list, floor,
 * family and prompts. Spec: TO-91..TO-93, TO-105, TO-106 in specs/tools.md, ST-35 in specs/storage.md, RT-13, RT-14 in
 * specs/log.md.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import type * as Statement from "@effect/sql/Statement"
import type { Fragment } from "@effect/sql/Statement"
import { Effect, Either, Option, Schema } from "effect"
import { type Address, addressKey, type House, houseKeys } from "../domain/Address.ts"
import { SessionID } from "../domain/Identifiers.ts"
import { InvalidInput } from "../domain/InvalidInput.ts"
import { defaultAgent, type SessionMetrics, TodoItem, TodoItems, type Usage } from "../domain/Values.ts"
import {
  BranchSummarized,
  CompactionEnded,
  CompactionFailed,
  Renamed,
  Retried,
  StepEnded,
  StepFailed
} from "../events/SessionEvents.ts"
import { type OwnerToken, SessionNotFound } from "../log/EventLog.ts"
import { sessionKey } from "../log/EventRow.ts"
import * as SessionBase from "../projection/SessionBase.ts"
import type { SessionRow } from "../projection/Tables.ts"
import * as Dialect from "../storage/Dialect.ts"
import { clamp } from "../support/Clamp.ts"
import { sessionOf, sessionsOf, tokensOf } from "./Assemble.ts"
import { unpackPrompts } from "./ContentBlock.ts"
import { marksColumns, marksOf, type MarksRow } from "./ContextRows.ts"
import { type EventsBySeq, selectBySeq } from "./Content.ts"
import type { ListOptions } from "./Pages.ts"
import { onPath } from "./PathRows.ts"
import type { SessionSnapshot } from "./SessionStore.ts"
import { reading, readingTogether } from "./Reading.ts"
import { MessageUnreadable } from "./StoreError.ts"
import { spanned } from "../support/Spans.ts"

// Defines a session's todo list and reads it from the last `todo` call that wrote it.

type CallRow = { readonly seq: number; readonly called: number | null; readonly settled: number }

const decode = Schema.decodeUnknownOption(Schema.Struct({ items: TodoItems }))

const dataAt = (events: EventsBySeq, seq: number | null) => {
  const found = seq === null ? undefined : events.get(seq)
  return found !== undefined && Either.isRight(found) ? found.right : undefined
}

/**
 * The list that a call wrote; undefined if it wrote none. Results record whether they changed the list. Calls that only
 * read are skipped, because one that ran beside a change may hold the earlier list. Results of releases up to 0.1 do
 * not record it: there a change has items in its input. Output of another tool with this name is not a list.
 */
const listOf = ({ called, settled }: CallRow, events: EventsBySeq): ReadonlyArray<TodoItem> | undefined => {
  const [call, result] = [dataAt(events, called), dataAt(events, settled)]
  if (result?.type !== "session.next.tool.success") return undefined
  const { structured } = result.data
  const asked = call?.type === "session.next.tool.called" && call.data.input["items"] !== undefined
  if (!(structured["changed"] ?? asked)) return undefined
  return Option.match(decode(structured), { onNone: () => [], onSome: ({ items }) => items })
}

/** Calls per query: usually one of the last few wrote the list. */
const callsPerQuery = 8

/** The current list, on the history path. */
export const selectTodos = (sql: SqlClient.SqlClient, sessionID: SessionID) =>
  Effect.gen(function* () {
    let before = Number.MAX_SAFE_INTEGER
    // A call belongs to the path if its message does (HP-3).
    const seqOfMessage = sql`(SELECT m.seq FROM session_message m WHERE m.id = p.message_id)`
    for (;;) {
      const calls = yield* sql<CallRow>`SELECT seq, called, settled FROM session_part p
        WHERE session = ${sessionKey(sql, sessionID)} AND name = 'todo' AND status = 'completed' AND seq < ${before}
          ${onPath(sql, sessionID, seqOfMessage)}
        ORDER BY seq DESC LIMIT ${callsPerQuery}`
      const seqs = calls.flatMap(({ called, settled }) => (called === null ? [settled] : [called, settled]))
      const events = yield* selectBySeq(sql, sessionID, seqs)
      for (const call of calls) {
        const list = listOf(call, events)
        if (list !== undefined) return list
        before = call.seq
      }
      if (calls.length < callsPerQuery) return []
    }
  })

// Selects the state of sessions at their floors, for readers whose events were pruned.

const pageSize = 100

type Row = {
  readonly session_id: string
  readonly floor: number
  readonly incarnation: number
  readonly base: string | null
}

const select = (sql: SqlClient.SqlClient, rest: Statement.Fragment) =>
  reading(
    sql<Row>`SELECT h.session_id, h.floor, coalesce(h.incarnation, 0) AS incarnation, f.base
      FROM event_sequence h LEFT JOIN session_floor f ON f.session_id = h.session_id WHERE h.seq >= 0 AND ${rest}`
  )

const snapshotOf = ({ base, floor, incarnation, session_id }: Row) => {
  const sessionID = SessionID.make(session_id, { disableValidation: true })
  if (floor < 0) return Either.right({ sessionID, session: undefined, incarnation, floor })
  return SessionBase.decode(base).pipe(
    Either.mapLeft(({ message }) => new MessageUnreadable({ sessionID, messageID: "", details: message })),
    Either.flatMap(({ row }) => sessionOf(row)),
    Either.map((session): SessionSnapshot => ({ sessionID, session, incarnation, floor }))
  )
}

export const snapshot = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.snapshot")(function* (sessionID: SessionID) {
    const [row] = yield* select(sql, sql`h.session_id = ${sessionID}`)
    return row === undefined ? yield* new SessionNotFound({ sessionID }) : yield* snapshotOf(row)
  })

export const snapshots = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.snapshots")(function* (after: string = "") {
    const rows = yield* select(sql, sql`h.session_id > ${after} ORDER BY h.session_id LIMIT ${pageSize}`)
    return yield* Either.all(rows.map(snapshotOf))
  })

// Finds sessions by a part of the title or of a prompt, also of one whose event is in a block.

type Sql = SqlClient.SqlClient

/** LIKE ignores the case of these letters alone. */
const folded = (text: string) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())

type PromptsRow = { readonly rowid: number; readonly session: number; readonly prompts: Uint8Array }

/** Blocks per query. */
const portion = 32

/** The numbers of the sessions that have the text in a prompt of a block. */
const selectInBlocks = Effect.fnUntraced(function* (sql: Sql, search: string) {
  const [wanted, found] = [folded(search), new Set<number>()]
  const addMatch = Effect.fnUntraced(function* (session: number, prompts: Uint8Array) {
    if (found.has(session)) return
    const texts = yield* unpackPrompts(prompts)
    if (Either.isLeft(texts)) yield* Effect.logWarning(`prompts of session ${session} cannot be read: ${texts.left}`)
    else if (texts.right.some((text) => folded(text).includes(wanted))) found.add(session)
  })
  for (let after = 0; ;) {
    const rows = yield* sql<PromptsRow>`SELECT rowid, session, prompts FROM content
      WHERE rowid > ${after} AND prompts IS NOT NULL ORDER BY rowid LIMIT ${portion}`
    const last = rows.at(-1)
    if (last === undefined) return [...found]
    yield* Effect.forEach(rows, ({ prompts, session }) => addMatch(session, prompts), { concurrency: 4, discard: true })
    after = last.rowid
  }
})

/** The condition that a session `s` has the text in its title or in a prompt. It ignores the case of the letters A to Z. */
const matchingPrompts = (sql: Sql, search: string): Effect.Effect<Fragment, SqlError.SqlError> =>
  Effect.map(selectInBlocks(sql, search), (inBlocks) => {
    const like = Dialect.like(sql)
    const pattern = `%${search.replace(/[\\%_]/g, "\\$&")}%`
    return sql`(title ${like} ${pattern} ESCAPE '\\' OR EXISTS (SELECT 1 FROM event_sequence q
      JOIN session_input i ON i.session = q.session JOIN event e ON e.session = i.session AND e.seq = i.admitted_seq
      WHERE q.session_id = s.id AND ${sql.literal(Dialect.textIn(sql, "e.data", "prompt", "text"))} ${like} ${pattern} ESCAPE '\\')
      OR EXISTS (SELECT 1 FROM event_sequence q WHERE q.session_id = s.id
        AND q.session IN (SELECT value FROM ${Dialect.numbers(sql, inBlocks)})))`
  })

// Reads a session's ancestors, and the usage of its tree. A removed id that is used again can form a cycle, so every
// walk is bounded.

/** Maximum number of ancestors of a session. */
export const deepestFamily = 32

export const selectAncestors = (sql: SqlClient.SqlClient, sessionID: SessionID) =>
  sql<SessionRow>`WITH RECURSIVE line (id, depth) AS (
      SELECT parent_id, 1 FROM session WHERE id = ${sessionID} AND parent_id IS NOT NULL
      UNION ALL
      SELECT s.parent_id, line.depth + 1 FROM line JOIN session s ON s.id = line.id
      WHERE s.parent_id IS NOT NULL AND line.depth < ${deepestFamily}
    )
    SELECT s.* FROM line JOIN session s ON s.id = line.id ORDER BY line.depth`

/** The total of the session and its descendants. UNION includes each session once. */
export const selectTreeUsage = (sql: SqlClient.SqlClient, sessionID: SessionID): Effect.Effect<Usage, SqlFailure> =>
  Effect.map(
    sql<Pick<SessionRow, Summed>>`WITH RECURSIVE tree (id) AS (
        SELECT id FROM session WHERE id = ${sessionID}
        UNION
        SELECT s.id FROM tree JOIN session s ON s.parent_id = tree.id
      )
      SELECT sum(cost) AS cost, sum(tokens_input) AS tokens_input, sum(tokens_output) AS tokens_output,
        sum(tokens_reasoning) AS tokens_reasoning, sum(tokens_cache_read) AS tokens_cache_read,
        sum(tokens_cache_write) AS tokens_cache_write
      FROM tree JOIN session s ON s.id = tree.id`,
    ([row]) => ({
      cost: row?.cost ?? 0,
      tokens: {
        input: row?.tokens_input ?? 0,
        output: row?.tokens_output ?? 0,
        reasoning: row?.tokens_reasoning ?? 0,
        cache: { read: row?.tokens_cache_read ?? 0, write: row?.tokens_cache_write ?? 0 }
      }
    })
  )

/** The estimated part of what the session and its descendants spent. Reads every event of the spending types. */
export const selectTreeEstimated = (sql: SqlClient.SqlClient, sessionID: SessionID) =>
  Effect.map(
    sql<{ readonly cost: number | null; readonly tokens: number | null }>`WITH RECURSIVE tree (id) AS (
        SELECT id FROM session WHERE id = ${sessionID}
        UNION
        SELECT s.id FROM tree JOIN session s ON s.parent_id = tree.id
      )
      SELECT sum(cost) AS cost, sum(tokens) AS tokens FROM (
        SELECT ${Dialect.numberIn(sql, "e.data", "cost")} AS cost,
          ${Dialect.numberIn(sql, "e.data", "tokens", "input")} + ${Dialect.numberIn(sql, "e.data", "tokens", "output")} AS tokens
        FROM tree JOIN event_sequence q ON q.session_id = tree.id JOIN event e ON e.session = q.session
          JOIN session s ON s.id = tree.id
        WHERE e.seq > coalesce(CAST(s.forked ->> 'seq' AS BIGINT), -1) AND e.type IN (SELECT type FROM event_type WHERE ${sql.in("name", spending)}) AND e.seq > q.floor
          AND ${Dialect.isTrueIn(sql, "e.data", "estimated")}
        UNION ALL
        SELECT ${Dialect.numberIn(sql, "base", "estimated", "cost")}, ${Dialect.numberIn(sql, "base", "estimated", "tokens")}
        FROM tree JOIN session_floor f ON f.session_id = tree.id WHERE base IS NOT NULL)${Dialect.named(sql, "spent")}`,
    ([row]) => ({ cost: row?.cost ?? 0, tokens: row?.tokens ?? 0 })
  )

/** Stored types of the events that record spending. */
const spending = [StepEnded, StepFailed, BranchSummarized, CompactionEnded, CompactionFailed, Renamed, Retried].map(
  ({ type, version }) => `${type}.${version}`
)

type SqlFailure = Effect.Effect.Error<ReturnType<typeof selectAncestors>>
type Summed =
  "cost" | "tokens_input" | "tokens_output" | "tokens_reasoning" | "tokens_cache_read" | "tokens_cache_write"

/** Maximum number of sessions listed for one title. */
const sameTitle = 10

/** Maximum characters of a search: SQLite accepts patterns of 50,000 bytes. */
const searchLimit = 1_000

const ListCursor = Schema.parseJson(Schema.Tuple(Schema.Int, Schema.String))

export const get = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.get")(function* (sessionID: SessionID) {
    const [row] = yield* reading(sql<SessionRow>`SELECT * FROM session WHERE id = ${sessionID}`)
    return row === undefined ? yield* new SessionNotFound({ sessionID }) : yield* sessionOf(row)
  })

export const metrics = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.metrics")(function* (sessionID: SessionID, now: number) {
    const [row] = yield* reading(
      sql<SessionRow>`SELECT cost, tokens_input, tokens_output, tokens_reasoning, tokens_cache_read, tokens_cache_write,
          turns, tool_calls, duration_ms, activity_state FROM session WHERE id = ${sessionID}`
    )
    if (row === undefined) return yield* new SessionNotFound({ sessionID })
    return {
      cost: row.cost,
      tokens: tokensOf(row),
      turns: row.turns,
      toolCalls: row.tool_calls,
      // While an activity runs, its start is subtracted.
      durationMs: Math.max(0, row.duration_ms + (row.activity_state === "running" ? now : 0))
    } satisfies SessionMetrics
  })

type StandingRow = SessionRow & MarksRow & { readonly steers: number; readonly queued: number }

/** Selects what `Standing` holds. With `owned`, only while this owner holds the session and is not asked to stop. */
const selectStanding = (sql: SqlClient.SqlClient, sessionID: SessionID, owned?: OwnerToken) => {
  const mine =
    owned === undefined
      ? sql``
      : sql` AND q.owner_id = ${owned.ownerID} AND q.owner_epoch = ${owned.epoch} AND q.interrupt_epoch <> q.owner_epoch`
  return sql<StandingRow>`SELECT s.*,
      (SELECT count(*) FROM session_input i
        WHERE i.session = q.session AND i.promoted_seq IS NULL AND i.delivery = 'steer') AS steers,
      (SELECT count(*) FROM session_input i
        WHERE i.session = q.session AND i.promoted_seq IS NULL AND i.delivery = 'queue') AS queued,
      ${marksColumns(sql, sessionID)}
    FROM session s JOIN event_sequence q ON q.session_id = s.id WHERE s.id = ${sessionID}${mine}`
}

export const standing = (sql: SqlClient.SqlClient) =>
  spanned(
    "SessionStore.standing",
    Effect.fnUntraced(function* (sessionID: SessionID, owned?: OwnerToken) {
      const [row] = yield* reading(selectStanding(sql, sessionID, owned))
      if (row === undefined) return yield* new SessionNotFound({ sessionID })
      return { session: yield* sessionOf(row), steers: row.steers, queued: row.queued, marks: marksOf(row) }
    })
  )

export const addressed = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.addressed")(function* (address: Address) {
    const [row] = yield* reading(sql<SessionRow>`SELECT * FROM session WHERE address = ${addressKey(address)}`)
    return row === undefined ? undefined : yield* sessionOf(row)
  })

export const titled = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.titled")(function* (
    title: string,
    { directory }: { readonly directory?: string | undefined } = {}
  ) {
    const rows = yield* reading(
      // The joined text keeps the title's index in use: a folder may have far more sessions than a title.
      sql<SessionRow>`SELECT * FROM session WHERE title = ${title}
        ${directory === undefined ? sql`` : sql`AND directory || '' = ${directory}`}
        ORDER BY time_updated DESC, id DESC LIMIT ${sameTitle}`
    )
    return yield* sessionsOf(rows)
  })

/** The sessions with a running activity, in id order. */
export const interrupted = (sql: SqlClient.SqlClient) =>
  Effect.flatMap(
    reading(sql<SessionRow>`SELECT * FROM session WHERE activity_state = 'running' ORDER BY id`),
    sessionsOf
  )

const inHouse = (sql: SqlClient.SqlClient, house: House) => {
  const [from, before] = houseKeys(house)
  const addressed = sql`(address > ${from} AND address < ${before})`
  return house.scope === "private" && house.kind === "agent"
    ? sql`(${addressed} OR (address IS NULL AND coalesce(agent, ${defaultAgent}) = ${house.name}))`
    : addressed
}

const cursorOf = (cursor: string) =>
  Effect.mapError(
    Schema.decodeUnknown(ListCursor)(Buffer.from(cursor, "base64url").toString()),
    () => new InvalidInput({ field: "cursor", details: "use the cursor of the previous page, unchanged" })
  )

export const list = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.list")(function* ({ cursor, directory, house, limit: asked, search }: ListOptions) {
    const limit = clamp(asked, 50, 500)
    const after = cursor === undefined ? undefined : yield* cursorOf(cursor)
    if (search !== undefined && search.length > searchLimit) {
      return yield* new InvalidInput({ field: "search", details: `use ${searchLimit} characters at most` })
    }
    const rows = yield* readingTogether(sql)(
      Effect.gen(function* () {
        const matching = search === undefined ? [] : [yield* matchingPrompts(sql, search)]
        return yield* sql<SessionRow>`SELECT * FROM session s WHERE ${sql.and([
          "TRUE",
          ...(directory === undefined ? [] : [sql`directory = ${directory}`]),
          ...(house === undefined ? [] : [inHouse(sql, house)]),
          ...(after === undefined ? [] : [sql`(time_updated, id) < (${after[0]}, ${after[1]})`]),
          ...matching
        ])} ORDER BY time_updated DESC, id DESC LIMIT ${limit + 1}`
      })
    )
    const items = yield* sessionsOf(rows.slice(0, limit))
    const last = items.at(-1)
    if (rows.length <= limit || last === undefined) return { items }
    return { items, cursor: Buffer.from(JSON.stringify([last.updatedAt, last.id])).toString("base64url") }
  })
