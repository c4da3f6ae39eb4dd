/**
 * Converts the records of a foreign log to the events of an ordinary session, in file order. Deterministic: the same
 * records give the same events, whatever came before in the process. It holds one small object for each record; the
 * texts pass through. `Drafts.ts` makes the events of a record, `Import.ts` stores them. Pure.
 * Spec: IM-1 to IM-13.
 */
import { between, contains, type HistoryPath, moved, open } from "@daybook/log/domain/HistoryPath"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import type { Head, Item, Problem } from "../conversation/Conversation.ts"
import * as Drafts from "./Drafts.ts"
import { activityIDOf, messageIDOf } from "./Drafts.ts"

// Follows the tree of a log while its records become events in file order.

/** Events in a row on one path. */
interface Segment {
  /** The path before the segment. */
  readonly before: HistoryPath
  readonly from: number
}

/** A place in the tree: after a message, with the path up to it. */
interface Point {
  readonly messageID: MessageID | undefined
  readonly segment: Segment
  /** The last event of the place. */
  readonly to: number
}

type KnownRecord = { readonly point: Point; readonly start: number | undefined }

const start: Point = { messageID: undefined, segment: { before: [], from: 0 }, to: 0 }

const pathTo = ({ segment, to }: Point): HistoryPath =>
  to < segment.from ? segment.before : [...segment.before, [segment.from, to]]

export class Tree {
  private readonly known = new Map<string, KnownRecord>()
  /** Where the next event of a branch would follow. */
  private at: Point = start
  /** The place of the last record. */
  private last: Point = start

  /** The place of a record that may be missing; the root for one that is. */
  private placeOf(key: string | null): Point {
    return (key === null ? undefined : this.known.get(key)?.point) ?? start
  }

  /** The place that an event of a record with this parent must follow; undefined if it is where events go now. */
  moveTo(parent: string | null): Point | undefined {
    const target = this.placeOf(parent)
    return target === this.at ? undefined : target
  }

  /** The move that makes the last record the leaf; undefined if it is. */
  moveToLast(): Point | undefined {
    return this.last === this.at ? undefined : this.last
  }

  /** The leaf moved in event `seq`. */
  moved(to: Point, seq: number): void {
    this.at = { ...to, segment: { before: pathTo(to), from: seq + 1 }, to: seq }
    if (to === this.last) this.last = this.at
  }

  /** A record made events `from` to `to`, and is a message if it has an id. */
  grew(key: string, from: number, to: number, messageID?: MessageID): void {
    this.at = { messageID: messageID ?? this.at.messageID, segment: this.at.segment, to }
    this.last = this.at
    this.known.set(key, { point: this.at, start: from })
  }

  /** A record that shows the model nothing is at its parent's place. */
  passed(key: string, parent: string | null): void {
    this.last = this.placeOf(parent)
    this.known.set(key, { point: this.last, start: undefined })
  }

  /** The message that a record belongs to. */
  messageOf(key: string): MessageID | undefined {
    return this.known.get(key)?.point.messageID
  }

  /** The first event of a record, or else after its place, if that is on the present path. */
  startOf(key: string): number | undefined {
    const known = this.known.get(key)
    if (known === undefined) return undefined
    const path = moved(this.at.segment.before, this.at.segment.from - 1)
    if (known.start !== undefined) return contains(path, known.start) ? known.start : undefined
    return contains(path, known.point.to) ? between(path, known.point.to + 1, open)[0]?.[0] : undefined
  }
}

export interface Events {
  readonly drafts: Array<Draft>
  readonly times: Array<number>
}

export interface Counts {
  prompts: number
  answers: number
  results: number
  others: number
  /** Records that show the model nothing. */
  hidden: number
}

type Of<Tag extends Item["_tag"]> = Extract<Item, { readonly _tag: Tag }>

/** The times that an event can have. */
const timeOf = (time: number): number =>
  Number.isFinite(time) ? Math.min(Math.max(Math.round(time), 0), 0xffff_ffff_ffff) : 0

interface Activity {
  readonly id: MessageID
  /** Why its last answer ended; undefined before the first. */
  ended: "completed" | "failed" | "interrupted" | "calling" | undefined
  /** The time of its last record. */
  workedAt: number
  error: string | undefined
}

/** The conversion of one log. */
export class Conversion {
  readonly counts: Counts = { prompts: 0, answers: 0, results: 0, others: 0, hidden: 0 }
  /** The sequence number of the last event. */
  seq = -1
  /** The time of the last record. */
  time: number

  private readonly tree = new Tree()
  /** Calls without a result, by the id that results name. */
  private readonly calls = new Map<string, Drafts.Call>()
  /** The calls of results, by the record of the result. */
  private readonly results = new Map<string, Drafts.Call>()
  /** The records of prompts, answers and notes. */
  private readonly editable = new Set<string>()
  private activity: Activity | undefined
  private events: Events = { drafts: [], times: [] }
  private readonly problem: (problem: Problem) => void

  readonly sessionID: SessionID

  constructor(
    sessionID: SessionID,
    head: Head,
    options: { readonly directory: string; readonly problem: (problem: Problem) => void }
  ) {
    this.sessionID = sessionID
    this.problem = options.problem
    this.time = timeOf(head.createdAt)
    this.add(Drafts.created(head, options.directory))
  }

  /** The events since the last call. */
  take(): Events {
    const { events } = this
    this.events = { drafts: [], times: [] }
    return events
  }

  /** How many events were made since the last call of `take`. */
  get pending(): number {
    return this.events.drafts.length
  }

  /** The events after the first `count` of those. */
  since(count: number): ReadonlyArray<Draft> {
    return this.events.drafts.slice(count)
  }

  /** Adds an event to those of the current record. */
  add(event: Draft): void {
    this.events.drafts.push(event)
    this.events.times.push(this.time)
    this.seq += 1
  }

  private addAll(events: ReadonlyArray<Draft>): void {
    for (const event of events) this.add(event)
  }

  private readonly idOf = (key: string) => messageIDOf(this.sessionID, key)

  /** Goes to the place after which the record follows. */
  private goTo(point: Point | undefined): void {
    if (point === undefined) return
    this.settle()
    const { messageID } = point
    this.add(
      draft("session.next.leaf.moved", { ...(messageID === undefined ? {} : { messageID }), path: pathTo(point) })
    )
    this.tree.moved(point, this.seq)
  }

  /** Ends the activity. */
  private settle(): void {
    const { activity } = this
    if (activity === undefined) return
    this.activity = undefined
    const activityID = activityIDOf(activity.id)
    const { ended, error } = activity
    const outcome = ended === "completed" || ended === "failed" ? ended : "interrupted"
    const stopped = activity.workedAt < this.time ? { stoppedAt: activity.workedAt } : {}
    const failure = outcome === "failed" ? { error: { type: "provider", message: error ?? "" } } : {}
    this.add(draft("session.next.activity.settled", { activityID, outcome, ...failure, ...stopped }))
  }

  convert(item: Item): void {
    this.time = timeOf(item.time)
    switch (item._tag) {
      case "User":
        return this.editableMessage(item, (id) => this.user(id, item))
      case "Answer":
        return this.editableMessage(item, (id) => this.answer(id, item))
      case "Result":
        return this.result(item)
      case "Command":
        return item.hidden ? this.hidden(item) : this.message(item, (id) => this.other(Drafts.command(id, item)))
      case "Note":
        return this.editableMessage(item, (id) => this.other(Drafts.note(id, item)))
      case "Compaction":
        return this.message(item, (id) => this.compaction(id, item))
      case "BranchSummary":
        return this.message(item, (id) => this.branchSummary(id, item))
      case "Edit":
        return this.edit(item)
      case "Withheld":
        return this.withheld(item)
      case "Usage":
        this.add(draft("session.next.imported", Drafts.charged(item.spent)))
        return this.hidden(item)
      case "ModelChange":
        return item.role === undefined || item.role === "default"
          ? this.message(item, (messageID) => {
              const model = { providerID: item.provider, id: item.model }
              this.other([draft("session.next.model.switched", { messageID, model })])
            })
          : this.hidden(item)
      case "Title":
        this.add(draft("session.next.renamed", { title: item.title }))
        return this.hidden(item)
      case "Label":
        return this.label(item)
      case "Opaque":
        return this.hidden(item)
      default:
        return item satisfies never
    }
  }

  finish(): void {
    this.goTo(this.tree.moveToLast())
    this.settle()
  }

  private message(item: Item, make: (id: MessageID) => void): void {
    this.goTo(this.tree.moveTo(item.parent))
    const from = this.seq + 1
    const id = this.idOf(item.key)
    make(id)
    this.tree.grew(item.key, from, this.seq, id)
  }

  private editableMessage(item: Item, make: (id: MessageID) => void): void {
    this.message(item, make)
    this.editable.add(item.key)
  }

  private hidden(item: Item): void {
    this.counts.hidden += 1
    this.tree.passed(item.key, item.parent)
  }

  private other(drafts: ReadonlyArray<Draft>): void {
    this.counts.others += 1
    this.addAll(drafts)
  }

  private user(id: MessageID, item: Of<"User">): void {
    this.counts.prompts += 1
    const [admitted, promoted] = Drafts.prompt(id, item)
    // A prompt during the work of the activity joins it.
    const joins =
      this.activity !== undefined && (this.activity.ended === undefined || this.activity.ended === "calling")
    if (!joins) this.settle()
    this.add(admitted)
    if (!joins) {
      this.activity = { id, ended: undefined, error: undefined, workedAt: this.time }
      this.add(draft("session.next.activity.started", { activityID: activityIDOf(id), trigger: "steer" }))
    }
    this.add(promoted)
  }

  private answer(id: MessageID, item: Of<"Answer">): void {
    this.counts.answers += 1
    const { calls, drafts } = Drafts.answer(id, item)
    this.addAll(drafts)

    for (const [callID, call] of calls) this.calls.set(callID, call)
    if (this.activity === undefined) return
    this.activity.workedAt = this.time
    this.activity.error = item.error
    this.activity.ended =
      item.aborted === true
        ? "interrupted"
        : item.error !== undefined
          ? "failed"
          : calls.size > 0
            ? "calling"
            : "completed"
  }

  private result(item: Of<"Result">): void {
    const call = this.calls.get(item.callID)
    if (call === undefined) {
      const details = `no call ${item.callID} waits for this result; the model is not shown it`
      this.problem({ _tag: "Problem", place: item.place, kind: "result-without-call", details })
      return this.hidden(item)
    }
    this.calls.delete(item.callID)
    this.results.set(item.key, call)
    this.counts.results += 1
    this.goTo(this.tree.moveTo(item.parent))
    const from = this.seq + 1
    this.add(Drafts.result(call, item))
    if (this.activity !== undefined) this.activity.workedAt = this.time
    this.tree.grew(item.key, from, this.seq)
  }

  private compaction(messageID: MessageID, item: Of<"Compaction">): void {
    const { firstKept, modifiedFiles, readFiles, spent, summary: text, tokensBefore } = item
    const keptSeq = firstKept === null ? undefined : this.tree.startOf(firstKept)
    this.other([
      draft("session.next.compaction.ended", {
        messageID,
        reason: "auto",
        text,
        recent: "",
        ...(keptSeq === undefined ? {} : { keptSeq }),
        ...(readFiles.length === 0 ? {} : { readFiles }),
        ...(modifiedFiles.length === 0 ? {} : { modifiedFiles }),
        ...(tokensBefore === undefined ? {} : { tokensBefore }),
        ...Drafts.charged(spent)
      })
    ])
  }

  private branchSummary(messageID: MessageID, { spent, summary: text }: Of<"BranchSummary">): void {
    this.other([draft("session.next.branch.summarized", { messageID, text, ...Drafts.charged(spent) })])
  }

  /** The target of an edit: a message, or the result of a call. */
  private targetOf(key: string): { readonly messageID: MessageID; readonly callID?: string } | undefined {
    const call = this.results.get(key)
    if (call !== undefined) return { messageID: call.assistantMessageID, callID: call.callID }
    const messageID = this.tree.messageOf(key)
    return messageID !== undefined && this.editable.has(key) ? { messageID } : undefined
  }

  private edit(item: Of<"Edit">): void {
    const target = this.targetOf(item.target)
    if (target === undefined) {
      const details = "the target shows the model nothing that an edit can change; the edit changes nothing"
      this.problem({ _tag: "Problem", place: item.place, kind: "edit-without-target", details })
      return this.hidden(item)
    }
    this.goTo(this.tree.moveTo(item.parent))
    const from = this.seq + 1
    this.other([Drafts.edit(target, item)])
    this.tree.grew(item.key, from, this.seq)
  }

  private withheld(item: Of<"Withheld">): void {
    const messageID = this.tree.messageOf(item.target)
    if (messageID === undefined) return this.hidden(item)
    this.goTo(this.tree.moveTo(item.parent))
    const from = this.seq + 1
    this.other([draft("session.next.part.withheld", { messageID, ...item.part })])
    this.tree.grew(item.key, from, this.seq)
  }

  private label(item: Of<"Label">): void {
    const messageID = this.tree.messageOf(item.target)
    // Only messages have labels: a record that is none keeps its label in the difference.
    if (messageID !== undefined && messageID === this.idOf(item.target)) {
      this.add(draft("session.next.labeled", { messageID, ...(item.label === null ? {} : { label: item.label }) }))
    }
    this.hidden(item)
  }
}
