/**
 * What an earlier turn was shown, from the log alone: its frame, and the history as it was then, lowered as it was then.
 * Reads the session's events up to that turn, in pages, and keeps what is shown of them. Spec: RQ-34..RQ-36.
 */
import type { Prompt } from "@effect/ai"
import { Effect, Schema } from "effect"
import { nothingPruned } from "../compaction/Prune.ts"
import { estimate, type Estimate } from "../compaction/TokenEstimate.ts"
import type { EventOfType, SessionEvent } from "../events/SessionEvents.ts"
import { SessionID, type MessageID } from "../Identifiers.ts"
import { EventLog, type ReadError } from "../log/EventLog.ts"
import * as MemoryTables from "../projection/MemoryTables.ts"
import { project } from "../projection/Projection.ts"
import { lower, type Shown } from "../runner/Lowering.ts"
import { assemble, SessionStore } from "../session/SessionStore.ts"
import type { Message } from "../session/Message.ts"
import type { ModelRef } from "../session/Schemas.ts"
import type { StoreError } from "../session/StoreError.ts"
import { fold, nothingFolded, type Folded, type Frame } from "./Frame.ts"

/** A request to a provider, as it was or would be. */
export interface ShownRequest {
  readonly sessionID: SessionID
  readonly agent: string
  readonly model: ModelRef
  readonly frame: Frame
  /** The conversation, after the system texts. */
  readonly messages: ReadonlyArray<Prompt.MessageEncoded>
  /** Estimated tokens by part. */
  readonly estimate: Estimate
  /** The turn, where it has been made: its answer, and the place of its step. */
  readonly step?: { readonly messageID: MessageID; readonly seq: number }
}

/** No turn had begun by then, or it was made before requests were framed in the log. */
export class NothingShown extends Schema.TaggedError<NothingShown>("@daybook/core/NothingShown")("NothingShown", {
  sessionID: SessionID,
  at: Schema.Int
}) {
  override get message() {
    return `${this.sessionID} had shown nothing to a model by event ${this.at}; ask for a later one`
  }
}

/** A request that went out, but for its history. */
export interface Sent {
  /** Its step, and the answer that it got. */
  readonly step: { readonly seq: number; readonly messageID: MessageID }
  readonly agent: string
  readonly model: ModelRef
  readonly frame: Frame
  readonly prunedSeq: number
}

type Step = EventOfType<"session.next.step.started">

/** The fold of one session towards its last step. */
interface State {
  readonly tables: MemoryTables.MemoryTables
  readonly framed: Folded
  readonly pruned: number
  /** What the last step so far was shown. */
  readonly shown: { readonly step: Step; readonly frame: Frame; readonly pruned: number } | undefined
}

/** A checkpoint begins what is shown anew; System messages and what waits in the inbox go on. */
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
  // What belongs to messages before the checkpoint (a shell that ends after it) is not shown, and not missed.
  tables.apply(shownChanges(event))
  if (checkpoint?.firstKeptSeq !== undefined) goOn(state.tables, tables, checkpoint.firstKeptSeq)
  switch (event.type) {
    case "session.next.request.framed":
      return { ...state, tables, framed: fold(state.framed, event) }
    case "session.next.context.pruned":
      return { ...state, tables, pruned: event.data.through }
    case "session.next.step.started":
      return { ...state, tables, shown: { step: event, frame: state.framed.frame, pruned: state.pruned } }
    default:
      return { ...state, tables }
  }
}

/** How the history was shown with it. */
export const shownBy = ({ frame, model, prunedSeq }: Sent): Shown => ({
  model,
  systemMessages: frame.settings["systemMessages"] === "anywhere" ? "anywhere" : "leading",
  prunedSeq
})

const sentBy = ({ frame, pruned, step: { data, seq } }: NonNullable<State["shown"]>): Sent => ({
  step: { seq, messageID: data.assistantMessageID },
  agent: data.agent,
  model: data.model,
  frame,
  prunedSeq: pruned
})

/** What the turn was shown that the event at `at` belongs to, or the last one before it. */
export const shownAt = Effect.fn("Recorded.shownAt")(function* (
  sessionID: SessionID,
  at: number
): Effect.fn.Return<ShownRequest, NothingShown | ReadError | StoreError, EventLog> {
  const { shown, tables } = yield* foldTo(yield* EventLog, sessionID, at)
  if (shown === undefined || shown.frame.system.length === 0) return yield* new NothingShown({ sessionID, at })
  const all = yield* assembled(sessionID, tables)
  const visible = all.filter(
    (message) =>
      message.id !== shown.step.data.assistantMessageID &&
      (message.type !== "system" || message.seq > shown.frame.baselineSeq)
  )
  const sent = sentBy(shown)
  const { agent, frame, model, step } = sent
  const messages = lower(visible, shownBy(sent))
  const estimated = estimate({ system: frame.system, messages, tools: frame.tools })
  return { sessionID, agent, model, frame, messages, estimate: estimated, step }
})

/**
 * The messages that a request of then was made from, oldest first: those just before the event at `before`. Only what
 * came after the last checkpoint is read, and folded as it was: what ended later is shown as it stood.
 */
export const historyAt = Effect.fn("Recorded.historyAt")(function* (
  sessionID: SessionID,
  { baselineSeq, before }: { readonly baselineSeq: number; readonly before: number }
): Effect.fn.Return<ReadonlyArray<Message>, ReadError | StoreError, EventLog | SessionStore> {
  const log = yield* EventLog
  const { from, inputs, kept, told } = yield* (yield* SessionStore).contextAt(sessionID, { baselineSeq, before })
  const tables = MemoryTables.make()
  for (const row of inputs) tables.load("session_input", row)
  for (const row of told) tables.load("session_message", row)
  let cursor = from - 1
  for (let hasMore = true; hasMore && cursor < before - 1;) {
    const page = yield* log.read({ sessionID, after: cursor, limit: Math.min(512, before - 1 - cursor) })
    for (const event of page.events) {
      tables.apply(shownChanges(event))
      if (event.seq === from) for (const row of kept) tables.load("session_message", row)
    }
    cursor = page.cursor
    hasMore = page.hasMore
  }
  const all = yield* assembled(sessionID, tables)
  return all.filter(({ seq, type }) => type !== "system" || seq > baselineSeq)
})

const assembled = (sessionID: SessionID, tables: MemoryTables.MemoryTables) =>
  assemble(sessionID, tables.rows("session_message"), tables.rows("session_part"), tables.rows("session_input"))

/** Folds a session up to its last step at or before an event. What came after that step is folded only with the next. */
const foldTo = Effect.fnUntraced(function* (log: EventLog["Type"], sessionID: SessionID, at: number) {
  let state: State = { tables: MemoryTables.make(), framed: nothingFolded, pruned: nothingPruned, shown: undefined }
  let since: Array<SessionEvent> = []
  let cursor = -1
  for (;;) {
    const page = yield* log.read({ sessionID, after: cursor })
    for (const event of page.events) {
      if (event.seq > at) return state
      since.push(event)
      if (event.type !== "session.next.step.started") continue
      state = since.reduce(step, state)
      since = []
    }
    if (!page.hasMore || page.cursor >= at) return state
    cursor = page.cursor
  }
})
