/**
 * Folds one event into row changes. Pure and total over the event types: no clock, no ids, no database. It never reads:
 * an event carries everything the fold needs (EV-9). Spec: specs/projections.md.
 */
import { addressKey } from "../domain/Address.ts"
import type { Tokens } from "../domain/Values.ts"
import type { EventOfType, SessionEvent } from "../events/SessionEvents.ts"
import type { Change } from "./Change.ts"
import type { MessageRow, PartRow, SessionRow } from "./Tables.ts"

const json = (value: unknown): string => JSON.stringify(value)

/** Text columns are UTF-8, which cannot encode a lone surrogate: it becomes U+FFFD here, not in the driver. */
export const plain = (value: string): string => value.replace(/\p{Surrogate}/gu, "\uFFFD")

const plainOrNull = (value: string | undefined): string | null => (value === undefined ? null : plain(value))

const session = (event: SessionEvent, set: Partial<SessionRow>, add?: Partial<SessionRow>): Change => ({
  op: "update",
  table: "session",
  key: { id: event.sessionID },
  set: { ...set, time_updated: event.created },
  ...(add === undefined ? {} : { add })
})

const message = (event: SessionEvent, id: string, type: string, row: Partial<MessageRow>): Change => ({
  op: "insert",
  table: "session_message",
  row: {
    id,
    session_id: event.sessionID,
    seq: event.seq,
    parent_id: null,
    type,
    data: null,
    settled: null,
    time_created: event.created,
    time_settled: null,
    ...row
  }
})

const settleMessage = (event: SessionEvent, id: string, settled: unknown): Change => ({
  op: "update",
  table: "session_message",
  key: { id, session_id: event.sessionID },
  set: { settled: json(settled), time_settled: event.created }
})

/** A shell's output is a part with its call id as message id, because the event that ends it names no message. */
type Kind = "text" | "reasoning" | "tool" | "shell"

const openPart = (event: SessionEvent, messageID: string, kind: Kind, key: string, row: Partial<PartRow>): Change => ({
  op: "insert",
  table: "session_part",
  row: {
    session_id: event.sessionID,
    message_id: plain(messageID),
    kind,
    key: plain(key),
    seq: event.seq,
    name: null,
    status: "pending",
    opened: null,
    raw: null,
    called: null,
    progress: null,
    settled: null,
    time_created: event.created,
    time_ran: null,
    time_settled: null,
    ...row
  }
})

const updatePart = (
  event: SessionEvent,
  messageID: string,
  kind: Kind,
  key: string,
  set: Partial<PartRow>
): Change => ({
  op: "update",
  table: "session_part",
  key: { message_id: plain(messageID), kind, key: plain(key), session_id: event.sessionID },
  set
})

const created = (event: EventOfType<"session.created">): Change => ({
  op: "insert",
  table: "session",
  row: {
    id: event.sessionID,
    parent_id: event.data.parentID ?? null,
    leaf_id: null,
    directory: plain(event.data.location.directory),
    location: json(event.data.location),
    title: event.data.title === undefined ? null : plain(event.data.title),
    agent: event.data.agent === undefined ? null : plain(event.data.agent),
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
    root: null
  }
})

const input = (
  event: EventOfType<"session.next.prompt.admitted" | "session.next.prompted">,
  promotedSeq: number | null
): Change => ({
  op: "insert",
  table: "session_input",
  row: {
    id: event.data.messageID,
    session_id: event.sessionID,
    prompt: json(event.data.prompt),
    delivery: event.data.delivery,
    admitted_seq: event.seq,
    promoted_seq: promotedSeq,
    time_created: event.created,
    withdrawn_seq: null
  }
})

/** Cost and tokens of a provider request, to add to the session's totals. */
const spent = ({ cost, tokens }: { readonly cost?: number | undefined; readonly tokens?: Tokens | undefined }) => ({
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

/** Returns the changes of one event, in order. */
export const project = (event: SessionEvent): ReadonlyArray<Change> => {
  switch (event.type) {
    case "session.created":
      return [created(event)]
    case "session.next.addressed":
      return [session(event, { address: addressKey(event.data.address), root: plainOrNull(event.data.root) })]
    case "session.next.agent.switched":
      return [
        session(event, { agent: plain(event.data.agent) }),
        message(event, event.data.messageID, "agent-switched", { data: json({ agent: event.data.agent }) })
      ]
    case "session.next.model.switched":
      return [
        session(event, { model: json(event.data.model) }),
        message(event, event.data.messageID, "model-switched", { data: json({ model: event.data.model }) })
      ]
    case "session.next.moved":
      return [session(event, { directory: plain(event.data.location.directory), location: json(event.data.location) })]
    case "session.next.renamed":
      return [session(event, { title: plain(event.data.title) })]
    case "session.next.prompted":
      // Visible immediately: a later retry of the id finds a promoted input (IN-11).
      return [input(event, event.seq), message(event, event.data.messageID, "user", {})]
    case "session.next.prompt.admitted":
      return [input(event, null), session(event, {})]
    case "session.next.prompt.promoted":
      return [
        {
          op: "update",
          table: "session_input",
          key: { id: event.data.messageID, session_id: event.sessionID },
          set: { promoted_seq: event.seq }
        },
        message(event, event.data.messageID, "user", { time_created: event.data.timeCreated })
      ]
    case "session.next.prompt.withdrawn":
      return [
        {
          op: "update",
          table: "session_input",
          key: { id: event.data.messageID, session_id: event.sessionID },
          // `promoted_seq` is set once, so only one of promotion and withdrawal succeeds.
          set: { promoted_seq: event.seq, withdrawn_seq: event.seq }
        },
        session(event, {})
      ]
    case "session.next.activity.started":
      return [session(event, { activity_id: event.data.activityID, activity_state: "running", activity_error: null })]
    case "session.next.activity.settled": {
      const { activityID, error, outcome } = event.data
      return [
        session(event, {
          activity_id: activityID,
          activity_state: outcome,
          activity_error: error === undefined ? null : json(error)
        })
      ]
    }
    case "session.next.request.framed":
      return [session(event, { frame: plain(event.data.hash) })]
    case "session.next.instructions.discovered":
      return [
        {
          op: "insert",
          table: "session_instruction",
          row: { session_id: event.sessionID, seq: event.seq, paths: json(event.data.paths) }
        }
      ]
    case "session.next.context.updated":
      return [message(event, event.data.messageID, "system", { data: json({ text: event.data.text }) })]
    case "session.next.synthetic":
      return [message(event, event.data.messageID, "synthetic", { data: json({ text: event.data.text }) })]
    case "session.next.shell.started":
      return [
        message(event, event.data.messageID, "shell", {
          data: json({ callID: event.data.callID, command: event.data.command })
        }),
        openPart(event, event.data.callID, "shell", event.data.callID, { status: "running" })
      ]
    case "session.next.shell.ended":
      return [
        updatePart(event, event.data.callID, "shell", event.data.callID, {
          status: "completed",
          settled: json({ output: event.data.output }),
          time_settled: event.created
        })
      ]
    case "session.next.step.started": {
      const { assistantMessageID, ...data } = event.data
      return [message(event, assistantMessageID, "assistant", { data: json(data) })]
    }
    case "session.next.step.ended": {
      const { assistantMessageID, ...settled } = event.data
      return [settleMessage(event, assistantMessageID, settled), session(event, {}, spent(settled))]
    }
    case "session.next.step.failed": {
      const { assistantMessageID, ...failed } = event.data
      return [
        settleMessage(event, assistantMessageID, { finish: "error", ...failed }),
        ...(failed.tokens === undefined ? [] : [session(event, {}, spent(failed))])
      ]
    }
    case "session.next.text.started":
      return [openPart(event, event.data.assistantMessageID, "text", event.data.textID, {})]
    case "session.next.text.ended":
      return [
        updatePart(event, event.data.assistantMessageID, "text", event.data.textID, {
          status: "completed",
          settled: json({ text: event.data.text }),
          time_settled: event.created
        })
      ]
    case "session.next.reasoning.started":
      return [
        openPart(event, event.data.assistantMessageID, "reasoning", event.data.reasoningID, {
          opened: event.data.providerMetadata === undefined ? null : json(event.data.providerMetadata)
        })
      ]
    case "session.next.reasoning.ended": {
      const { assistantMessageID, reasoningID, ...settled } = event.data
      return [
        updatePart(event, assistantMessageID, "reasoning", reasoningID, {
          status: "completed",
          settled: json(settled),
          time_settled: event.created
        })
      ]
    }
    case "session.next.tool.input.started":
      return [
        openPart(event, event.data.assistantMessageID, "tool", event.data.callID, { name: plain(event.data.name) })
      ]
    case "session.next.tool.input.ended":
      return [
        updatePart(event, event.data.assistantMessageID, "tool", event.data.callID, { raw: plain(event.data.text) })
      ]
    case "session.next.tool.called":
      return [
        updatePart(event, event.data.assistantMessageID, "tool", event.data.callID, {
          status: "running",
          name: plain(event.data.tool),
          // The decoded input replaces the raw text (3.1 of the reference's message states).
          raw: null,
          called: json({ input: event.data.input, provider: event.data.provider }),
          time_ran: event.created
        })
      ]
    case "session.next.tool.progress":
      return [
        updatePart(event, event.data.assistantMessageID, "tool", event.data.callID, {
          progress: json({ structured: event.data.structured, content: event.data.content })
        })
      ]
    case "session.next.tool.success": {
      const { assistantMessageID, callID, ...settled } = event.data
      return [
        updatePart(event, assistantMessageID, "tool", callID, {
          status: "completed",
          progress: null,
          settled: json(settled),
          time_settled: event.created
        })
      ]
    }
    case "session.next.tool.failed": {
      const { assistantMessageID, callID, ...settled } = event.data
      return [
        updatePart(event, assistantMessageID, "tool", callID, {
          status: "error",
          settled: json(settled),
          time_settled: event.created
        })
      ]
    }
    case "session.next.compaction.requested":
      return [session(event, { compaction_requested: event.data.messageID })]
    case "session.next.compaction.started": {
      const { messageID, reason } = event.data
      // A manual compaction answers the request; an automatic one leaves it pending.
      return [
        session(event, {
          compaction_running: messageID,
          ...(reason === "manual" ? { compaction_requested: null } : {})
        })
      ]
    }
    case "session.next.compaction.ended": {
      const { cost, estimated: _e, messageID, text, tokens, tokensBefore: _t, ...data } = event.data
      return [
        message(event, messageID, "compaction", { data: json({ ...data, summary: text }) }),
        session(event, { compaction_running: null }, spent({ cost, tokens }))
      ]
    }
    case "session.next.compaction.failed":
      return [session(event, { compaction_running: null }, spent(event.data))]
    case "session.next.context.pruned":
      return [session(event, { pruned_seq: event.data.through })]
    case "session.next.budget.set":
      return [session(event, { budget: json(event.data.budget) })]
    case "session.next.question.answered":
    case "session.next.question.dismissed":
    case "session.next.permission.decided":
    case "session.next.permission.revoked":
    case "session.next.interrupt.requested":
      return []
    case "session.next.retried":
      return event.data.tokens === undefined ? [] : [session(event, {}, spent(event.data))]
  }
}
