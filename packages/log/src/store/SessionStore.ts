/**
 * Reads sessions, messages and inputs from the projected tables, over the reading connection. Writes nothing. Every
 * list is read in pages by key, whatever the size of the store. Spec: PJ-5..PJ-7.
 */
import type * as SqlError from "@effect/sql/SqlError"
import { Array as Arr, Context, Effect, Either, Layer, Schema } from "effect"
import { type Address, addressKey, type House, houseKeys } from "../domain/Address.ts"
import { MessageID, type SessionID } from "../domain/Identifiers.ts"
import { InvalidInput } from "../domain/InvalidInput.ts"
import type { AssistantMessage, Input, Message, Session } from "../domain/Message.ts"
import type { TodoItem } from "../domain/Todo.ts"
import { defaultAgent, type Delivery, type Location } from "../domain/Values.ts"
import { type CommitHook, type EventUnreadable, type LogUnavailable, SessionNotFound } from "../log/EventLog.ts"
import { unavailable } from "../log/EventRow.ts"
import type { InputRow, MessageRow, PartRow, SessionRow } from "../projection/Tables.ts"
import { ReadSql, retryBusy, snapshot } from "../storage/Database.ts"
import { type Continued, type Opening, selectContinued } from "./ActivityRows.ts"
import { partOwner, toInput, toMessage, toSession } from "./Assemble.ts"
import { type Estimated, selectAncestors, selectTreeEstimated, selectTreeUsage, type Usage } from "./Family.ts"
import { isAt, isOnlyOne, type LocationLeft, type TitleTaken } from "./SessionChecks.ts"
import type { ListOptions, MessagePage, MessagesOptions, Page } from "./Pages.ts"
import {
  type ContextStart,
  type FramedStep,
  selectCheckpoint,
  selectContextStart,
  selectFramedStep,
  selectKept,
  selectPrompts,
  selectTold
} from "./ShownRows.ts"
import { MessageUnreadable, type StoreError } from "./StoreError.ts"
import { selectTodos } from "./Todos.ts"

/** The read side of one database. */
export class SessionStore extends Context.Tag("@daybook/log/SessionStore")<
  SessionStore,
  {
    readonly get: (sessionID: SessionID) => Effect.Effect<Session, SessionNotFound | StoreError>
    /** The session at this address, if any. */
    readonly addressed: (address: Address) => Effect.Effect<Session | undefined, StoreError>
    /** At most ten sessions with exactly this title, last used first. */
    readonly titled: (
      title: string,
      options?: { readonly directory?: string | undefined }
    ) => Effect.Effect<ReadonlyArray<Session>, StoreError>
    readonly list: (options: ListOptions) => Effect.Effect<Page<Session>, InvalidInput | StoreError>
    readonly interrupted: Effect.Effect<ReadonlyArray<Session>, StoreError>
    readonly message: (sessionID: SessionID, messageID: MessageID) => Effect.Effect<Message | undefined, StoreError>
    /** Whether the id is a projected message of any session. */
    readonly hasMessage: (messageID: MessageID) => Effect.Effect<boolean, LogUnavailable>
    readonly messages: (options: MessagesOptions) => Effect.Effect<MessagePage, StoreError>
    /** The input with this id, of any session. */
    readonly input: (messageID: MessageID) => Effect.Effect<Input | undefined, StoreError>
    /** The oldest `limit` waiting inputs, in admission order, admitted at or before `through`. */
    readonly waiting: (
      sessionID: SessionID,
      options: { readonly limit: number; readonly delivery?: Delivery; readonly through?: number }
    ) => Effect.Effect<ReadonlyArray<Input>, StoreError>
    /** The work that an activity with this opening continues, before its own first prompts join (RQ-45). */
    readonly continued: (
      sessionID: SessionID,
      opening: Opening
    ) => Effect.Effect<Continued, EventUnreadable | StoreError>
    /** Whether a drain has work: a waiting input or a requested compaction. */
    readonly hasWork: (sessionID: SessionID) => Effect.Effect<boolean, LogUnavailable>
    /** Sessions with waiting inputs, in id order. */
    readonly withWaiting: Effect.Effect<ReadonlyArray<Session>, StoreError>
    readonly waitingCount: (sessionID: SessionID) => Effect.Effect<number, LogUnavailable>
    /** The messages and parts that the model is shown, as rows to continue folding from, and their cursor. */
    readonly contextRows: (sessionID: SessionID, baselineSeq: number) => Effect.Effect<ContextRows, LogUnavailable>
    /**
     * What the model was shown just before an event, as rows to fold the events from `from` on: the state when the last
     * checkpoint before the event was made, and the inputs promoted since. The cost depends on what was shown, not on
     * where the event is.
     */
    readonly contextAt: (
      sessionID: SessionID,
      at: { readonly baselineSeq: number; readonly before: number }
    ) => Effect.Effect<ContextStart, LogUnavailable>
    /** The last step at or before an event, with its request's frame; undefined if there was none. */
    readonly stepAt: (
      sessionID: SessionID,
      at: number
    ) => Effect.Effect<(FramedStep & { readonly message: AssistantMessage }) | undefined, EventUnreadable | StoreError>
    /** The messages that the model is shown. */
    readonly context: (sessionID: SessionID, baselineSeq: number) => Effect.Effect<ReadonlyArray<Message>, StoreError>
    /** Tool calls that never settled because their process died (TU-2). */
    readonly unsettledTools: (sessionID: SessionID) => Effect.Effect<ReadonlyArray<UnsettledTool>, StoreError>
    /** Refuses an append unless its session is at the Location. */
    readonly isAt: (location: Location) => CommitHook<LocationLeft>
    /** Refuses an append if a session other than its own has the title. */
    readonly isOnlyOne: (title: string) => CommitHook<TitleTaken>
    /** The ancestors, from the parent to the root. */
    readonly ancestors: (sessionID: SessionID) => Effect.Effect<ReadonlyArray<Session>, StoreError>
    /** The root of the session's tree; the session itself if it has no parent. */
    readonly rootOf: (sessionID: SessionID) => Effect.Effect<SessionID, StoreError>
    /** What the session and its descendants spent. */
    readonly treeUsage: (sessionID: SessionID) => Effect.Effect<Usage, LogUnavailable>
    /** The estimated part of `treeUsage`. Reads all steps: for people, never during a turn. */
    readonly treeEstimated: (sessionID: SessionID) => Effect.Effect<Estimated, LogUnavailable>
    /** The session's todo list. */
    readonly todos: (sessionID: SessionID) => Effect.Effect<ReadonlyArray<TodoItem>, LogUnavailable>
  }
>() {}

/** The rows that the model is shown. */
export interface ContextRows {
  readonly cursor: number
  /** The session's incarnation: a session removed and created again has another one. */
  readonly incarnation: number
  readonly messages: ReadonlyArray<MessageRow>
  readonly parts: ReadonlyArray<PartRow>
  readonly inputs: ReadonlyArray<InputRow>
}

/** A call whose process died before the call ended. */
export interface UnsettledTool {
  readonly messageID: MessageID
  readonly callID: string
  readonly called: boolean
  readonly executed: boolean
  readonly metadata: Readonly<Record<string, unknown>> | undefined
}

/** Clamps a requested number of rows to a valid limit. */
export const pageLimit = (limit: number | undefined, fallback: number, most: number): number =>
  limit === undefined || Number.isNaN(limit) ? fallback : Math.max(1, Math.min(Math.trunc(limit), most))

/** Maximum number of sessions listed for one title. */
const sameTitle = 10

/** Maximum characters of a search: SQLite accepts patterns of 50,000 bytes. */
const searchLimit = 1_000

const ListCursor = Schema.parseJson(Schema.Tuple(Schema.Int, Schema.String))

const readable = <A>(sessionID: string, messageID: string, decoded: Either.Either<A, string>) =>
  Either.mapLeft(decoded, (details) => new MessageUnreadable({ sessionID, messageID, details }))

/** Builds one message from its row, parts and prompt. */
export const assembleOne = (
  sessionID: string,
  row: MessageRow,
  parts: ReadonlyArray<PartRow>,
  prompt: string | null
): Either.Either<Message, MessageUnreadable> => readable(sessionID, row.id, toMessage(row, parts, prompt))

/** Builds messages from their rows, parts and prompts. */
export const assemble = (
  sessionID: string,
  messages: ReadonlyArray<MessageRow>,
  parts: ReadonlyArray<PartRow>,
  inputs: ReadonlyArray<InputRow>
): Either.Either<ReadonlyArray<Message>, MessageUnreadable> => {
  const byMessage = Arr.groupBy(parts, (part) => part.message_id)
  const prompts = new Map(inputs.map((input) => [input.id, input.prompt]))
  return Either.all(
    messages.map((row) => assembleOne(sessionID, row, byMessage[partOwner(row)] ?? [], prompts.get(row.id) ?? null))
  )
}

const make = Effect.gen(function* () {
  const sql = yield* ReadSql

  const run = <A>(effect: Effect.Effect<A, SqlError.SqlError>): Effect.Effect<A, LogUnavailable> =>
    Effect.mapError(retryBusy(effect), unavailable("read"))

  const get = Effect.fn("SessionStore.get")(function* (sessionID: SessionID) {
    const [row] = yield* run(sql<SessionRow>`SELECT * FROM session WHERE id = ${sessionID}`)
    if (row === undefined) return yield* new SessionNotFound({ sessionID })
    return yield* readable(sessionID, "", toSession(row))
  })

  const inHouse = (house: House) => {
    const [from, before] = houseKeys(house)
    const addressed = sql`(address > ${from} AND address < ${before})`
    return house.scope === "private" && house.kind === "agent"
      ? sql`(${addressed} OR (address IS NULL AND coalesce(agent, ${defaultAgent}) = ${house.name}))`
      : addressed
  }

  const list = Effect.fn("SessionStore.list")(function* (options: ListOptions) {
    const limit = pageLimit(options.limit, 50, 500)
    const after =
      options.cursor === undefined
        ? undefined
        : yield* Effect.mapError(
            Schema.decodeUnknown(ListCursor)(Buffer.from(options.cursor, "base64url").toString()),
            () => new InvalidInput({ field: "cursor", details: "use the cursor of the previous page, unchanged" })
          )
    if (options.search !== undefined && options.search.length > searchLimit) {
      return yield* new InvalidInput({ field: "search", details: `use ${searchLimit} characters at most` })
    }
    const search = options.search === undefined ? undefined : `%${options.search.replace(/[\\%_]/g, "\\$&")}%`
    const rows = yield* run(
      sql<SessionRow>`SELECT * FROM session s WHERE ${sql.and([
        "TRUE",
        ...(options.directory === undefined ? [] : [sql`directory = ${options.directory}`]),
        ...(options.house === undefined ? [] : [inHouse(options.house)]),
        ...(after === undefined ? [] : [sql`(time_updated, id) < (${after[0]}, ${after[1]})`]),
        ...(search === undefined
          ? []
          : [
              sql`(title LIKE ${search} ESCAPE '\\' OR EXISTS (SELECT 1 FROM session_input i
                WHERE i.session_id = s.id AND json_extract(i.prompt, '$.text') LIKE ${search} ESCAPE '\\'))`
            ])
      ])} ORDER BY time_updated DESC, id DESC LIMIT ${limit + 1}`
    )
    const items = yield* Either.all(rows.slice(0, limit).map((row) => readable(row.id, "", toSession(row))))
    const last = items.at(-1)
    if (rows.length <= limit || last === undefined) return { items }
    return { items, cursor: Buffer.from(JSON.stringify([last.updatedAt, last.id])).toString("base64url") }
  })

  /** The parts of these messages. A part's sequence number is always greater than its message's. */
  const partsOf = (sessionID: SessionID, messages: ReadonlyArray<MessageRow>) =>
    Effect.map(
      Effect.forEach(
        chunksOf(messages.filter(({ type }) => type === "assistant" || type === "shell").map(partOwner)),
        (ids) =>
          sql<PartRow>`SELECT * FROM session_part
          WHERE session_id = ${sessionID} AND message_id IN ${sql.in(ids)} ORDER BY seq`
      ),
      (pages) => pages.flat()
    )

  const withParts = (sessionID: SessionID, rows: ReadonlyArray<MessageRow>) =>
    Effect.gen(function* () {
      const parts = yield* partsOf(sessionID, rows)
      const prompted = rows.filter(({ type }) => type === "user").map(({ seq }) => seq)
      const inputs =
        prompted.length === 0 ? [] : yield* selectPrompts(sql, sessionID, least(prompted), greatest(prompted))
      return { parts, inputs }
    })

  /** Runs several statements in one snapshot. */
  const consistent = <A>(effect: Effect.Effect<A, SqlError.SqlError>) => run(snapshot(sql)(effect))

  const messages = Effect.fn("SessionStore.messages")(function* (options: MessagesOptions) {
    const { cursor, order = "asc", sessionID } = options
    const limit = pageLimit(options.limit, 50, 500)
    const { inputs, parts, rows, total } = yield* consistent(
      Effect.gen(function* () {
        const found =
          order === "asc"
            ? yield* sql<MessageRow>`SELECT * FROM session_message
                WHERE session_id = ${sessionID} AND seq > ${cursor ?? -1} ORDER BY seq LIMIT ${limit + 1}`
            : yield* sql<MessageRow>`SELECT * FROM session_message
                WHERE session_id = ${sessionID} AND seq < ${cursor ?? Number.MAX_SAFE_INTEGER}
                ORDER BY seq DESC LIMIT ${limit + 1}`
        const [count] = yield* sql<{ readonly total: number }>`
          SELECT count(*) AS total FROM session_message WHERE session_id = ${sessionID}`
        return { rows: found, total: count?.total ?? 0, ...(yield* withParts(sessionID, found.slice(0, limit))) }
      })
    )
    const items = yield* assemble(sessionID, rows.slice(0, limit), parts, inputs)
    const last = items.at(-1)
    return rows.length > limit && last !== undefined ? { items, total, cursor: last.seq } : { items, total }
  })

  const contextRows = Effect.fn("SessionStore.contextRows")(function* (sessionID: SessionID, baselineSeq: number) {
    return yield* consistent(
      Effect.gen(function* () {
        const [head] = yield* sql<{ readonly seq: number; readonly incarnation: number | null }>`
          SELECT seq, incarnation FROM event_sequence WHERE session_id = ${sessionID}`
        const boundary = yield* selectCheckpoint(sql, sessionID, Number.MAX_SAFE_INTEGER)
        const from = boundary?.seq ?? 0
        const earlier = yield* selectTold(sql, sessionID, baselineSeq, from)
        const kept = yield* selectKept(sql, sessionID, boundary)
        const shown = yield* sql<MessageRow>`SELECT * FROM session_message
          WHERE session_id = ${sessionID} AND seq >= ${from} ORDER BY seq`
        const checkpoint = shown.slice(0, boundary === undefined ? 0 : 1)
        const since = shown.slice(checkpoint.length).filter(({ seq, type }) => type !== "system" || seq > baselineSeq)
        const rows = [...earlier, ...checkpoint, ...kept, ...since]
        const { inputs, parts } = yield* withParts(sessionID, rows)
        // Waiting inputs too: later events that promote them are folded over these rows.
        const waiting = yield* sql<InputRow>`SELECT * FROM session_input
          WHERE session_id = ${sessionID} AND promoted_seq IS NULL`
        return {
          cursor: head?.seq ?? -1,
          incarnation: head?.incarnation ?? 0,
          messages: rows,
          parts,
          inputs: [...inputs, ...waiting]
        }
      })
    )
  })

  const contextAt = Effect.fn("SessionStore.contextAt")(function* (
    sessionID: SessionID,
    at: { readonly baselineSeq: number; readonly before: number }
  ) {
    return yield* consistent(selectContextStart(sql, sessionID, at))
  })

  const stepAt = Effect.fn("SessionStore.stepAt")(function* (sessionID: SessionID, at: number) {
    const found = yield* retryBusy(snapshot(sql)(selectFramedStep(sql, sessionID, at))).pipe(
      Effect.catchTag("SqlError", (error) => unavailable("read")(error))
    )
    if (found === undefined) return undefined
    const message = yield* assembleOne(sessionID, found.row, [], null)
    return message.type === "assistant" ? { ...found, message } : undefined
  })

  const ancestors = Effect.fn("SessionStore.ancestors")(function* (sessionID: SessionID) {
    const rows = yield* run(selectAncestors(sql, sessionID))
    return yield* Either.all(rows.map((row) => readable(row.id, "", toSession(row))))
  })

  const inputRow = (row: InputRow) => readable(row.session_id, row.id, toInput(row))

  return SessionStore.of({
    isAt,
    isOnlyOne,
    ancestors,
    rootOf: (sessionID) => Effect.map(ancestors(sessionID), (line) => line.at(-1)?.id ?? sessionID),
    treeUsage: (sessionID) => run(selectTreeUsage(sql, sessionID)),
    treeEstimated: (sessionID) => run(selectTreeEstimated(sql, sessionID)),
    todos: (sessionID) => run(selectTodos(sql, sessionID)),
    get,
    addressed: Effect.fn("SessionStore.addressed")(function* (address) {
      const [row] = yield* run(sql<SessionRow>`SELECT * FROM session WHERE address = ${addressKey(address)}`)
      return row === undefined ? undefined : yield* readable(row.id, "", toSession(row))
    }),
    titled: Effect.fn("SessionStore.titled")(function* (title, { directory } = {}) {
      const rows = yield* run(
        // The plus keeps the title's index in use: a folder may have far more sessions than a title.
        sql<SessionRow>`SELECT * FROM session WHERE title = ${title}
          ${directory === undefined ? sql`` : sql`AND +directory = ${directory}`}
          ORDER BY time_updated DESC, id DESC LIMIT ${sameTitle}`
      )
      return yield* Either.all(rows.map((row) => readable(row.id, "", toSession(row))))
    }),
    list,
    interrupted: run(sql<SessionRow>`SELECT * FROM session WHERE activity_state = 'running' ORDER BY id`).pipe(
      Effect.flatMap((rows) => Either.all(rows.map((row) => readable(row.id, "", toSession(row)))))
    ),
    message: Effect.fn("SessionStore.message")(function* (sessionID, messageID) {
      const { inputs, parts, rows } = yield* consistent(
        Effect.gen(function* () {
          const found = yield* sql<MessageRow>`SELECT * FROM session_message
            WHERE id = ${messageID} AND session_id = ${sessionID}`
          return { rows: found, ...(yield* withParts(sessionID, found)) }
        })
      )
      return (yield* assemble(sessionID, rows, parts, inputs))[0]
    }),
    hasMessage: (messageID) =>
      Effect.map(run(sql`SELECT 1 FROM session_message WHERE id = ${messageID}`), (rows) => rows.length > 0),
    messages,
    input: (messageID) =>
      run(sql<InputRow>`SELECT * FROM session_input WHERE id = ${messageID}`).pipe(
        Effect.flatMap(([row]) => (row === undefined ? Effect.succeed(undefined) : inputRow(row)))
      ),
    waiting: (sessionID, { delivery, limit, through = Number.MAX_SAFE_INTEGER }) =>
      run(
        sql<InputRow>`SELECT * FROM session_input WHERE session_id = ${sessionID} AND promoted_seq IS NULL
          AND admitted_seq <= ${through} ${delivery === undefined ? sql`` : sql`AND delivery = ${delivery}`}
          ORDER BY admitted_seq LIMIT ${limit}`
      ).pipe(Effect.flatMap((rows) => Either.all(rows.map(inputRow)))),
    continued: (sessionID, opening) =>
      retryBusy(sql.withTransaction(selectContinued(sql, sessionID, opening))).pipe(
        Effect.catchTags({
          SqlError: (error) => unavailable("read")(error),
          ParseError: ({ message }) => new MessageUnreadable({ sessionID, messageID: "", details: message })
        })
      ),
    hasWork: (sessionID) =>
      Effect.map(
        run(
          sql<{ readonly found: number }>`SELECT EXISTS (SELECT 1 FROM session_input
            WHERE session_id = ${sessionID} AND promoted_seq IS NULL)
            OR EXISTS (SELECT 1 FROM session WHERE id = ${sessionID} AND compaction_requested IS NOT NULL) AS found`
        ),
        ([row]) => row?.found === 1
      ),
    // `admitted_seq` makes SQLite use the index of waiting inputs instead of the index of all inputs.
    withWaiting: run(
      sql<SessionRow>`SELECT * FROM session
        WHERE id IN (SELECT session_id FROM session_input WHERE promoted_seq IS NULL AND admitted_seq >= 0)
        ORDER BY id`
    ).pipe(Effect.flatMap((rows) => Either.all(rows.map((row) => readable(row.id, "", toSession(row)))))),
    waitingCount: (sessionID) =>
      Effect.map(
        run(
          sql<{ readonly total: number }>`SELECT count(*) AS total FROM session_input
            WHERE session_id = ${sessionID} AND promoted_seq IS NULL`
        ),
        ([row]) => row?.total ?? 0
      ),
    contextRows,
    contextAt,
    stepAt,
    context: (sessionID, baselineSeq) =>
      Effect.flatMap(contextRows(sessionID, baselineSeq), (rows) =>
        assemble(sessionID, rows.messages, rows.parts, rows.inputs)
      ),
    unsettledTools: (sessionID) =>
      run(
        sql<PartRow>`SELECT * FROM session_part WHERE session_id = ${sessionID} AND settled IS NULL ORDER BY seq`
      ).pipe(
        Effect.flatMap((rows) =>
          Either.all(rows.filter(({ kind }) => kind === "tool").map((row) => unsettled(sessionID, row)))
        )
      )
  })
})

const Called = Schema.parseJson(
  Schema.Struct({
    provider: Schema.Struct({
      executed: Schema.Boolean,
      metadata: Schema.optional(Schema.Record({ key: Schema.String, value: Schema.Unknown }))
    })
  })
)

const unsettled = (sessionID: string, row: PartRow): Either.Either<UnsettledTool, MessageUnreadable> =>
  Either.all({
    messageID: Schema.decodeUnknownEither(MessageID)(row.message_id),
    called: row.called === null ? Either.right(undefined) : Schema.decodeUnknownEither(Called)(row.called)
  }).pipe(
    Either.mapBoth({
      onLeft: ({ message }) => new MessageUnreadable({ sessionID, messageID: row.message_id, details: message }),
      onRight: ({ called, messageID }) => ({
        messageID,
        callID: row.key,
        called: called !== undefined,
        executed: called?.provider.executed ?? false,
        metadata: called?.provider.metadata
      })
    })
  )

const least = (seqs: ReadonlyArray<number>): number => seqs.reduce((a, b) => Math.min(a, b))
const greatest = (seqs: ReadonlyArray<number>): number => seqs.reduce((a, b) => Math.max(a, b))

/** Limits the bound parameters per statement. */
const chunksOf = <A>(items: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(items.length / 256) }, (_, i) => items.slice(i * 256, (i + 1) * 256))

/** The read side over `ReadSql`. */
export const layer = Layer.effect(SessionStore, make)
