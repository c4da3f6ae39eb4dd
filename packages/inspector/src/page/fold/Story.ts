/** Folds a session's events into timeline, spending, context epochs and requests, in one pass. Pure. Spec: IP-11. */
import type { EventIn, EventOfType, SessionEvent } from "@daybook/log/events/SessionEvents"

import type { Budget, Tokens } from "@daybook/log/domain/Values"
import { withheldText } from "@daybook/log/domain/Message"
import { type Lane, type Outcome, Timeline } from "./Timeline.ts"

/** One provider request that ended. */
export interface RequestCost {
  readonly seq: number
  readonly at: number
  readonly input: number
  readonly output: number
  readonly cached: number
  readonly cost: number
  /** All until now. */
  readonly totalCost: number
  readonly totalTokens: number
  /** The rest of the budget at that time; undefined if there was no budget. */
  readonly costLeft: number | undefined
  readonly tokensLeft: number | undefined
}

export class Spending {
  readonly points: Array<RequestCost> = []
  budget: Budget = {}
  totalCost = 0
  totalTokens = 0

  /** Counts from here. */
  restart(): void {
    this.points.length = 0
    this.totalCost = 0
    this.totalTokens = 0
  }

  /** A request, a retry or a compaction was charged. */
  charge(
    { at, seq }: { readonly at: number; readonly seq: number },
    { cost = 0, tokens }: { readonly cost?: number | undefined; readonly tokens?: Tokens | undefined }
  ): void {
    if (tokens === undefined && cost === 0) return
    const [input, output] = [tokens?.input ?? 0, (tokens?.output ?? 0) + (tokens?.reasoning ?? 0)]
    this.totalCost += cost
    this.totalTokens += input + output
    const left = (most: number | undefined, spent: number) =>
      most === undefined ? undefined : Math.max(0, most - spent)
    this.points.push({
      seq,
      at,
      input,
      output,
      cached: tokens?.cache.read ?? 0,
      cost,
      totalCost: this.totalCost,
      totalTokens: this.totalTokens,
      costLeft: left(this.budget.cost, this.totalCost),
      tokensLeft: left(this.budget.tokens, this.totalTokens)
    })
  }
}

export interface Change {
  readonly seq: number
  readonly at: number
  readonly kind: "updated" | "compacted" | "pruned" | "instructions" | "tools"
  readonly text: string
}

export interface Epoch {
  readonly seq: number
  readonly at: number
  readonly baseline: string
  /** The sources that the baseline tells of. */
  readonly sources: ReadonlyArray<string>
  readonly changes: Array<Change>
}

/** Characters of a kept text; the rest is in the events view. */
export const longestText = 20_000
/** Kept epochs, the newest, and kept changes of one. */
export const mostEpochs = 200
export const mostChanges = 500

export const shortened = (text: string): string =>
  text.length <= longestText
    ? text
    : `${text.slice(0, longestText)}\n\u2026 ${text.length - longestText} more characters`

export class Epochs {
  epochs: Array<Epoch> = []
  /** How many old epochs and changes were dropped. */
  dropped = 0

  begin(at: { readonly seq: number; readonly at: number }, baseline: string, sources: ReadonlyArray<string>): void {
    this.epochs.push({ ...at, baseline: shortened(baseline), sources, changes: [] })
    if (this.epochs.length <= mostEpochs) return
    this.epochs.shift()
    this.dropped++
  }

  change(change: Change): void {
    const epoch = this.epochs.at(-1)
    if (epoch === undefined) return
    epoch.changes.push({ ...change, text: shortened(change.text) })
    if (epoch.changes.length <= mostChanges) return
    epoch.changes.shift()
    this.dropped++
  }
}

/** A request to the provider: where it is in the log, and its answer. */
export interface Turn {
  readonly seq: number
  readonly at: number
  readonly messageID: string
  readonly model: string
}

/** The types that a story is made of; the others are not asked for. */
export const storyTypes = [
  "session.created",
  "session.next.prompted",
  "session.next.prompt.admitted",
  "session.next.prompt.promoted",
  "session.next.prompt.withdrawn",
  "session.next.activity.started",
  "session.next.activity.settled",
  "session.next.step.started",
  "session.next.step.ended",
  "session.next.step.failed",
  "session.next.tool.called",
  "session.next.tool.success",
  "session.next.tool.failed",
  "session.next.retried",
  "session.next.compaction.started",
  "session.next.compaction.ended",
  "session.next.compaction.failed",
  "session.next.request.framed",
  "session.next.context.updated",
  "session.next.context.pruned",
  "session.next.context.edited",
  "session.next.part.withheld",
  "session.next.instructions.discovered",
  "session.next.budget.set",
  "session.next.renamed",
  "session.next.imported",
  "session.next.branch.summarized",
  "session.next.forked"
] as const satisfies ReadonlyArray<SessionEvent["type"]>

/** What ends with its activity, if nothing else ended it. */
const ofActivity: ReadonlyArray<Lane> = ["turn", "tool"]

const firstLine = (text: string): string => text.trimStart().slice(0, 400).split("\n", 1)[0]?.slice(0, 120) ?? ""

const callKey = ({ assistantMessageID, callID }: { readonly assistantMessageID: string; readonly callID: string }) =>
  `${assistantMessageID} ${callID}`

const outcomeOf = ({ type }: SessionEvent): Outcome => (type.endsWith(".failed") ? "failed" : "completed")

export class Story {
  readonly timeline = new Timeline()
  readonly spending = new Spending()
  readonly epochs = new Epochs()
  readonly turns: Array<Turn> = []
  /** The last event that was folded, and how many were. */
  seq = -1
  count = 0

  add(event: SessionEvent): void {
    if (event.seq <= this.seq) return
    this.seq = event.seq
    this.count++
    this.timeline.touch(event.created)
    this.#fold(event)
  }

  #fold(event: SessionEvent): void {
    const { created, seq } = event
    const [at, start] = [
      { seq, at: created },
      { seq, start: created }
    ]
    const { epochs, spending, timeline } = this
    switch (event.type) {
      case "session.next.prompted":
        timeline.add({
          lane: "prompt",
          key: event.data.messageID,
          seq,
          label: firstLine(event.data.prompt.text),
          start: created,
          end: created,
          outcome: "completed"
        })
        return
      case "session.next.prompt.admitted":
        timeline.begin("prompt", event.data.messageID, start, firstLine(event.data.prompt.text))
        return timeline.waits("prompt", event.data.messageID)
      case "session.next.prompt.promoted":
        return timeline.end("prompt", event.data.messageID, created, "completed")
      case "session.next.prompt.withdrawn":
        return timeline.end("prompt", event.data.messageID, created, "withdrawn")
      case "session.next.activity.started":
        return timeline.begin("activity", event.data.activityID, start, `activity, opened by ${event.data.trigger}`)
      case "session.next.activity.settled":
        return this.#settle(event)
      case "session.next.step.started": {
        const { assistantMessageID: messageID, model } = event.data
        this.turns.push({ ...at, messageID, model: model.id })
        return timeline.begin("turn", messageID, start, `turn ${this.turns.length}, ${model.id}`)
      }
      case "session.next.step.ended":
      case "session.next.step.failed":
        timeline.end("turn", event.data.assistantMessageID, created, outcomeOf(event))
        return spending.charge(at, event.data)
      case "session.next.tool.called":
        return timeline.begin("tool", callKey(event.data), start, event.data.tool)
      case "session.next.tool.success":
      case "session.next.tool.failed":
        return timeline.end("tool", callKey(event.data), created, outcomeOf(event))
      case "session.next.retried": {
        const { attempt, attempts, error, waitMs = 0 } = event.data
        const label = `retry ${attempt}${attempts === undefined ? "" : ` of ${attempts - 1}`}: ${firstLine(error.message)}`
        timeline.add({ lane: "retry", key: `${seq}`, ...start, label, end: created + waitMs, outcome: "failed" })
        return spending.charge(at, event.data)
      }
      case "session.next.compaction.started":
        return timeline.begin("compaction", event.data.messageID, start, `compaction, ${event.data.reason}`)
      case "session.next.compaction.ended":
        timeline.end("compaction", event.data.messageID, created, "completed")
        spending.charge(at, event.data)
        return epochs.change({ ...at, kind: "compacted", text: event.data.text })
      case "session.next.compaction.failed":
        timeline.end("compaction", event.data.messageID, created, "failed")
        return spending.charge(at, event.data)
      case "session.next.request.framed":
        return this.#frame(event)
      case "session.next.context.updated":
        return epochs.change({ ...at, kind: "updated", text: event.data.text })
      case "session.next.context.pruned": {
        const { through } = event.data
        const text =
          through < 0 ? "All tool results are shown again." : `Tool results up to event ${through} are not shown.`
        return epochs.change({ ...at, kind: "pruned", text })
      }
      case "session.next.context.edited": {
        const { callID, content, messageID } = event.data
        const target = callID === undefined ? `Message ${messageID}` : `The result of call ${callID} in ${messageID}`
        const text = `${target} is ${content === undefined ? "not shown" : "shown with another content"}.`
        return epochs.change({ ...at, kind: "pruned", text })
      }
      case "session.next.part.withheld":
        return epochs.change({
          ...at,
          kind: "pruned",
          text: `${withheldText(event.data)} (message ${event.data.messageID})`
        })
      case "session.next.instructions.discovered":
        return epochs.change({ ...at, kind: "instructions", text: event.data.paths.join("\n") })
      case "session.next.budget.set":
        spending.budget = event.data.budget
        return
      case "session.next.renamed":
      case "session.next.imported":
      case "session.next.branch.summarized":
        return spending.charge(at, event.data)
      case "session.next.forked":
        // What the history before cost was paid by the other session.
        return spending.restart()
      default:
        // A newer server may send a type that this page does not know.
        event satisfies EventIn<
          "about" | "prompts" | "requests" | "texts" | "calls" | "compactions" | "tree" | "decisions" | "shells"
        >
    }
  }

  #settle({ created, data }: EventOfType<"session.next.activity.settled">): void {
    const at = data.stoppedAt ?? created
    this.timeline.endAll(ofActivity, at, data.outcome === "completed" ? "completed" : "interrupted")
    this.timeline.end("activity", data.activityID, at, data.outcome)
  }

  #frame({ created, data, seq }: EventOfType<"session.next.request.framed">): void {
    const at = { seq, at: created }
    if (data.context !== undefined) {
      const { baseline, snapshot } = data.context
      const text = typeof baseline === "number" ? (data.system?.[baseline] ?? "") : baseline
      this.epochs.begin(at, text, Object.keys(snapshot.told))
      return
    }
    if (data.tools !== undefined) {
      this.epochs.change({ ...at, kind: "tools", text: `Offered tools: ${data.tools.offered.join(", ") || "none"}` })
    }
  }
}

type Node = { readonly id: string; readonly parentID?: string }

/** Deeper branches are not indented further. */
const deepest = 12

/** The depth of each message, by its id. Parents come before their children. */
export const depthsOf = (nodes: ReadonlyArray<Node>): ReadonlyMap<string, number> => {
  const [depths, seen] = [new Map<string, number>(), new Set<string>()]
  for (const { id, parentID = "" } of nodes) {
    const of = depths.get(parentID) ?? 0
    // The first child continues its parent's branch.
    depths.set(id, seen.has(parentID) ? Math.min(deepest, of + 1) : of)
    seen.add(parentID)
  }
  return depths
}
