/**
 * Folds one event into row changes. Pure and total over the event types: no clock, no ids, no database. It never reads:
 * an event carries everything the fold needs (EV-9). Each group of tables has its changes in a file of its own.
 * Spec: specs/storage.md.
 */
import { addressKey } from "../domain/Address.ts"
import type { EventIn, SessionEvent } from "../events/SessionEvents.ts"
import { type Change, json, plain, plainOrNull } from "./Change.ts"
import {
  discovered,
  edited,
  inputAdmitted,
  inputTaken,
  labeled,
  leafMoved,
  message,
  partOpened,
  partUpdated,
  settled,
  stepSettled,
  toolUpdated
} from "./MessageChanges.ts"
import * as SessionChanges from "./SessionChanges.ts"

export const project = (event: SessionEvent): ReadonlyArray<Change> => {
  switch (event.type) {
    case "session.created":
      return [SessionChanges.created(event)]
    case "session.next.addressed":
      return [
        SessionChanges.updated(event, { address: addressKey(event.data.address), root: plainOrNull(event.data.root) })
      ]
    case "session.next.agent.switched":
      return [
        SessionChanges.updated(event, { agent: plain(event.data.agent) }),
        message(event, event.data.messageID, "agent-switched")
      ]
    case "session.next.model.switched":
      return [
        SessionChanges.updated(event, { model: json(event.data.model) }),
        message(event, event.data.messageID, "model-switched")
      ]
    case "session.next.moved":
      return [SessionChanges.moved(event)]
    case "session.next.renamed":
      // A name ends the search for one.
      return [SessionChanges.charged(event, event.data, { title: plain(event.data.title), provisional: null })]
    case "session.next.prompted":
      // Visible immediately: a later retry of the id finds a promoted input (IN-11).
      return [inputAdmitted(event, event.seq), message(event, event.data.messageID, "user")]
    case "session.next.prompt.admitted":
      return [inputAdmitted(event, null), SessionChanges.updated(event, {})]
    case "session.next.prompt.promoted":
      return [
        inputTaken(event, { promoted_seq: event.seq }),
        message(event, event.data.messageID, "user", { time_created: event.data.timeCreated })
      ]
    case "session.next.prompt.withdrawn":
      // `promoted_seq` is set once, so only one of promotion and withdrawal succeeds.
      return [
        inputTaken(event, { promoted_seq: event.seq, withdrawn_seq: event.seq }),
        SessionChanges.updated(event, {})
      ]
    case "session.next.activity.started":
      return [SessionChanges.activityStarted(event)]
    case "session.next.activity.settled":
      return [SessionChanges.activitySettled(event)]
    case "session.next.request.framed":
      return [SessionChanges.framed(event)]
    case "session.next.instructions.discovered":
      return [discovered(event)]
    case "session.next.context.updated":
      return [message(event, event.data.messageID, "system")]
    case "session.next.synthetic":
      return [message(event, event.data.messageID, "synthetic")]
    case "session.next.shell.started":
      return [
        message(event, event.data.messageID, "shell", { call_id: plain(event.data.callID) }),
        partOpened(event, event.data.callID, "shell", event.data.callID, { status: "running" })
      ]
    case "session.next.shell.ended":
      return [partUpdated(event, event.data.callID, "shell", event.data.callID, settled(event))]
    case "session.next.step.started":
      return [message(event, event.data.assistantMessageID, "assistant")]
    case "session.next.step.ended":
    case "session.next.step.failed":
      // A step is a turn, however it ends.
      return [stepSettled(event), SessionChanges.charged(event, event.data, {}, { turns: 1 })]
    case "session.next.text.started":
      return [partOpened(event, event.data.assistantMessageID, "text", event.data.textID)]
    case "session.next.text.ended":
      return [partUpdated(event, event.data.assistantMessageID, "text", event.data.textID, settled(event))]
    case "session.next.reasoning.started":
      return [
        partOpened(event, event.data.assistantMessageID, "reasoning", event.data.reasoningID, {
          opened: event.data.providerMetadata === undefined ? null : event.seq
        })
      ]
    case "session.next.reasoning.ended":
      return [partUpdated(event, event.data.assistantMessageID, "reasoning", event.data.reasoningID, settled(event))]
    case "session.next.tool.input.started":
      return [
        partOpened(event, event.data.assistantMessageID, "tool", event.data.callID, { name: plain(event.data.name) })
      ]
    case "session.next.tool.input.ended":
      return [toolUpdated(event, { raw: event.seq })]
    case "session.next.tool.called":
      // The decoded input replaces the raw text.
      return [
        toolUpdated(event, { status: "running", name: plain(event.data.tool), raw: null, called: event.seq }),
        SessionChanges.updated(event, {}, { tool_calls: 1 })
      ]
    case "session.next.tool.progress":
      return [toolUpdated(event, { progress: event.seq })]
    case "session.next.tool.success":
      return [toolUpdated(event, { progress: null, ...settled(event) })]
    case "session.next.tool.failed":
      return [toolUpdated(event, settled(event, "error"))]
    case "session.next.retried":
      return event.data.tokens === undefined ? [] : [SessionChanges.charged(event, event.data)]
    case "session.next.compaction.requested":
      return [SessionChanges.updated(event, { compaction_requested: event.data.messageID })]
    case "session.next.compaction.started":
      return [SessionChanges.compactionStarted(event)]
    case "session.next.compaction.ended":
      return [
        message(event, event.data.messageID, "compaction", {
          first_kept: event.data.firstKeptSeq ?? null,
          all_kept: event.data.keptSeq ?? null
        }),
        SessionChanges.charged(event, event.data, { compaction_running: null })
      ]
    case "session.next.compaction.failed":
      return [SessionChanges.charged(event, event.data, { compaction_running: null })]
    case "session.next.context.pruned":
      return [SessionChanges.updated(event, { pruned_seq: event.data.through })]
    case "session.next.context.edited":
    case "session.next.part.withheld":
      return [edited(event)]
    case "session.next.leaf.moved":
      return [SessionChanges.leafMoved(event), leafMoved(event)]
    case "session.next.branch.summarized":
      return [message(event, event.data.messageID, "branch-summary"), SessionChanges.charged(event, event.data)]
    case "session.next.labeled":
      return [labeled(event)]
    case "session.next.forked":
      return [SessionChanges.forked(event)]
    case "session.next.budget.set":
      return [SessionChanges.updated(event, { budget: json(event.data.budget) })]
    case "session.next.imported":
      return SessionChanges.imported(event)
    default:
      event satisfies EventIn<"prompts" | "tree" | "decisions" | "shells">
      return []
  }
}
