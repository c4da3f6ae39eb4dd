/**
 * The state from which the context of the last step is rendered: the frame, the shown lines of `messages.jsonl`, the
 * swapped ranges, and the todo list. Later changes are pending until the next step. Its size follows what is shown.
 * Pure. Spec: FI-44, FI-57 in specs/files.md.
 */
import { Chunk, Schema } from "effect"
import { nothingPruned } from "@daybook/core/request/Prune"
import { type Folded, nothingFolded } from "@daybook/core/request/RequestFrame"
import { Ranges } from "@daybook/log/domain/HistoryPath"
import { JsonRecord } from "@daybook/log/domain/Json"
import { ModelRef, TodoItem } from "@daybook/log/domain/Values"
import { RequestFramed } from "@daybook/log/events/SessionEvents"
import { optional } from "@daybook/log/support/Optional"

/** A line of `messages.jsonl` that is shown, or that the next step would show. */
export interface Line {
  readonly line: number
  /** The offset of its first byte, and its size with the newline. */
  readonly at: number
  readonly bytes: number
  /** `told` is a context change: it survives checkpoints until a baseline contains it. */
  readonly kind: "user" | "told" | "other" | "tool"
  /** The sequence number of the event that wrote it; for a prompt or a context change, the message's own. */
  readonly seq: number
  /** The message of the line; for a tool's line, its assistant message. */
  readonly message: string
  readonly call?: string | undefined
}

/** Consecutive lines that a compaction swapped out. */
export const Swap = Schema.Struct({
  from: Schema.Int,
  to: Schema.Int,
  at: Schema.Int,
  bytes: Schema.Int,
  /** The sequence number of the compaction. */
  seq: Schema.Int,
  /** The beginning of its summary. */
  summary: Schema.String,
  /** The SHA-256 of the lines in hex, once computed. */
  sha256: optional(Schema.String)
})
export type Swap = typeof Swap.Type

const Compacted = Schema.Struct({
  seq: Schema.Int,
  /** The number of lines at that time. */
  lines: Schema.Int,
  firstKeptSeq: optional(Schema.Int),
  keptSeq: optional(Schema.Int),
  summary: Schema.String
})
const Todo = Schema.Struct({ seq: Schema.Int, items: Schema.Array(TodoItem) })

/** Changes that take effect with the next step. */
const Pending = Schema.Struct({
  /** The history path since the leaf moved. */
  path: optional(Ranges),
  framed: Schema.Array(RequestFramed.data),
  compacted: Schema.Array(Compacted),
  prunedSeq: optional(Schema.Int),
  todo: optional(Todo)
})

const Step = Schema.Struct({
  seq: Schema.Int,
  messageID: Schema.String,
  agent: Schema.String,
  model: ModelRef,
  lines: Schema.Int
})

/** A `todo` call in progress; the sequence number of its part orders the lists (TO-92). */
const TodoCall = Schema.Struct({ message: Schema.String, call: Schema.String, seq: Schema.Int, writes: Schema.Boolean })

export interface PackState {
  /** The number of lines of `messages.jsonl` so far, and their bytes. */
  readonly lines: number
  readonly bytes: number
  readonly shown: Chunk.Chunk<Line>
  readonly swaps: ReadonlyArray<Swap>
  readonly framed: Folded
  readonly prunedSeq: number
  readonly todo: typeof Todo.Type | undefined
  /** The last step; undefined before the first. */
  readonly step: typeof Step.Type | undefined
  readonly calls: ReadonlyArray<typeof TodoCall.Type>
  readonly pending: typeof Pending.Type
}

export const nothingPending: PackState["pending"] = { framed: [], compacted: [] }

export const initial: PackState = {
  lines: 0,
  bytes: 0,
  shown: Chunk.empty(),
  swaps: [],
  framed: nothingFolded,
  prunedSeq: nothingPruned,
  todo: undefined,
  step: undefined,
  calls: [],
  pending: nothingPending
}

const FramedTool = Schema.Struct({
  name: Schema.String,
  description: optional(Schema.String),
  parameters: JsonRecord
})

const StoredLine = Schema.Tuple(
  Schema.Int,
  Schema.Int,
  Schema.Int,
  Schema.Literal("user", "told", "other", "tool"),
  Schema.Int,
  Schema.String,
  Schema.optionalElement(Schema.String)
)

/** The state as a ledger stores it. */
export const Checkpoint = Schema.Struct({
  lines: Schema.Int,
  bytes: Schema.Int,
  shown: Schema.Array(StoredLine),
  swaps: Schema.Array(Swap),
  system: Schema.Array(Schema.String),
  baselineSeq: Schema.Int,
  settings: JsonRecord,
  offered: Schema.Array(Schema.String),
  tools: Schema.Array(FramedTool),
  prunedSeq: Schema.Int,
  todo: optional(Todo),
  step: optional(Step),
  calls: Schema.Array(TodoCall),
  pending: Pending
})
export type Checkpoint = typeof Checkpoint.Type

export const toCheckpoint = ({ framed, shown, step, todo, ...rest }: PackState): Checkpoint => ({
  ...rest,
  shown: Chunk.toReadonlyArray(shown).map(({ at, bytes, call, kind, line, message, seq }) =>
    call === undefined ? [line, at, bytes, kind, seq, message] : [line, at, bytes, kind, seq, message, call]
  ),
  system: framed.frame.system,
  baselineSeq: framed.frame.baselineSeq,
  settings: framed.frame.settings,
  offered: framed.frame.tools.map(({ name }) => name),
  tools: [...framed.known.values()],
  ...(todo === undefined ? {} : { todo }),
  ...(step === undefined ? {} : { step })
})

export const fromCheckpoint = (stored: Checkpoint): PackState => {
  const { baselineSeq, offered, settings, shown, step, system, todo, tools, ...rest } = stored
  const known = new Map(tools.map((tool) => [tool.name, tool]))
  return {
    ...rest,
    shown: Chunk.fromIterable(
      shown.map(([line, at, bytes, kind, seq, message, call]) => ({ line, at, bytes, kind, seq, message, call }))
    ),
    framed: {
      known,
      frame: { system, baselineSeq, settings, tools: offered.flatMap((name) => known.get(name) ?? []) }
    },
    todo,
    step
  }
}
