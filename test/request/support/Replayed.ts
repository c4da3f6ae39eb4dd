/**
 * Computes an earlier turn's request by replaying the session's whole log: the slow and obvious way, with which the tests compare
 * the fast one. It does not use rows, keys or places.
 */
import { Effect, Either } from "effect"
import { nothingPruned } from "../../../packages/core/src/request/Prune.ts"
import type { Sent } from "../../../packages/core/src/request/Recorded.ts"
import {
  type Folded,
  fold as foldFrame,
  nothingFolded,
  type RequestFrame
} from "../../../packages/core/src/request/RequestFrame.ts"
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import type { Message } from "../../../packages/log/src/domain/Message.ts"
import type { EventOfType, SessionEvent } from "../../../packages/log/src/events/SessionEvents.ts"
import * as MemoryTables from "../../../packages/log/src/projection/MemoryTables.ts"
import { project } from "../../../packages/log/src/projection/Projection.ts"
import { assemble } from "../../../packages/log/src/store/Assemble.ts"
import { eventsOf } from "../../runner/support/Runs.ts"

type Step = EventOfType<"session.next.step.started">

/** The fold of one session towards its last step. */
interface State {
  readonly tables: MemoryTables.MemoryTables
  readonly framed: Folded
  readonly pruned: number
  /** The request of the last step so far. */
  readonly shown: { readonly step: Step; readonly frame: RequestFrame; readonly pruned: number } | undefined
}

/** A checkpoint restarts the history; System messages and waiting prompts are kept. */
const begunAnew = (tables: MemoryTables.MemoryTables): MemoryTables.MemoryTables => {
  const fresh = MemoryTables.make()
  for (const row of tables.rows("session_input")) if (row.promoted_seq === null) fresh.load("session_input", row)
  for (const row of tables.rows("session_message")) if (row.type === "system") fresh.load("session_message", row)
  return fresh
}

/** Prompts that no model had answered follow the checkpoint (CP-49). */
const goOn = (from: MemoryTables.MemoryTables, to: MemoryTables.MemoryTables, firstKeptSeq: number): void => {
  const kept = from.rows("session_message").filter(({ seq, type }) => type === "user" && seq >= firstKeptSeq)
  const ids = new Set(kept.map(({ id }) => id))
  for (const row of from.rows("session_input")) if (ids.has(row.id)) to.load("session_input", row)
  for (const row of kept) to.load("session_message", row)
}

const shownChanges = (event: SessionEvent) =>
  project(event).filter(({ table }) => table !== "session" && table !== "session_instruction")

const step = (state: State, event: SessionEvent): State => {
  const checkpoint = event.type === "session.next.compaction.ended" ? event.data : undefined
  const tables = checkpoint === undefined ? state.tables : begunAnew(state.tables)
  // Changes of messages before the checkpoint (a shell that ends after it) are ignored.
  tables.apply(shownChanges(event))
  if (checkpoint?.firstKeptSeq !== undefined) goOn(state.tables, tables, checkpoint.firstKeptSeq)
  switch (event.type) {
    case "session.next.request.framed":
      return { ...state, tables, framed: foldFrame(state.framed, event) }
    case "session.next.context.pruned":
      return { ...state, tables, pruned: event.data.through }
    case "session.next.step.started":
      return { ...state, tables, shown: { step: event, frame: state.framed.frame, pruned: state.pruned } }
    default:
      return { ...state, tables }
  }
}

const sentBy = ({ frame, pruned, step: { data, seq } }: NonNullable<State["shown"]>): Sent => ({
  step: { seq, messageID: data.assistantMessageID },
  agent: data.agent,
  model: data.model,
  frame,
  prunedSeq: pruned
})

/** The last step at or before the event `at`, and the history that its request was built from. */
export const replayedAt = Effect.fnUntraced(function* (sessionID: SessionID, at: number) {
  let state: State = { tables: MemoryTables.make(), framed: nothingFolded, pruned: nothingPruned, shown: undefined }
  let since: ReadonlyArray<SessionEvent> = []
  const events = yield* eventsOf(sessionID)
  for (const event of events) {
    if (event.seq > at) break
    since = [...since, event]
    if (event.type !== "session.next.step.started") continue
    state = since.reduce(step, state)
    since = []
  }
  const { shown, tables } = state
  if (shown === undefined) return undefined
  const all = yield* assemble(sessionID, {
    messages: tables.rows("session_message"),
    parts: tables.rows("session_part"),
    inputs: tables.rows("session_input"),
    events: new Map(events.map((event) => [event.seq, Either.right(event)]))
  })
  const history: ReadonlyArray<Message> = all.filter(
    (message) =>
      message.id !== shown.step.data.assistantMessageID &&
      (message.type !== "system" || message.seq > shown.frame.baselineSeq)
  )
  return { sent: sentBy(shown), history }
})
