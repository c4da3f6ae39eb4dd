/**
 * What has to be known of a session's past to say what its last step was shown: the frame, where the shown messages lie in
 * `messages.jsonl`, which lines were swapped out, and the list of things to do. It stands at the last step; what came
 * since waits for the next one. Its size is that of what is shown. Pure. Spec: FI-44, FI-57 in specs/files.md.
 */
import { ModelRef, nothingFolded, nothingPruned, RequestFramed, TodoItem, type Folded } from "@daybook/core"
import { Chunk, Schema } from "effect"

const optional = <S extends Schema.Schema.All>(schema: S) => Schema.optionalWith(schema, { exact: true })

/** A line of `messages.jsonl` that is shown, or would be by the next step. */
export interface Line {
  /** From 1. */
  readonly line: number
  /** Its first byte, and its bytes with the newline. */
  readonly at: number
  readonly bytes: number
  /** `told` is a change of the context: it outlives a checkpoint for as long as no baseline contains it. */
  readonly kind: "user" | "told" | "other" | "tool"
  /** The place of the event that wrote it: of a prompt and of what was told, the message's own place. */
  readonly seq: number
  /** Of a tool's line, its assistant's. */
  readonly message: string
  readonly call?: string | undefined
}

/** Lines, one after the other, that a compaction took out of what is shown. */
export const Swap = Schema.Struct({
  from: Schema.Int,
  to: Schema.Int,
  at: Schema.Int,
  bytes: Schema.Int,
  /** The compaction's event. */
  seq: Schema.Int,
  /** The beginning of its summary. */
  summary: Schema.String,
  /** The SHA-256 of the lines in hex, once somebody has read them. */
  sha256: optional(Schema.String)
})
export type Swap = typeof Swap.Type

const Compacted = Schema.Struct({
  seq: Schema.Int,
  /** Lines that there were. */
  lines: Schema.Int,
  firstKeptSeq: optional(Schema.Int),
  summary: Schema.String
})
const Todo = Schema.Struct({ seq: Schema.Int, items: Schema.Array(TodoItem) })

/** What the next step will stand on. */
const Pending = Schema.Struct({
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
  /** Lines that there were. */
  lines: Schema.Int
})

/** A call of `todo` that is on its way: the place of its part tells which list is the newer one (TO-92). */
const TodoCall = Schema.Struct({ message: Schema.String, call: Schema.String, seq: Schema.Int, writes: Schema.Boolean })

export interface PackState {
  /** Lines of `messages.jsonl` so far, and their bytes. */
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

/** Before the first event. */
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
  parameters: Schema.Record({ key: Schema.String, value: Schema.Unknown })
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
  settings: Schema.Record({ key: Schema.String, value: Schema.Unknown }),
  offered: Schema.Array(Schema.String),
  tools: Schema.Array(FramedTool),
  prunedSeq: Schema.Int,
  todo: optional(Todo),
  step: optional(Step),
  calls: Schema.Array(TodoCall),
  pending: Pending
})
export type Checkpoint = typeof Checkpoint.Type

/** What to store of a state. */
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

/** The state that the checkpoint was made of. */
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
