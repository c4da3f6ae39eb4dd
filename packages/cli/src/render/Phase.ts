/** What a run waits for, after each event. Pure. Spec: CL-45 in specs/cli.md. */
import type { EventIn, LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"

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
    default:
      event satisfies EventIn<
        "about" | "prompts" | "steps" | "requests" | "texts" | "calls" | "compactions" | "tree" | "decisions"
      >
      return { type: "waiting" }
  }
}
