/** Implements the inbox on SQL. Contract: `Inbox.ts`. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Either, Layer, Option, Schema } from "effect"
import { anyHandedOver } from "../domain/HandedOver.ts"
import { SessionID } from "../domain/Identifiers.ts"
import { ImportedLog, type ImportUnfinished, unfinished } from "../domain/Imported.ts"
import { InboxFullError, NotWaiting, PromptConflictError } from "../domain/InboxError.ts"
import type { Input } from "../domain/Message.ts"
import { draft } from "../events/SessionEvents.ts"
import { type AppendError, type CommitHook, EventLog, SessionNotFound } from "../log/EventLog.ts"
import { selectWithEvents, sessionKey, toEvent } from "../log/EventRow.ts"
import { sameJson } from "../log/Replay.ts"
import * as SqlHook from "../log/SqlHook.ts"
import type { InputRow, SessionRow } from "../projection/Tables.ts"
import type { Statements } from "../storage/Connection.ts"
import { ReadSql } from "../storage/Database.ts"
import { isPostgres, numbered } from "../storage/Dialect.ts"
import { atOnce, directly, isFree } from "../storage/Transaction.ts"
import * as Metrics from "../support/Metrics.ts"
import { eventsOf, inputOf, sessionsOf } from "./Assemble.ts"
import { selectBySeq } from "./Content.ts"
import { type Admission, Inbox, type Prospect } from "./Inbox.ts"
import { reading } from "./Reading.ts"
import type { StoreError } from "./StoreError.ts"
import { putNewest } from "../support/Newest.ts"

const isExactRetry = (input: Input, { delivery, prompt, sessionID }: Admission): boolean => {
  const { expansion: _, ...earlier } = input.prompt
  const { expansion: __, ...asked } = prompt
  return (
    input.sessionID === sessionID &&
    input.delivery === delivery &&
    sameJson(earlier, asked) &&
    // The last matching pattern decides, so the order of patterns is part of the prompt.
    sameJson(Object.keys(earlier.tools ?? {}), Object.keys(asked.tools ?? {}))
  )
}

const decodeImported = Schema.decodeUnknownOption(Schema.parseJson(ImportedLog))

/** The log of an import that is not complete. */
const isUnfinished = {
  sqlite: "imported ->> '$.ends[#-1]' IS NOT imported ->> '$.records'",
  postgres: "imported -> 'ends' ->> -1 IS DISTINCT FROM imported ->> 'records' AND imported IS NOT NULL"
}

const roomOf = (unfinished: string): string => `coalesce(
  (SELECT CAST(imported AS TEXT) FROM session WHERE id = event_sequence.session_id AND ${unfinished}),
  (SELECT CAST(count(*) AS TEXT) FROM session_input i
    WHERE i.session = event_sequence.session AND i.promoted_seq IS NULL))`

const rooms = { sqlite: roomOf(isUnfinished.sqlite), postgres: roomOf(isUnfinished.postgres) }

/**
 * How many inputs of a session waited when its head was at a place. Whatever changes the number moves the head, so that it is
 * right while the head is there: an inbox with hundreds of inputs is not counted for each admission.
 */
type WaitingCount = { readonly incarnation: number; readonly seq: number; readonly waiting: number }

const remembered = 256

const makeCounts = () => {
  const counts = new Map<SessionID, WaitingCount>()
  return {
    of: (sessionID: SessionID) => counts.get(sessionID),
    put: (sessionID: SessionID, counted: WaitingCount) => putNewest(counts, sessionID, counted, remembered)
  }
}

/** Matches no head. */
const nowhere: WaitingCount = { incarnation: -1, seq: -1, waiting: 0 }

const roomAlone = `CASE WHEN seq = ? AND incarnation = ? THEN ? ELSE ${rooms.sqlite} END`

/**
 * Refuses an admission that exceeds the limit (IN-12), or to a session whose import is not complete (IM-23). The value is
 * the log of such an import, else the number of waiting inputs. `found` gets the number with those of the append.
 */
const hasRoom = (
  sql: SqlClient.SqlClient,
  limit: number,
  { incarnation, seq, waiting: before }: WaitingCount,
  found: (depth: number) => void
): CommitHook<ImportUnfinished | InboxFullError> =>
  SqlHook.onHead({
    value: isPostgres(sql) ? rooms.postgres : rooms.sqlite,
    alone: { value: roomAlone, parameters: (events) => [seq + events, incarnation, before] },
    refusalOf: (waiting, sessionID, unseen): ImportUnfinished | InboxFullError | undefined => {
      if (typeof waiting === "string" && waiting.startsWith("{")) {
        return unfinished(sessionID, Option.getOrUndefined(decodeImported(waiting)))
      }
      const depth = Number(waiting) + unseen
      if (depth > limit) return new InboxFullError({ sessionID, limit })
      Metrics.inboxDepth.unsafeUpdate(depth, [])
      found(depth)
      return undefined
    }
  })

type ProspectRow = {
  readonly imported: string | null
  readonly seq: number
  readonly incarnation: number
  readonly waiting: number
  readonly taken: number
}

const prospectText = `SELECT s.imported, q.seq, q.incarnation,
    CASE WHEN q.seq = ? AND q.incarnation = ? THEN ?
      ELSE (SELECT count(*) FROM session_input i WHERE i.session = q.session AND i.promoted_seq IS NULL) END AS waiting,
    EXISTS (SELECT 1 FROM session_input WHERE id = ?) OR EXISTS (SELECT 1 FROM session_message WHERE id = ?) AS taken
  FROM event_sequence q JOIN session s ON s.id = q.session_id WHERE q.session_id = ?`

const prospectOf = ({ imported, taken, waiting }: ProspectRow): Prospect => ({
  imported: imported === null ? undefined : Option.getOrUndefined(decodeImported(imported)),
  waiting,
  taken: taken === 1
})

type WaitingRow = {
  readonly input_id: string
  readonly delivery: string
  readonly admitted_seq: number
}

const makeReads = Effect.fnUntraced(function* (counts: ReturnType<typeof makeCounts>) {
  const sql = yield* ReadSql
  const writing = yield* SqlClient.SqlClient

  /** The inputs of rows of one session, with their prompts. */
  const inputsOf = (rows: ReadonlyArray<InputRow>): Effect.Effect<ReadonlyArray<Input>, StoreError> => {
    const [first] = rows
    if (first === undefined) return Effect.succeed([])
    const sessionID = SessionID.make(first.session_id, { disableValidation: true })
    const seqs = eventsOf({ messages: [], parts: [], inputs: rows })
    return Effect.flatMap(reading(selectBySeq(sql, sessionID, seqs)), (events) =>
      Either.all(rows.map((row) => inputOf(row, events)))
    )
  }

  // The writing connection still has in memory the pages that its last commit changed; the reading one reads them again.
  // But a read never waits for a transaction.
  const prospect: (typeof Inbox.Service)["prospect"] = (sessionID, messageID) => {
    const parameters = () => {
      const { incarnation, seq, waiting } = counts.of(sessionID) ?? nowhere
      return [seq, incarnation, waiting, messageID, messageID, sessionID]
    }
    const look = ({ all }: Statements) => all<ProspectRow>(prospectText, parameters()).at(0)
    const found = (row: ProspectRow | undefined) => {
      if (row === undefined) return new SessionNotFound({ sessionID })
      const { imported, incarnation, seq, waiting } = row
      // Of an imported session an admission also reads whether its import is complete.
      if (imported === null) counts.put(sessionID, { incarnation, seq, waiting })
      return Effect.succeed(prospectOf(row))
    }
    if (isPostgres(sql)) {
      const read = Effect.suspend(() => sql.unsafe<ProspectRow>(numbered(prospectText), parameters()))
      return Effect.flatMap(reading(read), ([row]) => found(row))
    }
    return Effect.suspend(() => {
      const now = atOnce(writing, look)
      return Option.isSome(now)
        ? found(now.value)
        : Effect.flatMap(reading(Effect.suspend(() => directly(isFree(writing) ? writing : sql, look))), found)
    })
  }

  const get: (typeof Inbox.Service)["get"] = (messageID) =>
    reading(sql<InputRow>`SELECT i.*, s.session_id FROM session_input i JOIN event_sequence s ON s.session = i.session
        WHERE i.id = ${messageID}`).pipe(
      Effect.flatMap(inputsOf),
      Effect.map(([input]) => input)
    )

  const waiting: (typeof Inbox.Service)["waiting"] = (
    sessionID,
    { delivery, limit, through = Number.MAX_SAFE_INTEGER }
  ) =>
    Effect.flatMap(
      reading(
        selectWithEvents<WaitingRow>(
          sql,
          "i.id AS input_id, i.delivery, i.admitted_seq",
          sql`session_input i LEFT JOIN event e ON e.session = i.session AND e.seq = i.admitted_seq`,
          sql`WHERE i.session = ${sessionKey(sql, sessionID)} AND i.promoted_seq IS NULL
            AND i.admitted_seq <= ${through} ${delivery === undefined ? sql`` : sql`AND i.delivery = ${delivery}`}
            ORDER BY i.admitted_seq LIMIT ${limit}`
        )
      ),
      (rows) => {
        const inputs = rows.map(({ admitted_seq, delivery, input_id }): InputRow => {
          const waits = { promoted_seq: null, withdrawn_seq: null }
          return { id: input_id, session_id: sessionID, delivery, admitted_seq, ...waits }
        })
        // Retention has moved an event to a block.
        if (rows.some(({ data }) => data === null)) return inputsOf(inputs)
        const events = new Map(
          rows.flatMap((row) =>
            Option.match(toEvent(row), { onNone: () => [], onSome: (event) => [[row.admitted_seq, event]] })
          )
        )
        return Either.all(inputs.map((input) => inputOf(input, events)))
      }
    )

  const count: (typeof Inbox.Service)["count"] = (sessionID) =>
    Effect.map(
      reading(
        sql<{ readonly total: number }>`SELECT count(*) AS total FROM session_input
          WHERE session = ${sessionKey(sql, sessionID)} AND promoted_seq IS NULL`
      ),
      ([row]) => row?.total ?? 0
    )

  const hasWork: (typeof Inbox.Service)["hasWork"] = (sessionID) =>
    Effect.map(
      reading(
        sql<{ readonly found: number }>`SELECT EXISTS (SELECT 1 FROM session_input
          WHERE session = ${sessionKey(sql, sessionID)} AND promoted_seq IS NULL)
          OR EXISTS (SELECT 1 FROM session WHERE id = ${sessionID} AND compaction_requested IS NOT NULL)
          OR EXISTS (SELECT 1 FROM event_sequence WHERE session_id = ${sessionID} AND owner_id LIKE ${anyHandedOver}) AS found`
      ),
      ([row]) => row?.found === 1
    )

  // `admitted_seq` makes SQLite use the index of waiting inputs instead of the index of all inputs.
  const sessions = Effect.flatMap(
    reading(
      sql<SessionRow>`SELECT * FROM session
        WHERE id IN (SELECT session_id FROM event_sequence WHERE session IN (
          SELECT session FROM session_input WHERE promoted_seq IS NULL AND admitted_seq >= 0))
        ORDER BY id`
    ),
    sessionsOf
  )

  return { prospect, get, waiting, count, hasWork, sessions }
})

const make = Effect.gen(function* () {
  const sql = yield* ReadSql
  const log = yield* EventLog
  const counts = makeCounts()
  const reads = yield* makeReads(counts)

  const receipt = Effect.fnUntraced(function* (admission: Admission) {
    const { messageID, sessionID } = admission
    const earlier = yield* reads.get(messageID)
    if (earlier !== undefined && isExactRetry(earlier, admission)) return earlier
    const taken =
      earlier !== undefined || (yield* reading(sql`SELECT 1 FROM session_message WHERE id = ${messageID}`)).length > 0
    return taken ? yield* new PromptConflictError({ sessionID, messageID }) : undefined
  })

  const admit: (typeof Inbox.Service)["admit"] = (admission, { limit }) => {
    const { delivery, messageID, prompt, sessionID } = admission
    const admitted = draft("session.next.prompt.admitted", { messageID, prompt, delivery })
    const counted = counts.of(sessionID) ?? nowhere
    let depth = 0
    const commit = hasRoom(sql, limit, counted, (found) => (depth = found))
    return log.append(sessionID, [admitted], { commit }).pipe(
      Effect.map(([{ created, seq }]): Input => {
        // Where other appends of the transaction follow this one, the head has passed this place forever.
        if (counted !== nowhere) counts.put(sessionID, { incarnation: counted.incarnation, seq, waiting: depth })
        return { id: messageID, sessionID, prompt, delivery, admittedSeq: seq, createdAt: created }
      }),
      Effect.catchTag("EventRefused", (refused) =>
        // Another caller admitted the id between the caller's read and the write.
        Effect.flatMap(receipt(admission), (theirs) => (theirs === undefined ? refused : Effect.succeed(theirs)))
      )
    )
  }

  const withdraw: (typeof Inbox.Service)["withdraw"] = (sessionID, messageID) =>
    log.append(sessionID, [draft("session.next.prompt.withdrawn", { messageID })]).pipe(
      Effect.asVoid,
      // The input's row refused: it is promoted, withdrawn or missing. Other refusals pass through.
      Effect.catchTag("EventRefused", (refused): Effect.Effect<never, NotWaiting | AppendError> =>
        refused.table === "session_input" ? new NotWaiting({ sessionID, messageID }) : refused
      )
    )

  return Inbox.of({ ...reads, receipt, admit, withdraw })
})

/** The inbox over the event log and `ReadSql`. */
export const layer = Layer.effect(Inbox, make)
