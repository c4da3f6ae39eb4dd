/**
 * Decides where a session's log may be cut. A safe boundary is the end of an activity or of a live shell at which nothing
 * is open: no later event changes a message, part or input made up to it. Pure; it reads only the types of events. Live
 * shells hold nothing back: no row is made of their events. Spec: RT-1, RT-2.
 */
import type { DurableType } from "../events/SessionEvents.ts"

/** How many of each kind are open. */
export interface Open {
  readonly inputs: number
  readonly activities: number
  readonly steps: number
  /** Texts and reasonings of the current step. */
  readonly texts: number
  readonly calls: number
  readonly shells: number
  readonly compactions: number
  /** Whether an event of a type that this build does not know was seen: nothing is known about what refers to it. */
  readonly unknown: boolean
}

/** The state at a floor, and before the first event. */
export const nothingOpen: Open = {
  inputs: 0,
  activities: 0,
  steps: 0,
  texts: 0,
  calls: 0,
  shells: 0,
  compactions: 0,
  unknown: false
}

type Counted = Exclude<keyof Open, "unknown">

/** What each type opens (+1) or closes (-1). */
const effects: { readonly [Type in DurableType]: readonly [counted: Counted, by: 1 | -1] | undefined } = {
  "session.created": undefined,
  "session.next.addressed": undefined,
  "session.next.agent.switched": undefined,
  "session.next.model.switched": undefined,
  "session.next.moved": undefined,
  "session.next.renamed": undefined,
  "session.next.prompted": undefined,
  "session.next.prompt.admitted": ["inputs", 1],
  "session.next.prompt.promoted": ["inputs", -1],
  "session.next.prompt.withdrawn": ["inputs", -1],
  "session.next.interrupt.requested": undefined,
  "session.next.activity.started": ["activities", 1],
  "session.next.activity.settled": ["activities", -1],
  "session.next.request.framed": undefined,
  "session.next.instructions.discovered": undefined,
  "session.next.context.updated": undefined,
  "session.next.synthetic": undefined,
  "session.next.shell.started": ["shells", 1],
  "session.next.shell.ended": ["shells", -1],
  "session.next.step.started": ["steps", 1],
  "session.next.step.ended": ["steps", -1],
  "session.next.step.failed": ["steps", -1],
  "session.next.text.started": ["texts", 1],
  "session.next.text.ended": ["texts", -1],
  "session.next.reasoning.started": ["texts", 1],
  "session.next.reasoning.ended": ["texts", -1],
  "session.next.tool.input.started": ["calls", 1],
  "session.next.tool.input.ended": undefined,
  "session.next.tool.called": undefined,
  "session.next.tool.progress": undefined,
  "session.next.tool.success": ["calls", -1],
  "session.next.tool.failed": ["calls", -1],
  "session.next.retried": undefined,
  "session.next.compaction.requested": undefined,
  "session.next.compaction.started": ["compactions", 1],
  "session.next.compaction.ended": ["compactions", -1],
  "session.next.compaction.failed": ["compactions", -1],
  "session.next.context.pruned": undefined,
  "session.next.context.edited": undefined,
  "session.next.part.withheld": undefined,
  "session.next.leaf.moved": undefined,
  "session.next.branch.summarized": undefined,
  "session.next.labeled": undefined,
  "session.next.forked": undefined,
  "session.next.files.changed": undefined,
  "session.next.files.restored": undefined,
  "session.next.question.answered": undefined,
  "session.next.question.dismissed": undefined,
  "session.next.permission.decided": undefined,
  "session.next.permission.revoked": undefined,
  "session.next.budget.set": undefined,
  "session.next.imported": undefined,
  "session.next.shell.opened": undefined,
  "session.next.shell.executed": undefined,
  "session.next.shell.blocked": undefined,
  "session.next.shell.checkpointed": undefined,
  "session.next.shell.restored": undefined,
  "session.next.shell.closed": undefined
}

const isKnown = (type: string): type is DurableType => Object.hasOwn(effects, type)

/** A stored name without its version. */
const typeOf = (stored: string): string => stored.slice(0, stored.lastIndexOf("."))

/** The state after an event, given its stored name `<type>.<version>`. */
export const after = (open: Open, stored: string): Open => {
  const type = typeOf(stored)
  if (!isKnown(type)) return { ...open, unknown: true }
  const effect = effects[type]
  if (effect === undefined) return open
  const [counted, by] = effect
  // Of these a session has one at a time: a start after a crash replaces one that never ended. Older logs have ends
  // without a start.
  const most = counted === "activities" || counted === "steps" || counted === "compactions" ? 1 : Infinity
  const next = { ...open, [counted]: Math.min(most, Math.max(0, open[counted] + by)) }
  // A process that dies leaves texts open; its recovery ends the step, and nothing ends those texts later.
  return type === "session.next.step.ended" || type === "session.next.step.failed" ? { ...next, texts: 0 } : next
}

/** The ends at which a log may be cut: a session that only records live shells has no activities. */
const ends: ReadonlySet<string> = new Set([
  "session.next.activity.settled",
  "session.next.shell.closed"
] satisfies ReadonlyArray<DurableType>)

/** Whether the log may be cut after this event, where `open` is the state after it. */
export const isSafe = (open: Open, stored: string): boolean =>
  ends.has(typeOf(stored)) &&
  !open.unknown &&
  open.inputs + open.activities + open.steps + open.texts + open.calls + open.shells + open.compactions === 0
