/** The changes to `session`: one row per session. Pure. */
import * as HistoryPath from "../domain/HistoryPath.ts"
import type { Tokens } from "../domain/Values.ts"
import type { EventOfType, SessionEvent } from "../events/SessionEvents.ts"
import { type Change, json, plain, plainOrNull } from "./Change.ts"
import type { SessionRow } from "./Tables.ts"

/** The origin as JSON; null without one. */
const originOf = ({ data: { cronJobID, source } }: EventOfType<"session.created">): string | null =>
  source === undefined && cronJobID === undefined
    ? null
    : json({ ...(source === undefined ? {} : { source }), ...(cronJobID === undefined ? {} : { cronJobID }) })

export const created = (event: EventOfType<"session.created">): Change => ({
  op: "insert",
  table: "session",
  row: {
    id: event.sessionID,
    parent_id: event.data.parentID ?? null,
    directory: plain(event.data.location.directory),
    location: json(event.data.location),
    title: plainOrNull(event.data.title),
    agent: plainOrNull(event.data.agent),
    model: event.data.model === undefined ? null : json(event.data.model),
    cost: 0,
    tokens_input: 0,
    tokens_output: 0,
    tokens_reasoning: 0,
    tokens_cache_read: 0,
    tokens_cache_write: 0,
    activity_id: null,
    activity_state: null,
    time_created: event.created,
    time_updated: event.created,
    activity_error: null,
    frame: null,
    pruned_seq: null,
    compaction_requested: null,
    compaction_running: null,
    budget: null,
    address: null,
    root: null,
    epoch: null,
    baseline_seq: null,
    imported: null,
    path: null,
    forked: null,
    origin: originOf(event),
    instructions: plainOrNull(event.data.instructions),
    provisional: event.data.provisional === true ? 1 : null,
    turns: 0,
    tool_calls: 0,
    duration_ms: 0
  }
})

/** Sets columns and the time of the last update, and adds to numbers. */
export const updated = (event: SessionEvent, set: Partial<SessionRow>, add?: Partial<SessionRow>): Change => ({
  op: "update",
  table: "session",
  key: { id: event.sessionID },
  set: { ...set, time_updated: event.created },
  ...(add === undefined ? {} : { add })
})

/** Adds the cost and tokens of a provider request to the session's totals. */
export const charged = (
  event: SessionEvent,
  { cost, tokens }: { readonly cost?: number | undefined; readonly tokens?: Tokens | undefined },
  set: Partial<SessionRow> = {},
  add: Partial<SessionRow> = {}
): Change =>
  updated(event, set, {
    ...add,
    ...(cost === undefined ? {} : { cost }),
    ...(tokens === undefined
      ? {}
      : {
          tokens_input: tokens.input,
          tokens_output: tokens.output,
          tokens_reasoning: tokens.reasoning,
          tokens_cache_read: tokens.cache.read,
          tokens_cache_write: tokens.cache.write
        })
  })

/** The destination starts with a new epoch (EP-9). */
export const moved = (event: EventOfType<"session.next.moved">): Change =>
  updated(event, {
    directory: plain(event.data.location.directory),
    location: json(event.data.location),
    epoch: null
  })

export const framed = (event: EventOfType<"session.next.request.framed">): Change => {
  const { baselineSeq, context, hash } = event.data
  return updated(event, {
    frame: plain(hash),
    ...(baselineSeq === undefined ? {} : { baseline_seq: baselineSeq }),
    ...(context === undefined ? {} : { epoch: event.seq })
  })
}

/** A fold never reads, so the duration is the sum of the ends less the sum of the starts. */
export const activityStarted = (event: EventOfType<"session.next.activity.started">): Change =>
  updated(
    event,
    { activity_id: event.data.activityID, activity_state: "running", activity_error: null },
    { duration_ms: -event.created }
  )

export const activitySettled = (event: EventOfType<"session.next.activity.settled">): Change => {
  const { activityID, error, outcome, stoppedAt = event.created } = event.data
  return updated(
    event,
    { activity_id: activityID, activity_state: outcome, activity_error: error === undefined ? null : json(error) },
    { duration_ms: stoppedAt }
  )
}

/** Reports how far an import has come, and charges what subagents spent. */
export const imported = (event: EventOfType<"session.next.imported">): ReadonlyArray<Change> => {
  const { data } = event
  if (data.log === undefined && data.tokens === undefined) return []
  return [charged(event, data, data.log === undefined ? {} : { imported: json(data.log) })]
}

/** A manual compaction answers the request; an automatic one leaves it pending. */
export const compactionStarted = (event: EventOfType<"session.next.compaction.started">): Change => {
  const { messageID, reason } = event.data
  return updated(event, {
    compaction_running: messageID,
    ...(reason === "manual" ? { compaction_requested: null } : {})
  })
}

/** The history continues elsewhere: with a new epoch, and all tool results shown (HP-8). */
export const leafMoved = (event: EventOfType<"session.next.leaf.moved">): Change =>
  updated(event, { path: json(HistoryPath.moved(event.data.path, event.seq)), epoch: null, pruned_seq: null })

/** The repeated events were paid for and counted in the session that they come from. */
export const forked = (event: EventOfType<"session.next.forked">): Change =>
  updated(event, {
    forked: json({ ...event.data, seq: event.seq }),
    cost: 0,
    tokens_input: 0,
    tokens_output: 0,
    tokens_reasoning: 0,
    tokens_cache_read: 0,
    tokens_cache_write: 0,
    turns: 0,
    tool_calls: 0
  })
