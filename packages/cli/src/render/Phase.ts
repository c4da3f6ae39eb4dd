/** What a run waits for, after each event. Pure. Spec: CL-45 in specs/cli.md. */
import type { LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"

/** What the run waits for, apart from running calls. */
export type Phase =
  | { readonly type: "queued" | "waiting" | "thinking" | "answering" | "summarising" | "stopping" }
  | { readonly type: "calling"; readonly tool: string }
  | {
      readonly type: "retrying"
      readonly attempt: number
      readonly attempts: number | undefined
      readonly until: number | undefined
    }

/** What the run waits for after the event; undefined if that does not change. */
export const phaseAfter = (event: SessionEvent | LiveEvent): Phase | undefined => {
  switch (event.type) {
    case "session.next.reasoning.started":
    case "session.next.reasoning.delta":
      return { type: "thinking" }
    case "session.next.text.started":
    case "session.next.text.delta":
      return { type: "answering" }
    case "session.next.tool.input.started":
      return { type: "calling", tool: event.data.name }
    case "session.next.compaction.started":
      return { type: "summarising" }
    case "session.next.retried": {
      const { attempt, attempts, waitMs } = event.data
      return { type: "retrying", attempt, attempts, until: waitMs === undefined ? undefined : event.created + waitMs }
    }
    case "session.next.tool.input.delta":
    case "session.next.tool.progress":
    case "session.next.compaction.delta":
    case "session.next.shell.opened":
    case "session.next.shell.executed":
    case "session.next.shell.blocked":
    case "session.next.shell.checkpointed":
    case "session.next.shell.restored":
    case "session.next.shell.closed":
      return undefined
    case "session.created":
    case "session.next.addressed":
    case "session.next.agent.switched":
    case "session.next.model.switched":
    case "session.next.moved":
    case "session.next.renamed":
    case "session.next.prompted":
    case "session.next.prompt.admitted":
    case "session.next.prompt.promoted":
    case "session.next.prompt.withdrawn":
    case "session.next.interrupt.requested":
    case "session.next.activity.started":
    case "session.next.activity.settled":
    case "session.next.request.framed":
    case "session.next.instructions.discovered":
    case "session.next.context.updated":
    case "session.next.synthetic":
    case "session.next.shell.started":
    case "session.next.shell.ended":
    case "session.next.step.started":
    case "session.next.step.ended":
    case "session.next.step.failed":
    case "session.next.text.ended":
    case "session.next.reasoning.ended":
    case "session.next.tool.input.ended":
    case "session.next.tool.called":
    case "session.next.tool.success":
    case "session.next.tool.failed":
    case "session.next.compaction.requested":
    case "session.next.compaction.ended":
    case "session.next.compaction.failed":
    case "session.next.context.pruned":
    case "session.next.context.edited":
    case "session.next.part.withheld":
    case "session.next.leaf.moved":
    case "session.next.branch.summarized":
    case "session.next.labeled":
    case "session.next.forked":
    case "session.next.files.changed":
    case "session.next.files.restored":
    case "session.next.question.answered":
    case "session.next.question.dismissed":
    case "session.next.permission.decided":
    case "session.next.permission.revoked":
    case "session.next.budget.set":
    case "session.next.imported":
      return { type: "waiting" }
    default:
      return event satisfies never
  }
}
