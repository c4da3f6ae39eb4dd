/**
 * Folds one event into row changes. Pure and total over the event types: no clock, no ids, no database. It never reads:
 * an event carries everything the fold needs (EV-9). Each group of tables has its changes in a file of its own.
 * Spec: specs/storage.md.
 */
import type { EventIn, SessionEvent } from "../events/SessionEvents.ts"
import { type Change, json, plain } from "./Change.ts"
import * as MessageChanges from "./MessageChanges.ts"
import { discovered } from "./MessageChanges.ts"
import * as SessionChanges from "./SessionChanges.ts"

export const project = (event: SessionEvent): ReadonlyArray<Change> => {
  switch (event.type) {
    case "session.created":
      return [SessionChanges.created(event)]
    case "session.next.addressed":
      return [SessionChanges.addressed(event)]
    case "session.next.agent.switched":
      return [SessionChanges.updated(event, { agent: plain(event.data.agent) }), MessageChanges.agentSwitched(event)]
    case "session.next.model.switched":
      return [SessionChanges.updated(event, { model: json(event.data.model) }), MessageChanges.modelSwitched(event)]
    case "session.next.moved":
      return [SessionChanges.moved(event)]
    case "session.next.renamed":
      return [SessionChanges.renamed(event)]
    case "session.next.prompted":
      // Visible immediately: a later retry of the id finds a promoted input (IN-11).
      return [MessageChanges.inputAdmitted(event, event.seq), MessageChanges.prompted(event)]
    case "session.next.prompt.admitted":
      return [MessageChanges.inputAdmitted(event, null), SessionChanges.updated(event, {})]
    case "session.next.prompt.promoted":
      return [MessageChanges.inputPromoted(event), MessageChanges.promoted(event)]
    case "session.next.prompt.withdrawn":
      return [MessageChanges.inputWithdrawn(event), SessionChanges.updated(event, {})]
    case "session.next.activity.started":
      return [SessionChanges.activityStarted(event)]
    case "session.next.activity.settled":
      return [SessionChanges.activitySettled(event)]
    case "session.next.request.framed":
      return [SessionChanges.framed(event)]
    case "session.next.instructions.discovered":
      return [discovered(event)]
    case "session.next.context.updated":
      return [MessageChanges.contextUpdated(event)]
    case "session.next.synthetic":
      return [MessageChanges.synthetic(event)]
    case "session.next.shell.started":
      return [MessageChanges.shellStarted(event), MessageChanges.shellPartStarted(event)]
    case "session.next.shell.ended":
      return [MessageChanges.shellPartEnded(event)]
    case "session.next.step.started":
      return [MessageChanges.stepStarted(event)]
    case "session.next.step.ended":
    case "session.next.step.failed":
      return [MessageChanges.stepSettled(event), SessionChanges.stepSettled(event)]
    case "session.next.text.started":
      return [MessageChanges.textStarted(event)]
    case "session.next.text.ended":
      return [MessageChanges.textEnded(event)]
    case "session.next.reasoning.started":
      return [MessageChanges.reasoningStarted(event)]
    case "session.next.reasoning.ended":
      return [MessageChanges.reasoningEnded(event)]
    case "session.next.tool.input.started":
      return [MessageChanges.toolInputStarted(event)]
    case "session.next.tool.input.ended":
      return [MessageChanges.toolInputEnded(event)]
    case "session.next.tool.called":
      return [MessageChanges.toolCalled(event), SessionChanges.toolCalled(event)]
    case "session.next.tool.progress":
      return [MessageChanges.toolProgress(event)]
    case "session.next.tool.success":
      return [MessageChanges.toolSuccess(event)]
    case "session.next.tool.failed":
      return [MessageChanges.toolFailed(event)]
    case "session.next.retried":
      return event.data.tokens === undefined ? [] : [SessionChanges.charged(event, event.data)]
    case "session.next.compaction.requested":
      return [SessionChanges.updated(event, { compaction_requested: event.data.messageID })]
    case "session.next.compaction.started":
      return [SessionChanges.compactionStarted(event)]
    case "session.next.compaction.ended":
      return [
        MessageChanges.compactionEnded(event),
        SessionChanges.charged(event, event.data, { compaction_running: null })
      ]
    case "session.next.compaction.failed":
      return [SessionChanges.charged(event, event.data, { compaction_running: null })]
    case "session.next.context.pruned":
      return [SessionChanges.updated(event, { pruned_seq: event.data.through })]
    case "session.next.context.edited":
      return [MessageChanges.contextEdited(event)]
    case "session.next.part.withheld":
      return [MessageChanges.partWithheld(event)]
    case "session.next.leaf.moved":
      return [SessionChanges.leafMoved(event), MessageChanges.leafMoved(event)]
    case "session.next.branch.summarized":
      return [MessageChanges.branchSummarized(event), SessionChanges.charged(event, event.data)]
    case "session.next.labeled":
      return [MessageChanges.labeled(event)]
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
