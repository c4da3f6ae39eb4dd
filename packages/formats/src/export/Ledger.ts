/**
 * Remembers of each record what later records refer to: keys by message and by event, and the tools of open calls. Import
 * and export keep the same ledger, so that both make the same records of the same events. Pure. Spec: IM-20.
 */
import type { Draft } from "@daybook/log/events/SessionEvents"
import type { EntryDialect, RecordPlace } from "./EntryRecord.ts"

const callName = (messageID: string, callID: string): string => `${messageID} ${callID}`

/** Types that name a message of an earlier record. */
const refers: ReadonlySet<string> = new Set([
  "session.next.labeled",
  "session.next.leaf.moved",
  "session.next.context.edited",
  "session.next.part.withheld"
])

/** The ledger of one log. */
export class Ledger {
  /** The key of the last record. */
  last: string | null = null
  private readonly keys: Array<string> = []
  /** The last event of each record, ascending. */
  private readonly ends: Array<number> = []
  /** The record of each message. */
  private readonly messages = new Map<string, string>()
  /** The last result of each answer with results. */
  private readonly results = new Map<string, string>()
  private readonly tools = new Map<string, string>()
  /** The result of each call. */
  private readonly settled = new Map<string, string>()

  private readonly dialect: EntryDialect

  constructor(dialect: EntryDialect) {
    this.dialect = dialect
  }

  /** The place of the next record, which follows the last one unless `parent` is given. */
  place(key: string, time: number, parent: string | null = this.last): RecordPlace {
    const { dialect, tools } = this
    return {
      dialect,
      key,
      parent,
      time,
      toolOf: (messageID, callID) => tools.get(callName(messageID, callID)),
      keyOf: (target) => this.keyOf(target),
      resultOf: (messageID, callID) => this.settled.get(callName(messageID, callID))
    }
  }

  private keyOf(target: string | number): string | undefined {
    if (typeof target === "string") return this.messages.get(target)
    let [from, to] = [0, this.ends.length]
    while (from < to) {
      const middle = (from + to) >> 1
      if ((this.ends[middle] ?? 0) < target) from = middle + 1
      else to = middle
    }
    return this.keys[from]
  }

  /** The record after which history continues that follows a message. */
  endOf(messageID: string): string | undefined {
    return this.results.get(messageID) ?? this.messages.get(messageID)
  }

  /** Adds a record that these events made; the last of them is event `end`. A late result is not found by its events. */
  add(key: string, events: ReadonlyArray<Draft>, end: number, late?: true): void {
    this.last = key
    if (late === undefined) {
      // A record that waited for results stands behind them, and has earlier events.
      let at = this.ends.length
      while (at > 0 && (this.ends[at - 1] ?? 0) > end) at -= 1
      this.keys.splice(at, 0, key)
      this.ends.splice(at, 0, end)
    }
    for (const { data, type } of events) {
      if (type === "session.next.tool.called") this.tools.set(callName(data.assistantMessageID, data.callID), data.tool)
      else if (type === "session.next.tool.success" || type === "session.next.tool.failed") {
        this.tools.delete(callName(data.assistantMessageID, data.callID))
        this.results.set(data.assistantMessageID, key)
        this.settled.set(callName(data.assistantMessageID, data.callID), key)
      } else if (type === "session.next.step.started") this.messages.set(data.assistantMessageID, key)
      else if ("messageID" in data && data.messageID !== undefined && !refers.has(type))
        this.messages.set(data.messageID, key)
    }
  }
}
