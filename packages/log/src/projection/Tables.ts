/**
 * Describes the projected tables as data: rows, keys and rules. The fold creates changes to these rows; the SQL writer
 * and the in-memory writer apply them. Apart from `session`, rows hold no content: they refer to the events that hold it
 * by sequence number. `storage/migrations` creates the tables. Spec: PJ-1, PJ-2, PJ-14.
 */
import { Schema, Struct } from "effect"

export type Value = string | number | null

const text = Schema.NullOr(Schema.String)
const number = Schema.NullOr(Schema.Number)

/**
 * `session`: one row per session. `location`, `model`, `activity_error`, `budget`, `path` and `forked` are JSON; times
 * are milliseconds since the epoch.
 */
export const SessionRow = Schema.Struct({
  id: Schema.String,
  parent_id: text,
  directory: Schema.String,
  location: Schema.String,
  title: text,
  agent: text,
  model: text,
  cost: Schema.Number,
  tokens_input: Schema.Number,
  tokens_output: Schema.Number,
  tokens_reasoning: Schema.Number,
  tokens_cache_read: Schema.Number,
  tokens_cache_write: Schema.Number,
  activity_id: text,
  activity_state: text,
  time_created: Schema.Number,
  time_updated: Schema.Number,
  activity_error: text,
  frame: text,
  pruned_seq: number,
  compaction_requested: text,
  compaction_running: text,
  budget: text,
  /** Unique over all sessions. */
  address: text,
  root: text,
  /** The event that introduced the current baseline; null before the first request, and after a move. */
  epoch: number,
  /** The last request's baseline contains the System messages up to this sequence number. */
  baseline_seq: number,
  /** The foreign log that the session was imported from, as JSON. */
  imported: text,
  /** The history path; null while the leaf never moved. */
  path: text,
  /** The session and the message that this one is a fork of. */
  forked: text,
  /** What began the session, as JSON; null: a person or a program. */
  origin: text,
  instructions: text,
  /** 1: the title is the beginning of the first prompt, until the session is named. */
  provisional: number,
  /** Settled steps, and calls. */
  turns: Schema.Number,
  tool_calls: Schema.Number,
  /** Milliseconds of the settled activities, less the start of one that runs. */
  duration_ms: Schema.Number
})
export type SessionRow = typeof SessionRow.Type

/** `session_input`: the durable inbox. Rows stay after promotion, so their ids stay taken. */
export type InputRow = {
  readonly id: string
  readonly session_id: string
  readonly delivery: string
  /** The admission, which holds the prompt. */
  readonly admitted_seq: number
  /** The event that took the input out of the inbox: its promotion or its withdrawal. */
  readonly promoted_seq: number | null
  /** The withdrawal, if the input was withdrawn. */
  readonly withdrawn_seq: number | null
}

/** `session_message`: a row per message. Its content is in the creating event, or in its prompt's admission. */
export type MessageRow = {
  readonly id: string
  readonly session_id: string
  /** The creating event. */
  readonly seq: number
  readonly type: string
  /** The call of a shell message, which names its part. */
  readonly call_id: string | null
  /** Prompts from this event on follow a checkpoint verbatim (CP-49). */
  readonly first_kept: number | null
  /** All messages from this event on follow a checkpoint (CP-60). */
  readonly all_kept: number | null
  /** The ending event. */
  readonly settled: number | null
  readonly time_created: number
}

/**
 * `session_part`: one row per text, reasoning or tool part of an assistant message, per shell output, and per edit of a
 * message for the model (CP-440). `opened`, `raw`, `called`, `progress` and `settled` are the sequence numbers of the events
 * that hold the content.
 */
export type PartRow = {
  readonly session_id: string
  readonly message_id: string
  readonly kind: string
  /** The id of the text, the reasoning or the call. */
  readonly key: string
  /** The creating event. */
  readonly seq: number
  readonly name: string | null
  readonly status: string
  /** The creating event, if it holds metadata. */
  readonly opened: number | null
  readonly raw: number | null
  readonly called: number | null
  readonly progress: number | null
  readonly settled: number | null
  readonly time_created: number
}

/** `session_instruction`: the events that report the instruction files that the session's reads found. */
export type InstructionRow = {
  readonly session_id: string
  readonly seq: number
}

/** `session_leaf`: the moves of the session's leaf, each the start of a segment of its tree. */
export type LeafRow = {
  readonly session_id: string
  readonly seq: number
  /** The message after which history continues; null before the first message. */
  readonly message_id: string | null
}

/** `session_label`: the labels of messages. The last one of a message holds. */
export type LabelRow = {
  readonly session_id: string
  readonly seq: number
  readonly message_id: string
  /** Null: the label was removed. */
  readonly label: string | null
}

export type Rows = {
  readonly session: SessionRow
  readonly session_input: InputRow
  readonly session_message: MessageRow
  readonly session_part: PartRow
  readonly session_instruction: InstructionRow
  readonly session_leaf: LeafRow
  readonly session_label: LabelRow
}
export type TableName = keyof Rows

type Spec<Row> = {
  readonly columns: ReadonlyArray<keyof Row & string>
  readonly key: ReadonlyArray<keyof Row & string>
  /** Columns that an update may set only while they are null: an input is promoted once, a part settled once. */
  readonly once: ReadonlyArray<keyof Row & string>
}

export const tables: { readonly [Name in TableName]: Spec<Rows[Name]> } = {
  session: {
    columns: Struct.keys(SessionRow.fields),
    key: ["id"],
    once: []
  },
  session_input: {
    columns: ["id", "session_id", "delivery", "admitted_seq", "promoted_seq", "withdrawn_seq"],
    key: ["id", "session_id"],
    once: ["promoted_seq"]
  },
  session_message: {
    columns: ["id", "session_id", "seq", "type", "call_id", "first_kept", "all_kept", "settled", "time_created"],
    key: ["id", "session_id"],
    once: ["settled"]
  },
  session_part: {
    columns: [
      "session_id",
      "message_id",
      "kind",
      "key",
      "seq",
      "name",
      "status",
      "opened",
      "raw",
      "called",
      "progress",
      "settled",
      "time_created"
    ],
    key: ["message_id", "kind", "key", "session_id"],
    once: ["settled", "called"]
  },
  session_instruction: {
    columns: ["session_id", "seq"],
    key: ["session_id", "seq"],
    once: []
  },
  session_leaf: {
    columns: ["session_id", "seq", "message_id"],
    key: ["session_id", "seq"],
    once: []
  },
  session_label: {
    columns: ["session_id", "seq", "message_id", "label"],
    key: ["session_id", "seq"],
    once: []
  }
}

/** Tables in an order that satisfies foreign keys. */
export const tableNames: ReadonlyArray<TableName> = [
  "session",
  "session_input",
  "session_message",
  "session_part",
  "session_instruction",
  "session_leaf",
  "session_label"
]
