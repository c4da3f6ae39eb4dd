/**
 * Follows the tree of a log while its records become events in file order: where each record is on which branch, and the
 * history path up to it. One small object for each record. Pure. Spec: IM-10, IM-11.
 */
import { between, contains, type HistoryPath, moved, open } from "@daybook/log/domain/HistoryPath"
import type { MessageID } from "@daybook/log/domain/Identifiers"

/** Events in a row on one path. */
interface Segment {
  /** The path before the segment. */
  readonly before: HistoryPath
  readonly from: number
}

/** A place in the tree: after a message, with the path up to it. */
export interface Point {
  readonly messageID: MessageID | undefined
  readonly segment: Segment
  /** The last event of the place. */
  readonly to: number
}

/** A known record. */
interface Known {
  readonly point: Point
  /** The first event of the record; undefined if it shows the model nothing. */
  readonly start: number | undefined
}

const start: Point = { messageID: undefined, segment: { before: [], from: 0 }, to: 0 }

/** The path up to a place. */
export const pathTo = ({ segment, to }: Point): HistoryPath =>
  to < segment.from ? segment.before : [...segment.before, [segment.from, to]]

/** The branches of one log so far. */
export class Tree {
  private readonly known = new Map<string, Known>()
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
