/**
 * Rebuilds the request of an earlier turn: its frame, and the history as it was then, lowered as it was then. Looks up
 * keys and folds only from the preceding checkpoint on, so the cost follows what was shown, wherever it is in the
 * session.
 * Spec: RQ-34..RQ-36, RQ-56.
 */
import { Effect, Either } from "effect"
import { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { edited, type Message } from "@daybook/log/domain/Message"
import { ModelRef } from "@daybook/log/domain/Values"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import { EventLog, type ReadError } from "@daybook/log/log/EventLog"
import * as MemoryTables from "@daybook/log/projection/MemoryTables"
import { project } from "@daybook/log/projection/Projection"
import { assemble } from "@daybook/log/store/Assemble"
import { SessionStore } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
import { mediaKinds } from "../prompt/FilePart.ts"
import { conversation, type LoweringTarget } from "./Lowering.ts"
import { nothingPruned } from "./Prune.ts"
import { fold, nothingFolded, RequestFrame } from "./RequestFrame.ts"
import { NothingShown, type ShownRequest } from "./ShownRequest.ts"
import { estimate } from "./TokenEstimate.ts"

export { NothingShown, ShownRequest } from "./ShownRequest.ts"

/** A sent request without its history. */
export interface Sent {
  readonly step: { readonly seq: number; readonly messageID: MessageID }
  readonly agent: string
  readonly model: ModelRef
  readonly frame: RequestFrame
  readonly prunedSeq: number
}

/** Changes to messages before the checkpoint (a shell that ends after it) are ignored: those messages are not shown. */
const shownChanges = (event: SessionEvent) =>
  project(event).filter(({ table }) => table !== "session" && table !== "session_instruction")

const recordedMedia = ({ media, pictures }: RequestFrame["settings"]) => ({
  media: Array.isArray(media) ? mediaKinds.filter((kind) => media.includes(kind)) : undefined,
  pictures: typeof pictures === "number" ? pictures : undefined
})

/** How this request showed the history. */
export const shownBy = ({ frame, model, prunedSeq }: Sent): LoweringTarget => ({
  model,
  systemMessages: frame.settings["systemMessages"] === "anywhere" ? "anywhere" : "leading",
  prunedSeq,
  ...recordedMedia(frame.settings)
})

/** The request of the last step at or before an event, without its history. */
const sentAt = Effect.fnUntraced(function* (sessionID: SessionID, at: number) {
  const found = yield* (yield* SessionStore).stepAt(sessionID, at)
  if (found === undefined) return undefined
  const { framed, message, prunedSeq } = found
  const { frame } = framed.reduce(fold, nothingFolded)
  return {
    step: { seq: message.seq, messageID: message.id },
    agent: message.agent,
    model: message.model,
    frame,
    prunedSeq: prunedSeq ?? nothingPruned
  } satisfies Sent
})

/** All messages of a session's history, in order. */
export const messagesOf = Effect.fn("Recorded.messagesOf")(function* (
  sessionID: SessionID
): Effect.fn.Return<ReadonlyArray<Message>, StoreError, SessionStore> {
  const store = yield* SessionStore
  const all: Array<Message> = []
  let cursor: number | undefined
  do {
    const page: Effect.Effect.Success<ReturnType<typeof store.messages>> = yield* store.messages({
      sessionID,
      cursor,
      limit: 100
    })
    all.push(...page.items)
    cursor = page.cursor
  } while (cursor !== undefined)
  return all
})

/** Returns the request of the turn that contains the event at `at`, or of the last turn before it. */
export const shownAt = Effect.fn("Recorded.shownAt")(function* (
  sessionID: SessionID,
  at: number
): Effect.fn.Return<ShownRequest, NothingShown | ReadError | StoreError, EventLog | SessionStore> {
  const sent = yield* sentAt(sessionID, at)
  if (sent === undefined || sent.frame.system.length === 0) {
    // Fails here if the session does not exist or the framed event has expired: that is the real reason.
    yield* (yield* EventLog).read({ sessionID, limit: 1 })
    return yield* new NothingShown({ sessionID, at })
  }
  const { agent, frame, model, step } = sent
  const history = yield* historyAt(sessionID, { baselineSeq: frame.baselineSeq, before: step.seq })
  const messages = conversation(history, shownBy(sent)).flatMap(({ shown }) => shown)
  const estimated = estimate({ system: frame.system, messages, tools: frame.tools })
  return { sessionID, agent, model, frame, messages, estimate: estimated, step }
})

/**
 * The messages that request was built from, oldest first: the history just before the event at `before`. Reads only
 * from the last checkpoint on. A part that ended later appears as it was then.
 */
export const historyAt = Effect.fn("Recorded.historyAt")(function* (
  sessionID: SessionID,
  { baselineSeq, before }: { readonly baselineSeq: number; readonly before: number }
): Effect.fn.Return<ReadonlyArray<Message>, ReadError | StoreError, EventLog | SessionStore> {
  const log = yield* EventLog
  const start = yield* (yield* SessionStore).contextAt(sessionID, { baselineSeq, before })
  const { from, kept } = start
  const tables = MemoryTables.make()
  const events = new Map(start.events)
  for (const row of start.inputs) tables.load("session_input", row)
  for (const row of start.told) tables.load("session_message", row)
  for (const row of start.settled) {
    tables.load("session_message", row)
    if (row.seq === from) for (const each of kept) tables.load("session_message", each)
  }
  for (const row of start.parts) tables.load("session_part", row)
  let cursor = start.after
  for (let hasMore = true; hasMore && cursor < before - 1;) {
    const page = yield* log.read({ sessionID, after: cursor, limit: Math.min(512, before - 1 - cursor) })
    for (const event of page.events) {
      tables.apply(shownChanges(event))
      events.set(event.seq, Either.right(event))
      if (event.seq === from) for (const row of kept) tables.load("session_message", row)
    }
    cursor = page.cursor
    hasMore = page.hasMore
  }
  const all = yield* assemble(sessionID, {
    messages: tables.rows("session_message"),
    parts: tables.rows("session_part"),
    inputs: tables.rows("session_input"),
    events
  })
  return edited(all).filter(({ seq, type }) => type !== "system" || seq > baselineSeq)
})
