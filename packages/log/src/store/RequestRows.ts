/** Finds by key the rows that the model was shown before an event. Spec: RQ-34 (EP-10, CP-49). */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect, Either } from "effect"
import * as HistoryPath from "../domain/HistoryPath.ts"
import type { SessionID } from "../domain/Identifiers.ts"
import {
  ContextPruned,
  type EventOfType,
  LeafMoved,
  RequestFramed,
  type SessionEvent
} from "../events/SessionEvents.ts"
import { EventUnreadable } from "../log/EventLog.ts"
import { ofSession, selectEvents, sessionKey, toEvents } from "../log/EventRow.ts"
import type { InputRow, MessageRow, PartRow } from "../projection/Tables.ts"
import * as Dialect from "../storage/Dialect.ts"
import { eventsOf, partOwner } from "./Assemble.ts"
import {
  type Blocks,
  type EventsBySeq,
  makeBlocks,
  selectBlockBefore,
  selectBySeq,
  selectKeptParts
} from "./Content.ts"
import { selectMessagesIn, selectPathBefore, within } from "./PathRows.ts"

type Query<A> = Effect.Effect<A, SqlError.SqlError>

export interface Checkpoint {
  readonly seq: number
  /** Prompts from this sequence number on follow it. */
  readonly kept: number | null
  readonly all: number | null
}

/** The last checkpoint of a path before an event. */
export const selectCheckpoint = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  path: HistoryPath.HistoryPath,
  before: number
): Query<Checkpoint | undefined> =>
  Effect.map(
    sql<Checkpoint>`SELECT seq, first_kept AS kept, all_kept AS "all"
      FROM session_message ${Dialect.indexedBy(sql, "session_message_compaction")}
      WHERE session = ${sessionKey(sql, sessionID)} AND type = 'compaction' AND seq < ${before}${within(sql, path)}
      ORDER BY seq DESC LIMIT 1`,
    ([row]) => row
  )

/** System messages after the baseline stay visible across a checkpoint; those inside it do not (EP-10). */
export const selectTold = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  path: HistoryPath.HistoryPath,
  { baselineSeq, checkpoint }: { readonly baselineSeq: number; readonly checkpoint: number }
): Query<ReadonlyArray<MessageRow>> =>
  checkpoint === 0
    ? Effect.succeed([])
    : sql<MessageRow>`SELECT *, ${sessionID} AS session_id FROM session_message ${Dialect.indexedBy(sql, "session_message_system")}
        WHERE session = ${sessionKey(sql, sessionID)} AND type = 'system' AND seq > ${baselineSeq}
        AND seq < ${checkpoint}${within(sql, path)} ORDER BY seq`

/**
 * Prompts without an answer follow the checkpoint (CP-49), or all messages of the range that an imported log kept, except
 * earlier checkpoints, and system messages, which `selectTold` selects (CP-60).
 */
export const selectKept = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  path: HistoryPath.HistoryPath,
  checkpoint: Checkpoint | undefined
): Query<ReadonlyArray<MessageRow>> => {
  const from = checkpoint?.all ?? checkpoint?.kept
  if (checkpoint === undefined || typeof from !== "number") return Effect.succeed([])
  const shown = sql.literal(checkpoint.all === null ? "type = 'user'" : "type NOT IN ('compaction', 'system')")
  return sql<MessageRow>`SELECT *, ${sessionID} AS session_id FROM session_message
    WHERE session = ${sessionKey(sql, sessionID)} AND seq >= ${from} AND seq < ${checkpoint.seq} AND ${shown}
      ${within(sql, path)} ORDER BY seq`
}

/** The message of the last step of a path at or before an event. */
const selectStep = (sql: SqlClient.SqlClient, sessionID: SessionID, path: HistoryPath.HistoryPath, at: number) =>
  Effect.map(
    sql<MessageRow>`SELECT *, ${sessionID} AS session_id FROM session_message
      WHERE session = ${sessionKey(sql, sessionID)} AND type = 'assistant' AND seq <= ${at}${within(sql, path)}
      ORDER BY seq DESC LIMIT 1`,
    ([row]) => row
  )

type Framed = EventOfType<"session.next.request.framed">

type StoredType = { readonly type: string; readonly version: number }

/** The session's floor; -1 if it has never been pruned. */
const selectFloor = (sql: SqlClient.SqlClient, sessionID: SessionID): Query<number> =>
  Effect.map(
    sql<{ readonly floor: number }>`SELECT floor FROM event_sequence WHERE session_id = ${sessionID}`,
    ([head]) => head?.floor ?? -1
  )

/** Events of these types in the session's blocks before a sequence number, newest first (RT-7). */
const selectKeptOfTypes = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  types: ReadonlyArray<StoredType>,
  before: number,
  limit: number
): Effect.Effect<ReadonlyArray<SessionEvent>, SqlError.SqlError | EventUnreadable> =>
  Effect.gen(function* () {
    const names = new Set(types.map(({ type, version }) => `${type}.${version}`))
    const found: Array<SessionEvent> = []
    for (let start = before; found.length < limit;) {
      const block = yield* selectBlockBefore(sql, sessionID, start)
      if (block === undefined) break
      if (Either.isLeft(block.content)) {
        const details = block.content.left
        return yield* new EventUnreadable({ sessionID, seq: start - 1, type: "unknown", details })
      }
      const before = start
      for (const row of block.content.right.rows((seq) => seq < before).toReversed()) {
        start = row.seq
        if (!names.has(row.type)) continue
        const { events, stopped } = toEvents([row])
        if (stopped !== undefined) return yield* stopped
        found.push(...events)
      }
    }
    return found.slice(0, limit)
  })

/** The last events of these types before a sequence number, newest first. Payloads of other types are not read. */
export const selectOfTypes = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  types: ReadonlyArray<StoredType>,
  before: number,
  limit: number
): Effect.Effect<ReadonlyArray<SessionEvent>, SqlError.SqlError | EventUnreadable> =>
  Effect.gen(function* () {
    // What a prune or a restore that was cut off left below the floor is in blocks too.
    const rows = yield* selectEvents(
      sql,
      sql`WHERE ${ofSession(sql, sessionID)} AND e.seq < ${before} AND e.seq > s.floor AND e.type IN (
        SELECT type FROM event_type WHERE ${sql.in(
          "name",
          types.map(({ type, version }) => `${type}.${version}`)
        )}) ORDER BY e.seq DESC LIMIT ${limit}`
    )
    const { events, stopped } = toEvents(rows)
    if (stopped !== undefined) return yield* stopped
    if (rows.length >= limit) return events
    const floor = yield* selectFloor(sql, sessionID)
    if (floor < 0) return events
    const earlier = yield* selectKeptOfTypes(sql, sessionID, types, Math.min(before, floor + 1), limit - rows.length)
    return [...events, ...earlier]
  })

/** Whether these events alone define the whole frame. */
const isWhole = (framed: ReadonlyArray<Framed>): boolean => {
  const offered = framed.findLast(({ data }) => data.tools !== undefined)?.data.tools?.offered
  const defined = new Set(framed.flatMap(({ data }) => data.tools?.defined ?? []).map(({ name }) => name))
  return (
    offered?.every((name) => defined.has(name)) === true &&
    framed.some(({ data }) => data.system !== undefined) &&
    framed.some(({ data }) => data.baselineSeq !== undefined) &&
    framed.some(({ data }) => data.settings !== undefined)
  )
}

/** Frame events per query: usually the last few suffice. */
const portion = 8

/** The events that the frame is folded from, oldest first, back to where they define all of it. */
const selectFramed = (sql: SqlClient.SqlClient, sessionID: SessionID, before: number) =>
  Effect.gen(function* () {
    let framed: ReadonlyArray<Framed> = []
    for (;;) {
      const oldest = framed[0]?.seq ?? before
      const found = yield* selectOfTypes(sql, sessionID, [RequestFramed], oldest, portion)
      const earlier = found.flatMap((event) => (event.type === "session.next.request.framed" ? [event] : []))
      framed = [...earlier.toReversed(), ...framed]
      if (found.length < portion || isWhole(framed)) return framed
    }
  })

/** The sequence number up to which results were pruned; undefined if nothing was ever pruned. */
const selectPruned = (sql: SqlClient.SqlClient, sessionID: SessionID, before: number) =>
  Effect.gen(function* () {
    const [session] = yield* sql<{ readonly pruned_seq: number | null; readonly path: string | null }>`
      SELECT pruned_seq, path FROM session WHERE id = ${sessionID}`
    // A session that was never pruned needs no search.
    if (typeof session?.pruned_seq !== "number" && typeof session?.path !== "string") return undefined
    // A move of the leaf shows all results again (HP-8).
    const [event] = yield* selectOfTypes(sql, sessionID, [ContextPruned, LeafMoved], before, 1)
    return event?.type === "session.next.context.pruned" ? event.data.through : undefined
  })

export interface FramedStep {
  readonly row: MessageRow
  readonly events: EventsBySeq
  /** The events that its frame is folded from, oldest first. */
  readonly framed: ReadonlyArray<Framed>
  readonly prunedSeq: number | undefined
}

/** The last step at or before an event, on the path of that event; undefined if there was none. */
export const selectFramedStep = (sql: SqlClient.SqlClient, sessionID: SessionID, at: number) =>
  Effect.gen(function* () {
    const path = yield* selectPathBefore(sql, sessionID, at + 1)
    const row = yield* selectStep(sql, sessionID, path, at)
    if (row === undefined) return undefined
    const framed = yield* selectFramed(sql, sessionID, row.seq)
    const events = yield* selectBySeq(sql, sessionID, eventsOf({ messages: [row], parts: [], inputs: [] }))
    return { row, events, framed, prunedSeq: yield* selectPruned(sql, sessionID, row.seq) }
  })

/** A part, or the lack of one, beside the session's floor. */
type JoinedPart = { readonly floor: number } & (PartRow | { readonly message_id: null })

const isPart = (row: JoinedPart): row is JoinedPart & PartRow => row.message_id !== null

/** The parts of messages up to the floor, from their blocks (ST-37). */
const selectPrunedParts = (sessionID: SessionID, messages: ReadonlyArray<MessageRow>, blocks: Blocks) => {
  const owners = new Map(messages.map((row) => [row.seq, partOwner(row)]))
  return Effect.map(selectKeptParts(blocks, [...owners.keys()]), (parts) =>
    parts.flatMap(({ message, ...part }) => {
      const message_id = owners.get(message)
      return message_id === undefined ? [] : [{ ...part, message_id, session_id: sessionID }]
    })
  )
}

/** Edits hold on the branch where they were made; other parts belong to their message (HP-3). */
const isShown =
  (path: HistoryPath.HistoryPath) =>
  ({ kind, seq }: PartRow): boolean =>
    kind !== "edit" || HistoryPath.contains(path, seq)

const partTypes: ReadonlySet<string> = new Set(["assistant", "shell", "user", "synthetic"])

const keyOf = ({ key, kind, message_id }: PartRow) => `${message_id} ${kind} ${key}`

/** The parts of these messages on a path. A part's sequence number is always greater than its message's. */
export const selectParts = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  messages: ReadonlyArray<MessageRow>,
  path: HistoryPath.HistoryPath,
  blocks = makeBlocks(sql, sessionID)
): Query<ReadonlyArray<PartRow>> =>
  Effect.gen(function* () {
    const owners = messages.filter(({ type }) => partTypes.has(type))
    if (owners.length === 0) return []
    const found = yield* sql<JoinedPart>`SELECT p.*, ${sessionID} AS session_id, s.floor FROM event_sequence s
      LEFT JOIN session_part p ON p.session = s.session
        AND p.message_id IN (SELECT value FROM ${Dialect.texts(sql, owners.map(partOwner))})
      WHERE s.session_id = ${sessionID} ORDER BY p.seq`
    const floor = found[0]?.floor ?? -1
    const stored = found.filter(isPart).filter(isShown(path))
    const below = owners.filter(({ seq }) => seq <= floor)
    if (below.length === 0) return stored
    const known = new Set(stored.map(keyOf))
    const pruned = yield* selectPrunedParts(sessionID, below, blocks)
    return [...pruned.filter((part) => !known.has(keyOf(part))).filter(isShown(path)), ...stored].toSorted(
      (a, b) => a.seq - b.seq
    )
  })

export const selectPrompts = (sql: SqlClient.SqlClient, sessionID: SessionID, messages: ReadonlyArray<MessageRow>) => {
  const prompted = messages.filter(({ type }) => type === "user").map(({ seq }) => seq)
  return prompted.length === 0
    ? Effect.succeed([])
    : // The planner would rather read all inputs of the session.
      sql<InputRow>`SELECT i.*, ${sessionID} AS session_id
        FROM ${Dialect.numbers(sql, prompted)} CROSS JOIN session_input i
        WHERE i.session = ${sessionKey(sql, sessionID)} AND i.promoted_seq = j.value`
}

export interface ContextStart {
  /** The events after this sequence number are folded over these rows: from the checkpoint, floor or last move on. */
  readonly after: number
  readonly from: number
  /** The messages of the path from the checkpoint up to `after`, as they were before the event. */
  readonly settled: ReadonlyArray<MessageRow>
  readonly parts: ReadonlyArray<PartRow>
  /** System messages before the checkpoint that the baseline does not contain. */
  readonly told: ReadonlyArray<MessageRow>
  /** Messages that follow the checkpoint: prompts, or all of a kept range. */
  readonly kept: ReadonlyArray<MessageRow>
  /** The inputs of kept prompts, and, as waiting, inputs that were admitted before `from` and promoted since. */
  readonly inputs: ReadonlyArray<InputRow>
  /** The events that hold the content of these rows. */
  readonly events: EventsBySeq
}

const earlier = (seq: number | null, before: number): number | null => (seq === null || seq < before ? seq : null)

/** The message as it was before an event. */
const messageBefore =
  (before: number) =>
  (row: MessageRow): MessageRow => ({ ...row, settled: earlier(row.settled, before) })

/** The part as it was before an event, if it had begun. */
const partBefore =
  (before: number) =>
  (row: PartRow): ReadonlyArray<PartRow> => {
    if (row.seq >= before) return []
    const [called, settled] = [earlier(row.called, before), earlier(row.settled, before)]
    const status = row.settled === settled ? row.status : called === null ? "pending" : "running"
    return [{ ...row, called, settled, raw: earlier(row.raw, before), progress: earlier(row.progress, before), status }]
  }

/** The state when the last checkpoint before an event was made, to fold later events from. */
export const selectContextStart = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  { baselineSeq, before }: { readonly baselineSeq: number; readonly before: number }
): Effect.Effect<ContextStart, SqlError.SqlError | EventUnreadable> =>
  Effect.gen(function* () {
    const path = yield* selectPathBefore(sql, sessionID, before)
    const checkpoint = yield* selectCheckpoint(sql, sessionID, path, before)
    const from = checkpoint?.seq ?? 0
    const told = yield* selectTold(sql, sessionID, path, { baselineSeq, checkpoint: from })
    const kept = yield* selectKept(sql, sessionID, path, checkpoint)
    // Up to the floor, rows are all there is; up to the last move of the leaf, the path has gaps.
    const base = Math.max(yield* selectFloor(sql, sessionID), HistoryPath.openFrom(path) - 1)
    const after = Math.max(from - 1, base)
    const shown = HistoryPath.between(path, from, Math.min(base, before - 1))
    const settled = (yield* selectMessagesIn(sql, sessionID, shown)).map(messageBefore(before))
    const blocks = makeBlocks(sql, sessionID)
    const parts = (yield* selectParts(sql, sessionID, [...kept, ...settled], path, blocks)).flatMap(partBefore(before))
    const prompts = yield* selectPrompts(sql, sessionID, [...kept, ...settled])
    const promoted =
      yield* sql<InputRow>`SELECT *, ${sessionID} AS session_id FROM session_input WHERE session = ${sessionKey(sql, sessionID)}
      AND promoted_seq > ${after} AND promoted_seq < ${before} AND admitted_seq <= ${after}`
    const waiting = promoted.map((row): InputRow => ({ ...row, promoted_seq: null, withdrawn_seq: null }))
    const inputs = [...prompts, ...waiting]
    const messages = [...told, ...kept, ...settled]
    const events = yield* selectBySeq(sql, sessionID, eventsOf({ messages, parts, inputs }), blocks)
    return { after, from, settled, parts, told, kept, inputs, events }
  })
