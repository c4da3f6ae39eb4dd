/**
 * The history path: the sequence numbers from the root of a session's tree to its leaf, as ascending closed ranges. The
 * last range of a session's path is open: later events continue it. Pure. Spec: HP-1..HP-6 in specs/sessions.md.
 */
import { Schema } from "effect"
import { MessageID, SessionID } from "./Identifiers.ts"
import { AnyNumber } from "./Json.ts"
import { optional } from "../support/Optional.ts"

// Defines the tree of a session's messages as readers see it.

/** One message of a session's tree. */
export const TreeNode = Schema.Struct({
  id: MessageID,
  /** The message that it follows; absent for a root. */
  parentID: optional(MessageID),
  seq: Schema.Int,
  type: Schema.String,
  /** The beginning of its text. */
  text: Schema.String,
  label: optional(Schema.String),
  createdAt: Schema.Int,
  /** Whether it is on the history path. */
  onPath: Schema.Boolean,
  /** History continues after it. */
  leaf: optional(Schema.Literal(true))
})
export type TreeNode = typeof TreeNode.Type

export const TreeOptions = Schema.Struct({
  sessionID: SessionID,
  /** Default: 200; maximum: 500. */
  limit: Schema.optional(AnyNumber),
  /** The page starts after the message with this sequence number. */
  cursor: Schema.optional(AnyNumber)
})
export type TreeOptions = typeof TreeOptions.Type

/** One page of a tree, in the order of the log: a message comes after its parent. */
export const TreePage = Schema.Struct({
  items: Schema.Array(TreeNode),
  /** The message after which history continues; absent before the first message. */
  leafID: optional(MessageID),
  /** Number of messages of the session. */
  total: Schema.Int,
  /** Present if more follow. */
  cursor: optional(Schema.Int)
})
export type TreePage = typeof TreePage.Type

/** The session has no message with this id, or with this part of an id or label. */
export class MessageNotFound extends Schema.TaggedError<MessageNotFound>("@daybook/log/MessageNotFound")(
  "MessageNotFound",
  { sessionID: SessionID, messageID: Schema.String }
) {
  override get message() {
    return `${this.sessionID} has no message ${this.messageID}; daybook tree ${this.sessionID} lists its messages`
  }
}

/** The end of an open range: no event has a greater sequence number. */
export const open = Number.MAX_SAFE_INTEGER

const isAscending = (ranges: ReadonlyArray<Range>): boolean => {
  let last = -1
  for (const [from, to] of ranges) {
    if (from <= last || to < from) return false
    last = to
  }
  return true
}

/** The sequence numbers from the first to the second, both included. */
export const Range = Schema.Tuple(Schema.NonNegativeInt, Schema.NonNegativeInt)
export type Range = typeof Range.Type

/** Ascending ranges without overlap. */
export const Ranges = Schema.Array(Range).pipe(
  Schema.filter(isAscending, {
    message: () => "use ascending ranges without overlap",
    arbitrary: () => (fc) =>
      fc
        .uniqueArray(fc.nat(1_000), { maxLength: 8 })
        .map((all) => all.toSorted((a, b) => a - b))
        .map((all): ReadonlyArray<Range> =>
          all.flatMap((from, at) => {
            const to = all[at + 1]
            return at % 2 === 0 && to !== undefined ? [[from, to]] : []
          })
        )
  })
)

export type HistoryPath = ReadonlyArray<Range>

export const linear: HistoryPath = [[0, open]]

/** Whether the path holds all events. */
export const isLinear = ([first, ...rest]: HistoryPath): boolean =>
  first !== undefined && rest.length === 0 && first[0] === 0 && first[1] === open

/** The part of a path from one sequence number to another, both included. */
export const between = (path: HistoryPath, from: number, to: number): HistoryPath =>
  path.flatMap(([first, last]) => {
    const [start, end] = [Math.max(first, from), Math.min(last, to)]
    return start <= end ? [[start, end] as const] : []
  })

/** The part of a path up to a sequence number, included. */
export const until = (path: HistoryPath, seq: number): HistoryPath => between(path, 0, seq)

/** The path after the leaf moved in event `seq`: what is kept of the earlier events, then all later ones. */
export const moved = (kept: HistoryPath, seq: number): HistoryPath => [...until(kept, seq - 1), [seq + 1, open]]

/** Whether the path holds an event. */
export const contains = (path: HistoryPath, seq: number): boolean => path.some(([from, to]) => from <= seq && seq <= to)

/** The first event of the open range: all events of the path before it are older than the last move of the leaf. */
export const openFrom = (path: HistoryPath): number => path.at(-1)?.[0] ?? 0

/** Whether two paths hold the same events. */
export const equals = (a: HistoryPath, b: HistoryPath): boolean => {
  const [left, right] = [joined(a), joined(b)]
  return left.length === right.length && left.every(([from, to], at) => from === right[at]?.[0] && to === right[at][1])
}

/** The same events in as few ranges as possible. */
export const joined = (path: HistoryPath): HistoryPath => {
  const ranges: Array<Range> = []
  for (const range of path) {
    const last = ranges.at(-1)
    if (last !== undefined && last[1] + 1 === range[0]) ranges[ranges.length - 1] = [last[0], range[1]]
    else ranges.push(range)
  }
  return ranges
}
