/**
 * Describes the projected tables as data: rows, keys and rules. The fold creates changes to these rows; the SQL writer
 * and the in-memory writer apply them. `storage/migrations` creates the tables. Spec: PJ-1, PJ-2.
 */

/** A column's value. JSON columns contain text. */
export type Value = string | number | null

/**
 * `session`: one row per session. `location`, `model`, `activity_error` and `budget` are JSON; times are milliseconds
 * since the epoch.
 */
export type SessionRow = {
  readonly id: string
  readonly parent_id: string | null
  readonly directory: string
  readonly location: string
  readonly title: string | null
  readonly agent: string | null
  readonly model: string | null
  readonly cost: number
  readonly tokens_input: number
  readonly tokens_output: number
  readonly tokens_reasoning: number
  readonly tokens_cache_read: number
  readonly tokens_cache_write: number
  readonly activity_id: string | null
  readonly activity_state: string | null
  readonly activity_error: string | null
  /** The hash of the last request's frame. */
  readonly frame: string | null
  readonly pruned_seq: number | null
  readonly compaction_requested: string | null
  readonly compaction_running: string | null
  readonly budget: string | null
  /** Unique over all sessions. */
  readonly address: string | null
  readonly root: string | null
  /** The event that introduced the current baseline; null before the first request, and after a move. */
  readonly epoch: number | null
  /** The last request's baseline contains the System messages up to this sequence number. */
  readonly baseline_seq: number | null
  readonly time_created: number
  readonly time_updated: number
}

/** `session_input`: the durable inbox. Rows stay after promotion, so their ids stay taken. */
export type InputRow = {
  readonly id: string
  readonly session_id: string
  readonly prompt: string
  readonly delivery: string
  readonly admitted_seq: number
  /** The event that took the input out of the inbox: its promotion or its withdrawal. */
  readonly promoted_seq: number | null
  /** The withdrawal, if the input was withdrawn. */
  readonly withdrawn_seq: number | null
  readonly time_created: number
}

/**
 * `session_message`: one row per message. `data` comes from the creating event and never changes; `settled` comes from
 * the ending event. A user message has no data: the input row holds its prompt.
 */
export type MessageRow = {
  readonly id: string
  readonly session_id: string
  readonly seq: number
  readonly type: string
  readonly data: string | null
  readonly settled: string | null
  readonly time_created: number
  readonly time_settled: number | null
}

/**
 * `session_part`: one row per text, reasoning or tool part of an assistant message, and per shell output, so that a
 * long answer is stored once. `opened`, `called`, `progress` and `settled` are JSON, each written by one kind of event.
 */
export type PartRow = {
  readonly session_id: string
  readonly message_id: string
  readonly kind: string
  /** The id of the text, the reasoning or the call. */
  readonly key: string
  readonly seq: number
  readonly name: string | null
  readonly status: string
  readonly opened: string | null
  readonly raw: string | null
  readonly called: string | null
  readonly progress: string | null
  readonly settled: string | null
  readonly time_created: number
  readonly time_ran: number | null
  readonly time_settled: number | null
}

/** `session_instruction`: instruction files that the session's reads found; `paths` is a JSON array. */
export type InstructionRow = {
  readonly session_id: string
  readonly seq: number
  readonly paths: string
}

export type Rows = {
  readonly session: SessionRow
  readonly session_input: InputRow
  readonly session_message: MessageRow
  readonly session_part: PartRow
  readonly session_instruction: InstructionRow
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
    columns: [
      "id",
      "parent_id",
      "directory",
      "location",
      "title",
      "agent",
      "model",
      "cost",
      "tokens_input",
      "tokens_output",
      "tokens_reasoning",
      "tokens_cache_read",
      "tokens_cache_write",
      "activity_id",
      "activity_state",
      "time_created",
      "time_updated",
      "activity_error",
      "frame",
      "pruned_seq",
      "compaction_requested",
      "compaction_running",
      "budget",
      "address",
      "root",
      "epoch",
      "baseline_seq"
    ],
    key: ["id"],
    once: []
  },
  session_input: {
    columns: [
      "id",
      "session_id",
      "prompt",
      "delivery",
      "admitted_seq",
      "promoted_seq",
      "time_created",
      "withdrawn_seq"
    ],
    key: ["id", "session_id"],
    once: ["promoted_seq"]
  },
  session_message: {
    columns: ["id", "session_id", "seq", "type", "data", "settled", "time_created", "time_settled"],
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
      "time_created",
      "time_ran",
      "time_settled"
    ],
    key: ["message_id", "kind", "key", "session_id"],
    once: ["settled", "called"]
  },
  session_instruction: {
    columns: ["session_id", "seq", "paths"],
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
  "session_instruction"
]
