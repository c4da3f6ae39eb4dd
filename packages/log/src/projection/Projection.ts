/**
 * Folds one event into row changes. Pure and total over the event types: no clock, no ids, no database. It never reads:
 * an event carries everything the fold needs (EV-9). Each group of tables has its changes in a file of its own.
 * Spec: specs/projections.md.
 */
import type { EventIn, SessionEvent } from "../events/SessionEvents.ts"
import { type Change, json, plain } from "./Change.ts"
import * as Messages from "./MessageChanges.ts"
import { discovered } from "./MessageChanges.ts"
import * as Sessions from "./SessionChanges.ts"

/** Returns the changes of one event, in order. */
export const project = (event: SessionEvent): ReadonlyArray<Change> => {
  switch (event.type) {
    case "session.created":
      return [Sessions.created(event)]
    case "session.next.addressed":
      return [Sessions.addressed(event)]
    case "session.next.agent.switched":
      return [Sessions.updated(event, { agent: plain(event.data.agent) }), Messages.agentSwitched(event)]
    case "session.next.model.switched":
      return [Sessions.updated(event, { model: json(event.data.model) }), Messages.modelSwitched(event)]
    case "session.next.moved":
      return [Sessions.moved(event)]
    case "session.next.renamed":
      return [Sessions.renamed(event)]
    case "session.next.prompted":
      // Visible immediately: a later retry of the id finds a promoted input (IN-11).
      return [Messages.inputAdmitted(event, event.seq), Messages.prompted(event)]
    case "session.next.prompt.admitted":
      return [Messages.inputAdmitted(event, null), Sessions.updated(event, {})]
    case "session.next.prompt.promoted":
      return [Messages.inputPromoted(event), Messages.promoted(event)]
    case "session.next.prompt.withdrawn":
      return [Messages.inputWithdrawn(event), Sessions.updated(event, {})]
    case "session.next.activity.started":
      return [Sessions.activityStarted(event)]
    case "session.next.activity.settled":
      return [Sessions.activitySettled(event)]
    case "session.next.request.framed":
      return [Sessions.framed(event)]
    case "session.next.instructions.discovered":
      return [discovered(event)]
    case "session.next.context.updated":
      return [Messages.contextUpdated(event)]
    case "session.next.synthetic":
      return [Messages.synthetic(event)]
    case "session.next.shell.started":
      return [Messages.shellStarted(event), Messages.shellPartStarted(event)]
    case "session.next.shell.ended":
      return [Messages.shellPartEnded(event)]
    case "session.next.step.started":
      return [Messages.stepStarted(event)]
    case "session.next.step.ended":
    case "session.next.step.failed":
      return [Messages.stepSettled(event), Sessions.stepSettled(event)]
    case "session.next.text.started":
      return [Messages.textStarted(event)]
    case "session.next.text.ended":
      return [Messages.textEnded(event)]
    case "session.next.reasoning.started":
      return [Messages.reasoningStarted(event)]
    case "session.next.reasoning.ended":
      return [Messages.reasoningEnded(event)]
    case "session.next.tool.input.started":
      return [Messages.toolInputStarted(event)]
    case "session.next.tool.input.ended":
      return [Messages.toolInputEnded(event)]
    case "session.next.tool.called":
      return [Messages.toolCalled(event), Sessions.toolCalled(event)]
    case "session.next.tool.progress":
      return [Messages.toolProgress(event)]
    case "session.next.tool.success":
      return [Messages.toolSuccess(event)]
    case "session.next.tool.failed":
      return [Messages.toolFailed(event)]
    case "session.next.retried":
      return event.data.tokens === undefined ? [] : [Sessions.charged(event, event.data)]
    case "session.next.compaction.requested":
      return [Sessions.updated(event, { compaction_requested: event.data.messageID })]
    case "session.next.compaction.started":
      return [Sessions.compactionStarted(event)]
    case "session.next.compaction.ended":
      return [Messages.compactionEnded(event), Sessions.charged(event, event.data, { compaction_running: null })]
    case "session.next.compaction.failed":
      return [Sessions.charged(event, event.data, { compaction_running: null })]
    case "session.next.context.pruned":
      return [Sessions.updated(event, { pruned_seq: event.data.through })]
    case "session.next.context.edited":
      return [Messages.contextEdited(event)]
    case "session.next.part.withheld":
      return [Messages.partWithheld(event)]
    case "session.next.leaf.moved":
      return [Sessions.leafMoved(event), Messages.leafMoved(event)]
    case "session.next.branch.summarized":
      return [Messages.branchSummarized(event), Sessions.charged(event, event.data)]
    case "session.next.labeled":
      return [Messages.labeled(event)]
    case "session.next.forked":
      return [Sessions.forked(event)]
    case "session.next.budget.set":
      return [Sessions.updated(event, { budget: json(event.data.budget) })]
    case "session.next.imported":
      return Sessions.imported(event)
    default:
      event satisfies EventIn<"prompts" | "tree" | "decisions" | "shells">
      return []
  }
}
