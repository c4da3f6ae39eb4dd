/**
 * Says which events outlive their removal from the log although no row refers to them: requests above the floor and the
 * list of decisions are read from them. Events that rows refer to are kept too; the rest is dropped. Pure. Spec: RT-7.
 */
import type { DurableType } from "../events/SessionEvents.ts"
import { questionTool } from "../store/QuestionStore.ts"

/** The types whose events are always kept. */
const kept: ReadonlySet<string> = new Set([
  // Names the agent that the session was created for.
  "session.created",
  // What a resume continues is read from them (RQ-45).
  "session.next.activity.started",
  "session.next.activity.settled",
  // The frame of a request above the floor, and the epoch, are folded from them (RQ-34).
  "session.next.request.framed",
  "session.next.context.updated",
  "session.next.context.pruned",
  // It may be later than the floor that its message is below.
  "session.next.context.edited",
  "session.next.part.withheld",
  "session.next.permission.decided",
  "session.next.permission.revoked"
] satisfies ReadonlyArray<DurableType>)

/** Whether an event of this type is kept without a row that refers to it. */
export const isKept = (type: DurableType): boolean => kept.has(type)

/** The events that `permissions audit` lists, over all sessions. */
export const isDecision = (type: DurableType): boolean => type.startsWith("session.next.permission.")

/** The tools whose calls are selected by their names: their parts keep their rows (ST-37). */
export const toolsWithRows: ReadonlyArray<string> = ["todo", questionTool]
