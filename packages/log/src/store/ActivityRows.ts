/**
 * Finds in the log, by key, where an activity's work began and what its prompts requested. A resume continues the
 * previous activity, and so does a steer that was sent to an activity that was cut off. Spec: RQ-45, TU-2.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Array as Arr, Effect, Either, Schema, Struct } from "effect"
import * as HistoryPath from "../domain/HistoryPath.ts"
import { MessageID, type SessionID } from "../domain/Identifiers.ts"
import { join, noWishes, type Wishes } from "../domain/Values.ts"
import {
  ActivitySettled,
  ActivityStarted,
  CompactionFailed,
  CompactionStarted,
  LeafMoved,
  type SessionEvent,
  StepEnded,
  StepFailed,
  StepStarted,
  TextEnded,
  ToolCalled,
  ToolFailed,
  ToolProgress,
  ToolSuccess
} from "../events/SessionEvents.ts"
import type { EventUnreadable } from "../log/EventLog.ts"
import { sessionKey } from "../log/EventRow.ts"
import type { InputRow, PartRow } from "../projection/Tables.ts"
import { eventsOf, inputOf } from "./Assemble.ts"
import { type EventsBySeq, selectBySeq } from "./Content.ts"
import { onPath } from "./PathRows.ts"
import { selectOfTypes } from "./RequestRows.ts"
import { reading } from "./Reading.ts"
import { MessageUnreadable } from "./StoreError.ts"
import { message } from "./TranscriptRows.ts"

// Selects what a dead process left open in a session: calls without a result, a step without an end.

/** A call whose process died before the call ended. */
export interface UnsettledTool {
  readonly messageID: MessageID
  readonly callID: string
  readonly called: boolean
  readonly executed: boolean
  readonly metadata: Readonly<Record<string, unknown>> | undefined
}

const unsettled = (sessionID: string, { called, key, message_id }: PartRow, events: EventsBySeq) => {
  const call = called === null ? undefined : events.get(called)
  return Either.all({
    messageID: Schema.decodeUnknownEither(MessageID)(message_id),
    call: call ?? Either.right(undefined)
  }).pipe(
    Either.filterOrLeft(
      ({ call }) => called === null || call?.type === "session.next.tool.called",
      () => new Error(`event ${called ?? ""}, which holds its call, is missing`)
    ),
    Either.mapBoth({
      onLeft: ({ message }) => new MessageUnreadable({ sessionID, messageID: message_id, details: message }),
      onRight: ({ call, messageID }) => {
        const provider = call?.type === "session.next.tool.called" ? call.data.provider : undefined
        return {
          messageID,
          callID: key,
          called: called !== null,
          executed: provider?.executed ?? false,
          metadata: provider?.metadata
        }
      }
    })
  )
}

export const unsettledTools = (sql: SqlClient.SqlClient) => (sessionID: SessionID) =>
  reading(
    Effect.gen(function* () {
      const rows = yield* sql<PartRow>`SELECT *, ${sessionID} AS session_id FROM session_part
        WHERE session = ${sessionKey(sql, sessionID)} AND settled IS NULL AND kind = 'tool' ORDER BY seq`
      const seqs = rows.flatMap(({ called }) => (called === null ? [] : [called]))
      const events = yield* selectBySeq(sql, sessionID, seqs)
      return yield* Either.all(rows.map((row) => unsettled(sessionID, row, events)))
    })
  )

/** Turns are sequential, so only the last step can be open. */
export const openStep = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (sessionID: SessionID) {
    const [row] = yield* reading(
      sql<{ readonly id: string; readonly settled: number | null }>`SELECT id, settled FROM session_message
        WHERE session = ${sessionKey(sql, sessionID)} AND type = 'assistant' ORDER BY seq DESC LIMIT 1`
    )
    if (row?.settled !== null) return undefined
    const step = yield* message(sql)(sessionID, MessageID.make(row.id))
    return step?.type === "assistant" ? step : undefined
  })

type Failure = SqlError.SqlError | EventUnreadable

/** What opens an activity. `admittedSeq` is the sequence number of its first steer's admission. */
export interface Opening {
  readonly trigger: "steer" | "queue" | "resume"
  readonly admittedSeq: number | undefined
}

/** What only a process that runs the session stores. */
const work = [
  ActivityStarted,
  CompactionStarted,
  StepStarted,
  StepEnded,
  StepFailed,
  TextEnded,
  ToolCalled,
  ToolProgress,
  ToolSuccess,
  ToolFailed
]

/** When the session's last activity was last seen at work, in milliseconds since the epoch. */
export const selectLastWork = (sql: SqlClient.SqlClient, sessionID: SessionID) =>
  Effect.map(selectOfTypes(sql, sessionID, work, Number.MAX_SAFE_INTEGER, 1), ([event]) => event?.created)

/** What the last activity did, latest first: steps and compactions that began, and why they and calls failed. */
export interface Attempts {
  readonly steps: number
  readonly latest: ReadonlyArray<SessionEvent>
}

const attempts = [ActivityStarted, StepStarted, StepFailed, ToolFailed, CompactionStarted, CompactionFailed]

/** More steps than activities have, and enough of the latest events for two attempts. */
const [mostSteps, mostAttempts] = [1_000, 200]

export const selectAttempts = (sql: SqlClient.SqlClient, sessionID: SessionID): Effect.Effect<Attempts, Failure> =>
  Effect.gen(function* () {
    const last = (types: typeof attempts, limit: number) =>
      selectOfTypes(sql, sessionID, types, Number.MAX_SAFE_INTEGER, limit)
    const sinceStart = (events: ReadonlyArray<SessionEvent>) =>
      Arr.takeWhile(events, ({ type }) => type !== "session.next.activity.started")
    const steps = sinceStart(yield* last([ActivityStarted, StepStarted], mostSteps))
    return { steps: steps.length, latest: sinceStart(yield* last(attempts, mostAttempts)) }
  })

const boundaries = [ActivityStarted, ActivitySettled, LeafMoved]

/** Whether an activity that opens here continues the last one's work. After a move of the leaf, none does. */
const goesOn = (sql: SqlClient.SqlClient, sessionID: SessionID, before: number, { admittedSeq, trigger }: Opening) => {
  if (trigger !== "steer" || admittedSeq === undefined) return Effect.succeed(trigger === "resume")
  return Effect.map(selectOfTypes(sql, sessionID, boundaries, before, 1), ([last]) =>
    last?.type === "session.next.activity.settled"
      ? last.data.outcome !== "completed" && admittedSeq < last.seq
      : last?.type === "session.next.activity.started"
  )
}

/** The admission of the first prompt promoted after an event. */
const firstAdmission = (sql: SqlClient.SqlClient, sessionID: SessionID, after: number) =>
  Effect.map(
    sql<{ readonly admitted_seq: number }>`SELECT admitted_seq FROM session_input
      WHERE session = ${sessionKey(sql, sessionID)} AND promoted_seq > ${after} AND withdrawn_seq IS NULL
      ORDER BY promoted_seq LIMIT 1`,
    ([row]) => row?.admitted_seq
  )

/** The start of the first activity in the chain that the last one continues; undefined if the log has none. */
const selectStart = (sql: SqlClient.SqlClient, sessionID: SessionID): Effect.Effect<number | undefined, Failure> =>
  Effect.gen(function* () {
    let before = Number.MAX_SAFE_INTEGER
    // The last move of the leaf says which earlier events are history.
    let path: HistoryPath.HistoryPath | undefined
    for (;;) {
      const [event] = yield* selectOfTypes(sql, sessionID, [ActivityStarted, LeafMoved], before, 1)
      if (event?.type === "session.next.leaf.moved") path ??= event.data.path
      if (event !== undefined && path !== undefined && !HistoryPath.contains(path, event.seq)) {
        before = event.seq
        continue
      }
      if (event?.type !== "session.next.activity.started") return undefined
      const { trigger } = event.data
      const admittedSeq = trigger === "steer" ? yield* firstAdmission(sql, sessionID, event.seq) : undefined
      if (!(yield* goesOn(sql, sessionID, event.seq, { trigger, admittedSeq }))) return event.seq
      before = event.seq
    }
  })

/** The work that an activity continues: what opened it and what it requests. */
export interface Continued {
  readonly wishes: Wishes
  /** The prompts promoted when the work began. */
  readonly opening: ReadonlyArray<MessageID>
}

/** For an activity that continues nothing. */
export const nothingContinued: Continued = { wishes: noWishes, opening: [] }

export const selectContinued = (sql: SqlClient.SqlClient, sessionID: SessionID, opening: Opening) =>
  Effect.gen(function* () {
    if (!(yield* goesOn(sql, sessionID, Number.MAX_SAFE_INTEGER, opening))) return nothingContinued
    const start = yield* selectStart(sql, sessionID)
    // Older logs have no activities: then only the last prompt counts.
    const from =
      start === undefined
        ? sql`(SELECT max(promoted_seq) FROM session_input WHERE session = ${sessionKey(sql, sessionID)} AND withdrawn_seq IS NULL
            ${onPath(sql, sessionID, sql`promoted_seq`)})`
        : sql`${start}`
    const asked = yield* sql<InputRow>`SELECT *, ${sessionID} AS session_id FROM session_input
      WHERE session = ${sessionKey(sql, sessionID)} AND withdrawn_seq IS NULL AND promoted_seq >= ${from}
        ${onPath(sql, sessionID, sql`promoted_seq`)} ORDER BY promoted_seq`
    const events = yield* selectBySeq(sql, sessionID, eventsOf({ messages: [], parts: [], inputs: asked }))
    const inputs = yield* Either.all(asked.map((row) => inputOf(row, events)))
    const wishes = inputs.reduce<Wishes>(
      (held, { prompt }) => join(held, Struct.pick(prompt, "tools", "output")),
      noWishes
    )
    // Prompts of one boundary are one append, so their sequence numbers are contiguous.
    const [first] = asked
    const together = asked.filter(({ promoted_seq: seq }, at) => seq === (first?.promoted_seq ?? 0) + at)
    return { wishes, opening: inputs.slice(0, together.length).map(({ id }) => id) } satisfies Continued
  })
