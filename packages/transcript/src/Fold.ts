/**
 * Folds a session's events into rows: those that each event adds to the messages and to the events of the session, and
 * the state after it. Pure, total over the event types, and independent of batching. Spec: FI-20..FI-39, FI-98 in
 * specs/files.md (FL-4..FL-8).
 */
import type { DurableType, EventOfType, SessionEvent } from "@daybook/log/events/SessionEvents"
import { type Blob, type FoldedRow, type Out, set } from "./fold/Out.ts"
import * as Runs from "./fold/Runs.ts"
import * as Session from "./fold/Session.ts"
import { initial, isStored, type State, type Text } from "./fold/State.ts"
import * as Steps from "./fold/Steps.ts"
import type { EventRow } from "./row/Rows.ts"

export type { Blob } from "./fold/Out.ts"
export { codeOf } from "./fold/Out.ts"
export { rowsPerEvent, type FoldedRow } from "./fold/Out.ts"
export { clip, textLimit } from "./fold/Out.ts"
export {
  Checkpoint,
  fromCheckpoint,
  initial,
  isQuiet,
  isStored,
  longestHeld,
  ofSession,
  type State,
  type StoredText,
  type Text,
  toCheckpoint
} from "./fold/State.ts"

/** The result of one event. */
export interface Evolved {
  readonly state: State
  /** Rows added to `messages.jsonl`. */
  readonly messages: ReadonlyArray<FoldedRow>
  /** Rows added to `events.jsonl`, at most `rowsPerEvent`. */
  readonly events: ReadonlyArray<EventRow>
  /** Blobs that these or later rows name; a blob may appear again. */
  readonly blobs: ReadonlyArray<Blob>
}

type Handlers = { readonly [Type in DurableType]: (out: Out, event: EventOfType<Type>) => void }

/** The event has no row: live work, request frames, or data that only the model sees. */
const ignore = (): void => undefined

const handlers: Handlers = {
  "session.created": Session.created,
  "session.next.addressed": Session.addressed,
  "session.next.agent.switched": Session.agentSwitched,
  "session.next.model.switched": Session.modelSwitched,
  "session.next.moved": Session.moved,
  "session.next.renamed": Session.renamed,
  "session.next.budget.set": Session.budgetSet,
  "session.next.context.pruned": Session.pruned,
  "session.next.context.edited": ignore,
  "session.next.part.withheld": Session.withheld,
  "session.next.leaf.moved": Session.leafMoved,
  "session.next.branch.summarized": (out, event) => {
    Session.spend(out, event.data)
    Session.systemText(out, event)
  },
  "session.next.labeled": Session.labeled,
  "session.next.forked": Session.forked,
  "session.next.files.changed": ignore,
  "session.next.files.restored": Session.restored,
  "session.next.retried": Session.retried,
  "session.next.compaction.requested": ignore,
  "session.next.compaction.started": ignore,
  "session.next.compaction.ended": Session.compacted,
  "session.next.compaction.failed": Session.compactionFailed,
  "session.next.prompt.admitted": Session.admitted,
  "session.next.prompt.promoted": Session.promoted,
  "session.next.prompted": Session.promoted,
  "session.next.prompt.withdrawn": (out, { data }) => {
    Session.forget(out, data.messageID)
    Runs.withdrawn(out, data.messageID)
  },
  "session.next.context.updated": Session.systemText,
  "session.next.synthetic": Session.systemText,
  "session.next.shell.started": Session.shellStarted,
  "session.next.shell.ended": Session.shellEnded,
  "session.next.activity.started": Runs.activityStarted,
  "session.next.activity.settled": Runs.activitySettled,
  "session.next.interrupt.requested": ignore,
  "session.next.step.started": Steps.started,
  "session.next.step.ended": (out, event) => {
    Session.spend(out, event.data)
    Steps.ended(out, event)
  },
  "session.next.step.failed": Steps.failed,
  "session.next.request.framed": ignore,
  "session.next.instructions.discovered": ignore,
  "session.next.text.started": Steps.textStarted,
  "session.next.text.ended": Steps.textEnded,
  "session.next.reasoning.started": ignore,
  "session.next.reasoning.ended": ignore,
  "session.next.tool.input.started": Steps.inputStarted,
  "session.next.tool.input.ended": ignore,
  "session.next.tool.called": Steps.called,
  "session.next.tool.progress": ignore,
  "session.next.tool.success": Steps.succeeded,
  "session.next.tool.failed": Steps.callFailed,
  "session.next.question.answered": ignore,
  "session.next.question.dismissed": ignore,
  "session.next.permission.decided": ignore,
  "session.next.permission.revoked": ignore,
  "session.next.imported": (out, event) => Session.spend(out, event.data),
  "session.next.shell.opened": ignore,
  "session.next.shell.executed": ignore,
  "session.next.shell.blocked": ignore,
  "session.next.shell.checkpointed": ignore,
  "session.next.shell.restored": ignore,
  "session.next.shell.closed": ignore
}

const fold = (out: Out, event: SessionEvent): void => {
  // The table has the function of the event's own type.
  const handler = handlers[event.type] as (out: Out, event: SessionEvent) => void
  handler(out, event)
}

/** Applies one event to a state that the caller owns; changes that state in place. */
export const evolveOwn = (state: State, event: SessionEvent): Evolved => {
  const out: Out = { event, state, messages: [], events: [], blobs: [] }
  Runs.begin(out)
  fold(out, event)
  const { blobs, events, messages } = out
  const { lines, updatedAtMs } = out.state
  set(out, {
    seq: event.seq,
    position: event.position,
    updatedAtMs: Math.max(updatedAtMs, event.created)
  })
  if (messages.length + events.length > 0)
    set(out, { lines: { messages: lines.messages + messages.length, events: lines.events + events.length } })
  return { state, messages, events, blobs }
}

/** Applies one event to a copy of the state. */
export const evolve = (state: State, event: SessionEvent): Evolved => evolveOwn({ ...state }, event)

/** To render event rows from the start of an idle activity, the last event of each type is enough (FI-106). */
export const framing = [
  "session.created",
  "session.next.addressed",
  "session.next.moved",
  "session.next.model.switched"
] as const satisfies ReadonlyArray<DurableType>

/** Whether `startAt` needs the event. */
export const isFraming = (event: SessionEvent): boolean => framing.some((type) => type === event.type)

/** The state from which to render event rows at an activity's start, from the last framing events before it. */
export const startAt = (before: ReadonlyArray<SessionEvent>): State =>
  before.reduce((state, event) => evolve(state, event).state, initial)

// Renders a row as a line of pieces: short texts, and references to long ones.

/** Text of a line, or a reference to a long text, which is a JSON string in the line. */
export type Piece = Text

/** The row as a line with its newline, equal to `JSON.stringify` of the row with its texts. */
export const lineOf = (row: FoldedRow): ReadonlyArray<Piece> => {
  const content: ReadonlyArray<(typeof row.content)[number]> = row.content
  const isLong = content.some((block) => block.type === "text" && isStored(block.text))
  if (!isLong) return [`${JSON.stringify(row)}\n`]
  const empty = JSON.stringify({ ...row, content: [] })
  // A text before it cannot contain this: its quotes would be escaped.
  const at = empty.indexOf('"content":[]') + '"content":['.length
  const pieces: Array<Piece> = []
  for (const block of content) {
    const before = pieces.length === 0 ? empty.slice(0, at) : ","
    if (block.type === "text" && isStored(block.text)) pieces.push(`${before}{"type":"text","text":`, block.text, "}")
    else pieces.push(before + JSON.stringify(block))
  }
  return [...pieces, `${empty.slice(at)}\n`]
}

/** The size of the pieces in bytes, within a line. */
export const sizeOf = (pieces: ReadonlyArray<Piece>): number =>
  pieces.reduce((sum, piece) => sum + (isStored(piece) ? piece.bytes : Buffer.byteLength(piece)), 0)
