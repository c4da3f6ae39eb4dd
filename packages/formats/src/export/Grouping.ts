/**
 * Groups a session's events into those of one record each: a prompt, an answer, a result, a command, a change. Results
 * follow their answer. It holds the events of the open step, the waiting prompts, the running commands, and what came while
 * calls ran. `EntryRecord.ts` makes the records. Pure. Spec: IM-31, IM-32, IM-422, IM-423.
 */
import type { EventIn, SessionEvent } from "@daybook/log/events/SessionEvents"

/** The events of one record. */
export interface Group {
  readonly events: ReadonlyArray<SessionEvent>
  readonly time: number
  /** The sequence number of its last event. */
  readonly seq: number
  /** The result of a call whose answer is followed by messages already: it has no place behind them. */
  readonly late?: true
}

type Result = Extract<SessionEvent, { readonly type: "session.next.tool.success" | "session.next.tool.failed" }>

const isResult = (event: SessionEvent | undefined): event is Result =>
  event?.type === "session.next.tool.success" || event?.type === "session.next.tool.failed"

/** Events that make messages for the model, beside answers and results. */
const messages: ReadonlySet<SessionEvent["type"]> = new Set([
  "session.next.prompt.admitted",
  "session.next.prompted",
  "session.next.shell.started",
  "session.next.synthetic",
  "session.next.context.updated",
  "session.next.compaction.ended",
  "session.next.branch.summarized"
] as const)

const groupOf = (...events: ReadonlyArray<SessionEvent>): Group => {
  const last = events.at(-1)
  return { events, time: events[0]?.created ?? 0, seq: last?.seq ?? -1 }
}

/** Events that make no record, by type: what a log of another tool cannot hold. */
export type Dropped = Map<string, number>

/** Groups events, in order. */
export class Grouping {
  readonly dropped: Dropped = new Map()
  private readonly waiting = new Map<string, SessionEvent>()
  /** The prompts with an expansion. */
  private readonly expanded = new Set<string>()
  private readonly shells = new Map<string, SessionEvent>()
  private step: { readonly messageID: string; readonly events: Array<SessionEvent> } | undefined
  private results: Array<SessionEvent> = []
  /** The answer whose results can still be written, because no message follows it. */
  private answer: string | undefined
  /** Its calls without a result. */
  private open = new Set<string>()
  /** What came while these calls were open: providers refuse a message between a call and its result. */
  private held: Array<Group> = []

  private drop(event: SessionEvent): ReadonlyArray<Group> {
    this.dropped.set(event.type, (this.dropped.get(event.type) ?? 0) + 1)
    return []
  }

  /** Takes the next event and returns the groups that it completes, each result right behind its answer. */
  next(event: SessionEvent): ReadonlyArray<Group> {
    return this.group(event).flatMap((group) => this.place(group))
  }

  /** Takes the events of a record that is written already. */
  follow(events: ReadonlyArray<SessionEvent>): void {
    for (const event of events) {
      if (event.type === "session.next.step.started") this.waitFor(event.data.assistantMessageID)
      else if (event.type === "session.next.leaf.moved") this.waitFor(event.data.messageID)
      else if (event.type === "session.next.tool.called") this.open.add(event.data.callID)
      else if (isResult(event) && event.data.assistantMessageID === this.answer) this.open.delete(event.data.callID)
      else if (messages.has(event.type)) this.waitFor(undefined)
    }
  }

  private waitFor(answer: string | undefined): void {
    this.answer = answer
    this.open.clear()
  }

  /** Whether the event is a result that the last answer waits for. */
  awaits(event: SessionEvent): boolean {
    return isResult(event) && event.data.assistantMessageID === this.answer && this.open.has(event.data.callID)
  }

  /** Counts a group that the format cannot hold. */
  leaveOut({ events }: Group): void {
    for (const event of events) this.drop(event)
  }

  private place(group: Group): ReadonlyArray<Group> {
    const [first] = group.events
    if (isResult(first)) {
      if (first.data.assistantMessageID !== this.answer) return [{ ...group, late: true }]
      this.follow(group.events)
      return this.open.size > 0 ? [group] : [group, ...this.release()]
    }
    const endsWait = first?.type === "session.next.step.started" || first?.type === "session.next.leaf.moved"
    if (this.open.size > 0 && !endsWait) {
      this.held.push(group)
      return []
    }
    const held = this.release()
    this.follow(group.events)
    return [...held, group]
  }

  private release(): ReadonlyArray<Group> {
    const { held } = this
    this.held = []
    this.open.clear()
    for (const { events } of held) this.follow(events)
    return held
  }

  private group(event: SessionEvent): ReadonlyArray<Group> {
    switch (event.type) {
      case "session.next.prompt.admitted":
        this.waiting.set(event.data.messageID, event)
        if (event.data.prompt.expansion !== undefined) this.expanded.add(event.data.messageID)
        return []
      case "session.next.prompt.promoted": {
        const admitted = this.waiting.get(event.data.messageID)
        this.waiting.delete(event.data.messageID)
        return admitted === undefined ? [] : [{ ...groupOf(admitted, event), time: event.data.timeCreated }]
      }
      case "session.next.prompt.withdrawn":
        this.waiting.delete(event.data.messageID)
        return this.drop(event)
      case "session.next.step.started": {
        const cutOff = this.closeStep()
        this.step = { messageID: event.data.assistantMessageID, events: [event] }
        return cutOff
      }
      case "session.next.step.ended":
      case "session.next.step.failed":
        this.step?.events.push(event)
        return this.closeStep()
      case "session.next.text.started":
      case "session.next.text.ended":
      case "session.next.reasoning.started":
      case "session.next.reasoning.ended":
      case "session.next.tool.input.started":
      case "session.next.tool.called":
        this.step?.events.push(event)
        return []
      case "session.next.tool.success":
      case "session.next.tool.failed":
        // A result follows its answer, also if the tool ended first.
        if (this.step?.messageID !== event.data.assistantMessageID) return [groupOf(event)]
        this.results.push(event)
        return []
      case "session.next.shell.started":
        this.shells.set(event.data.callID, event)
        return []
      case "session.next.shell.ended": {
        const started = this.shells.get(event.data.callID)
        this.shells.delete(event.data.callID)
        return started === undefined ? [] : [groupOf(started, event)]
      }
      case "session.next.synthetic":
      case "session.next.context.updated":
      case "session.next.compaction.ended":
      case "session.next.branch.summarized":
      case "session.next.model.switched":
      case "session.next.agent.switched":
      case "session.next.renamed":
      case "session.next.labeled":
      case "session.next.context.edited":
      case "session.next.leaf.moved":
      case "session.next.prompted":
        return [groupOf(event)]
      case "session.next.part.withheld": {
        const { callID, index, messageID } = event.data
        // No format holds the expansion of a prompt, to whose parts the index belongs.
        const isLost = callID === undefined && index !== undefined && this.expanded.has(messageID)
        return isLost ? this.drop(event) : [groupOf(event)]
      }
      case "session.created":
      case "session.next.imported":
      case "session.next.tool.input.ended":
      case "session.next.tool.progress":
      case "session.next.activity.started":
      case "session.next.activity.settled":
      case "session.next.compaction.requested":
      case "session.next.compaction.started":
      case "session.next.compaction.failed":
      case "session.next.interrupt.requested":
        return []
      default:
        event satisfies EventIn<"about" | "steps" | "requests" | "compactions" | "tree" | "decisions" | "shells">
        return this.drop(event)
    }
  }

  /** The end of the session: a step that has not ended, and what waits. */
  end(): ReadonlyArray<Group> {
    const last = this.closeStep().flatMap((group) => this.place(group))
    return [...last, ...this.release()]
  }

  private closeStep(): ReadonlyArray<Group> {
    const { results, step } = this
    this.step = undefined
    this.results = []
    return step === undefined ? [] : [groupOf(...step.events), ...results.map((event) => groupOf(event))]
  }
}
