/**
 * Folds a session's events into rows: those that each event adds to the messages and to the events of the session, and
 * the state after it. Pure, total over the event types, and independent of batching. Spec: FI-20..FI-39 in
 * specs/files.md (FL-4..FL-8).
 */
import type { DurableType, EventOfType, SessionEvent } from "@daybook/log/events/SessionEvents"
import type { Blob } from "./fold/Blocks.ts"
import { type FoldedRow, type Out, set } from "./fold/Out.ts"
import * as Prompts from "./fold/Prompts.ts"
import * as Runs from "./fold/Runs.ts"
import * as Session from "./fold/Session.ts"
import { initial, type State } from "./fold/State.ts"
import * as Steps from "./fold/Steps.ts"
import type { EventRow } from "./row/Rows.ts"

export type { Blob } from "./fold/Blocks.ts"
export { codeOf } from "./fold/ErrorCode.ts"
export { rowsPerEvent, type FoldedRow } from "./fold/Out.ts"
export { clip, textLimit } from "./fold/Clip.ts"
export { Checkpoint, fromCheckpoint, initial, isQuiet, ofSession, toCheckpoint, type State } from "./fold/State.ts"
export { isStored, longestHeld, type StoredText, type Text } from "./fold/Texts.ts"

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
    Prompts.systemText(out, event)
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
  "session.next.prompt.admitted": Prompts.admitted,
  "session.next.prompt.promoted": Prompts.promoted,
  "session.next.prompted": Prompts.promoted,
  "session.next.prompt.withdrawn": (out, { data }) => {
    Prompts.forget(out, data.messageID)
    Runs.withdrawn(out, data.messageID)
  },
  "session.next.context.updated": Prompts.systemText,
  "session.next.synthetic": Prompts.systemText,
  "session.next.shell.started": Prompts.shellStarted,
  "session.next.shell.ended": Prompts.shellEnded,
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

/**
 * To render event rows from the start of an activity at which nothing is open, the last event of each of these types is
 * enough (FI-106).
 */
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
