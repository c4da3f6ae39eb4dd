/**
 * Writes a session's history path as a thread. Records of an imported thread get back what the session's events do not hold;
 * the rest is written from events (`../thread/ThreadWriter.ts`), which says what a thread cannot hold. Streams: it holds the
 * events of one record. Spec: IM-34, IM-35.
 */
import { createHash } from "node:crypto"
import { Either, Option, Schema, Stream } from "effect"
import { contains, linear } from "@daybook/log/domain/HistoryPath"
import type { Session } from "@daybook/log/domain/Message"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import type { Head } from "../conversation/Conversation.ts"
import { apply, type JsonObject } from "./Difference.ts"
import * as ThreadRecord from "../thread/ThreadRecord.ts"
import { alphabet, type ThreadMetadata } from "../thread/ThreadRecord.ts"
import * as ThreadWriter from "../thread/ThreadWriter.ts"
import { DifferenceUnreadable, exported, type ExportReport, Ledger } from "./EntryExport.ts"
import { eventItem } from "./EventItem.ts"
import { type Group, Grouping } from "./Grouping.ts"

/** The thread's id: the imported thread's, the session's if it ends in a ULID, else an id derived from the session's. */
const threadIDOf = ({ createdAt, id, imported }: Session): ThreadRecord.ThreadID => {
  const own = imported?.dialect === "thread" ? imported.id : id.slice("ses_".length).toUpperCase()
  return Option.getOrElse(Schema.decodeUnknownOption(ThreadRecord.ThreadID)(own), () => {
    let time = ""
    for (let left = createdAt, n = 0; n < 10; n++, left = Math.floor(left / 32))
      time = (alphabet[left % 32] ?? "0") + time
    const hash = createHash("sha256").update(id).digest()
    return ThreadRecord.ThreadID.make(time + [...hash.subarray(0, 16)].map((byte) => alphabet[byte % 32]).join(""))
  })
}

const headOf = ({ createdAt, id, title }: Session): Head => ({
  _tag: "Head",
  dialect: "thread",
  id,
  ...(title === undefined ? {} : { title }),
  createdAt,
  record: {}
})

/** What only the session says of itself. */
const ownMetadata = ({ instructions, origin }: Session) => ({
  source: origin?.source ?? ("interactive" as const),
  ...(origin?.cronJobID === undefined ? {} : { cronJobId: origin.cronJobID }),
  ...(instructions === undefined ? {} : { systemPromptOverride: instructions })
})

/** The record of the item; an empty one if the writer makes none. */
export const threadRecord = (lines: ReadonlyArray<string>): JsonObject =>
  lines[0] === undefined ? {} : (JSON.parse(lines[0]) as JsonObject)

/** What the writer of an import and of an export begin with: nothing that differs between the two. */
export const threadLedger = () => new Ledger("pi")

export interface ThreadFiles {
  readonly metadata: JsonObject | ThreadMetadata
  readonly report: ExportReport
}

export const threadLines = <E, R>(
  session: Session,
  events: Stream.Stream<SessionEvent, E, R>,
  done: (files: ThreadFiles) => void
): Stream.Stream<string, E | DifferenceUnreadable, R> =>
  Stream.suspend(() => {
    const restores = session.imported?.dialect === "thread"
    const path = session.path ?? linear
    const writer = ThreadWriter.make(threadIDOf(session), headOf(session))
    const ledger = threadLedger()
    const grouping = new Grouping()
    let pending: Array<SessionEvent> | undefined = restores ? [] : undefined
    let metadata: JsonObject | undefined
    let [lines, native] = [0, 0]

    const written = (text: string): string => {
      lines += 1
      return `${text}\n`
    }
    const make = (key: string, own: ReadonlyArray<SessionEvent>, time: number, seq: number) => {
      const item = eventItem(own, ledger.place(key, time))
      ledger.add(key, own, seq)
      return writer.add(item)
    }
    const linesOf = (groups: ReadonlyArray<Group>) =>
      groups.flatMap((group) => {
        if (group.late === undefined) return make(`${group.seq}`, group.events, group.time, group.seq)
        grouping.leaveOut(group)
        return []
      })
    const restored = (event: Extract<SessionEvent, { readonly type: "session.next.imported" }>) => {
      const { log, record } = event.data
      const own = pending ?? []
      pending = []
      grouping.follow(own)
      if (
        log !== undefined &&
        log.records === session.imported?.records &&
        log.ends.length === session.imported.ends.length
      )
        pending = undefined
      if (record === undefined) return Either.right([])
      const made = record.key === undefined ? {} : threadRecord(make(record.key, own, event.created, event.seq - 1))
      return Either.mapBoth(
        record.difference === undefined ? Either.right<unknown>(made) : apply(made, record.difference),
        {
          onLeft: (details) => new DifferenceUnreadable({ sessionID: session.id, seq: event.seq, details }),
          onRight: (value) => {
            if (record.key !== undefined) return [written(JSON.stringify(value))]
            metadata = value as JsonObject
            return []
          }
        }
      )
    }
    const next = (event: SessionEvent): Either.Either<ReadonlyArray<string>, DifferenceUnreadable> => {
      if (pending !== undefined) {
        if (event.type === "session.next.imported") return restored(event)
        pending.push(event)
        return Either.right([])
      }
      // A result belongs to its answer, whatever branch the session was on when the call was settled.
      if (!contains(path, event.seq) && !grouping.awaits(event)) return Either.right([])
      const made = linesOf(grouping.next(event))
      native += made.length
      return Either.right(made.map(written))
    }
    const end = () => {
      const last = linesOf(grouping.end())
      const texts = last.map(written)
      const ended = writer.end()
      const { lastMessageAt, messageCount, nextSeq } = ended.metadata
      const kept =
        metadata === undefined || native + last.length === 0
          ? metadata
          : { ...metadata, lastMessageAt, messageCount, nextSeq: nextSeq ?? 0 }
      done({
        metadata: kept ?? { ...ended.metadata, ...ownMetadata(session) },
        report: {
          lines,
          dropped: { ...Object.fromEntries(grouping.dropped), ...(restores ? {} : ended.dropped) },
          records: 0,
          notes:
            session.path === undefined ? [] : ["a thread has one branch: the session's other branches are left out"]
        }
      })
      return texts
    }
    return exported(events, next, end)
  })
