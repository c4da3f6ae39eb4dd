/**
 * Writes a session as an entry log. An imported record gets back what the session's events do not hold, so that the
 * source's lines return; everything later, and every session of Daybook, is written in the same form. Streams: it holds
 * the events of one record. `EntryRecord.ts` makes the records, `Grouping.ts` groups events. Spec: IM-20, IM-30..IM-36
 * in specs/formats.md.
 */
import { createHash } from "node:crypto"
import { Chunk, Effect, Either, Schema, Stream } from "effect"
import { type ImportedLog, isComplete } from "@daybook/log/domain/Imported"
import type { Session } from "@daybook/log/domain/Message"
import type { Draft, SessionEvent } from "@daybook/log/events/SessionEvents"
import { apply, type JsonObject } from "./Difference.ts"
import {
  type EntryDialect,
  entryHead,
  entryRecord,
  isEntryDialect,
  leafRecord,
  type RecordPlace
} from "./EntryRecord.ts"
import { type Group, Grouping } from "./Grouping.ts"

// The ledger of what later records refer to; import and export keep the same ledger.

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
  last: string | null = null
  private readonly keys: Array<string> = []
  /** The last event of each record, ascending. */
  private readonly ends: Array<number> = []
  /** The record of each message. */
  private readonly messages = new Map<string, string>()
  private readonly results = new Map<string, string>()
  private readonly tools = new Map<string, string>()
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

/** What an export left out. */
export const ExportReport = Schema.Struct({
  /** Lines written, with the head. */
  lines: Schema.Int,
  /** Events that the format cannot hold, by type. */
  dropped: Schema.Record({ key: Schema.String, value: Schema.Int }),
  /** Records of the source that only its own format can hold. */
  records: Schema.Int,
  /** What else a person should know. */
  notes: Schema.Array(Schema.String)
})
export type ExportReport = typeof ExportReport.Type

/** A stored difference cannot be applied: the event was changed, or a later release wrote it. */
export class DifferenceUnreadable extends Schema.TaggedError<DifferenceUnreadable>(
  "@daybook/formats/DifferenceUnreadable"
)("DifferenceUnreadable", { sessionID: Schema.String, seq: Schema.Int, details: Schema.String }) {
  override get message() {
    return `event ${this.seq} of ${this.sessionID} does not say how its record differs: ${this.details}`
  }
}

/** Entry ids of eight hexadecimal digits, unique in a log. */
const makeKeys = () => {
  const used = new Set<string>()
  return {
    taken: (key: string): void => void used.add(key),
    of: (id: string): string => {
      for (let count = 0; ; count++) {
        const key = createHash("sha256").update(`${id} ${count}`).digest("hex").slice(0, 8)
        if (used.has(key)) continue
        used.add(key)
        return key
      }
    }
  }
}

const messageOf = ({ data }: SessionEvent): string | undefined =>
  "messageID" in data ? data.messageID : "assistantMessageID" in data ? data.assistantMessageID : undefined

/** Makes the lines of one session. Give it the session's events in order. */
export class EntryExport {
  private lines = 0
  private hiddenRecords = 0
  private readonly ledger: Ledger
  private readonly keys = makeKeys()
  private readonly grouping = new Grouping()
  private readonly notes: Array<string> = []
  private readonly imported: ImportedLog | undefined
  private readonly restores: boolean
  /** The events since the last record of the import; undefined once the import is over. */
  private pending: Array<SessionEvent> | undefined
  private created: SessionEvent | undefined
  private hasHead = false
  /** The record that the next one follows. */
  private leaf: string | null = null
  /** The last record. */
  private written: string | null = null
  /** The time of the last event. */
  private time = 0

  private readonly session: Session

  constructor(session: Session, dialect: EntryDialect) {
    this.session = session
    this.imported = session.imported
    this.restores = this.imported?.dialect === dialect
    this.ledger = new Ledger(dialect)
    this.pending = this.imported !== undefined && isEntryDialect(this.imported.dialect) ? [] : undefined
    if (this.imported !== undefined && !isComplete(this.imported)) {
      this.notes.push("the import of this session did not reach the end of its source")
    }
  }

  /** Takes the next event and returns its lines. */
  next(event: SessionEvent): Either.Either<ReadonlyArray<string>, DifferenceUnreadable> {
    this.time = event.created
    if (event.type === "session.created") {
      this.created = event
      return Either.right(this.pending === undefined ? [this.head()] : [])
    }
    if (this.pending === undefined) return Either.right(this.native(this.grouping.next(event)))
    if (event.type !== "session.next.imported") {
      this.pending.push(event)
      return Either.right([])
    }
    const { log, record } = event.data
    const line = record === undefined ? Either.right([]) : this.record(event, record)
    // Earlier releases of a log may have been imported first: the last import ends where the session's log ends.
    if (log !== undefined && log.records === this.imported?.records && log.ends.length === this.imported.ends.length) {
      this.follow(this.pending)
      this.pending = undefined
    } else if (log !== undefined) {
      // What ended an earlier import is in no record of the source.
      this.pending = this.pending?.filter(({ type }) => type === "session.next.leaf.moved")
    }
    return line
  }

  private record(
    event: Extract<SessionEvent, { readonly type: "session.next.imported" }>,
    { difference, key }: NonNullable<(typeof event)["data"]["record"]>
  ): Either.Either<ReadonlyArray<string>, DifferenceUnreadable> {
    const events = this.pending ?? []
    this.pending = []
    this.follow(events)
    const parent = this.restores ? this.ledger.last : this.leaf
    const made =
      key === undefined ? this.headRecord() : entryRecord(events, this.ledger.place(key, event.created, parent))
    if (key !== undefined) {
      this.keys.taken(key)
      this.ledger.add(key, events, event.seq - 1)
    }
    const isHidden = key !== undefined && made["type"] === "custom"
    if (!this.restores && key === undefined && this.hasHead) return Either.right([])
    if (!this.restores && isHidden) {
      this.hiddenRecords += 1
      return Either.right([])
    }
    if (key !== undefined) this.leaf = this.written = key
    this.lines += 1
    this.hasHead = true
    if (!this.restores || difference === undefined) return Either.right([`${JSON.stringify(made)}\n`])
    return Either.mapBoth(apply(made, difference), {
      onLeft: (details) => new DifferenceUnreadable({ sessionID: this.session.id, seq: event.seq, details }),
      onRight: (restored) => [`${JSON.stringify(restored)}\n`]
    })
  }

  /** Takes events that are in a record of the import. */
  private follow(events: ReadonlyArray<SessionEvent>): void {
    this.grouping.follow(events)
    // Without the source's parents, those of the session's tree: left out records have no children.
    for (const each of this.restores ? [] : events) if (each.type === "session.next.leaf.moved") this.moved(each.data)
  }

  private headRecord() {
    const { imported, session } = this
    const data = this.created?.type === "session.created" ? this.created.data : undefined
    return entryHead({
      id: imported !== undefined && isEntryDialect(imported.dialect) ? imported.id : session.id,
      time: session.createdAt,
      cwd: data?.location.directory ?? session.location.directory,
      title: this.restores ? data?.title : session.title
    })
  }

  private head(): string {
    this.lines += 1
    this.hasHead = true
    return `${JSON.stringify(this.headRecord())}\n`
  }

  private native(groups: ReadonlyArray<Group>): ReadonlyArray<string> {
    return groups.flatMap((group) => this.line(group) ?? [])
  }

  private line(group: Group): string | undefined {
    const { events, late, seq, time } = group
    const [first] = events
    if (first === undefined) return undefined
    if (first.type === "session.next.leaf.moved") {
      this.moved(first.data)
      return undefined
    }
    const message = messageOf(first) ?? first.id
    const parent = late === undefined ? this.leaf : this.ledger.endOf(message)
    if (parent === undefined) {
      this.grouping.leaveOut(group)
      return undefined
    }
    const key = this.keys.of(message)
    const line = this.write(entryRecord(events, this.ledger.place(key, time, parent)), key)
    this.ledger.add(key, events, seq, late)
    if (late === undefined) this.leaf = key
    return line
  }

  private write(record: JsonObject, key: string): string {
    this.written = key
    this.lines += 1
    return `${JSON.stringify(record)}\n`
  }

  private moved({ messageID }: { readonly messageID?: string }): void {
    this.leaf = messageID === undefined ? null : (this.ledger.endOf(messageID) ?? null)
  }

  /** The lines after the last event. */
  end(): ReadonlyArray<string> {
    const lines = this.native(this.grouping.end())
    const all = this.hasHead ? lines : [this.head(), ...lines]
    if (this.leaf === this.written || this.pending !== undefined) return all
    const key = this.keys.of(`leaf ${this.leaf}`)
    return [...all, this.write(leafRecord(this.ledger.place(key, this.time, this.leaf)), key)]
  }

  /** What was left out so far. */
  get report(): ExportReport {
    return {
      lines: this.lines,
      dropped: Object.fromEntries(this.grouping.dropped),
      records: this.hiddenRecords,
      notes: this.notes
    }
  }
}

/** The dialect of an export in the form of the session's source: the source's own if it is an entry log, else xcsh. */
export const dialectOf = ({ imported }: Session): EntryDialect =>
  imported !== undefined && isEntryDialect(imported.dialect) ? imported.dialect : "xcsh"

/** The lines of the events, and those of their end. */
export const exported = <E, R>(
  events: Stream.Stream<SessionEvent, E, R>,
  next: (event: SessionEvent) => Either.Either<ReadonlyArray<string>, DifferenceUnreadable>,
  end: () => ReadonlyArray<string>
): Stream.Stream<string, E | DifferenceUnreadable, R> =>
  Stream.concat(
    Stream.mapChunksEffect(events, (chunk) =>
      Effect.map(Either.all(Chunk.toReadonlyArray(chunk).map(next)), (lines) => Chunk.unsafeFromArray(lines.flat()))
    ),
    Stream.suspend(() => Stream.fromIterable(end()))
  )

/** The lines of a session. `done` gets what was left out, at the end. */
export const entryLines = <E, R>(
  session: Session,
  dialect: EntryDialect,
  events: Stream.Stream<SessionEvent, E, R>,
  done: (report: ExportReport) => void
): Stream.Stream<string, E | DifferenceUnreadable, R> =>
  Stream.suspend(() => {
    const all = new EntryExport(session, dialect)
    return exported(
      events,
      (event) => all.next(event),
      () => {
        const lines = all.end()
        done(all.report)
        return lines
      }
    )
  })
