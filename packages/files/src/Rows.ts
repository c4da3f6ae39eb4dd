/**
 * The lines of `messages.jsonl` and `events.jsonl`: what they hold, as schemas. A client reads them with any JSON parser;
 * fields are only ever added. Spec: FI-20..FI-35 in specs/files.md (FL-4, FL-5, DC-4, DC-15).
 */
import { Schema } from "effect"

const optional = <S extends Schema.Schema.All>(schema: S) => Schema.optionalWith(schema, { exact: true })

/** The errno names that say why; clients never parse the message (FR-5). */
export const ErrorCode = Schema.Literal(
  "EACCES",
  "EALREADY",
  "EBUSY",
  "EHOSTDOWN",
  "EINVAL",
  "EIO",
  "EMSGSIZE",
  "ENOENT"
)
export type ErrorCode = typeof ErrorCode.Type

/** RFC 3339 in UTC with milliseconds (DC-4). */
export const Time = Schema.String

/** A run: one activity of the session, from its prompt to its end. `ctx-` and 32 lowercase hex digits (FR-9). */
export const RunID = Schema.String.pipe(Schema.pattern(/^ctx-[0-9a-f]{32}$/))
export type RunID = typeof RunID.Type

const TextBlock = Schema.Struct({
  type: Schema.Literal("text"),
  text: Schema.String,
  /** What it came from, where it is not what somebody wrote here: what a prompt came to, or a command's output. */
  from: optional(
    Schema.Literal("template", "file", "directory", "media", "agent", "reference", "resource", "failure", "shell")
  ),
  /** Of what it came from: a path, an agent's name. */
  name: optional(Schema.String)
})
/** Bytes are not written into a line: `blob` names them by their content, where they are kept (PK-5). */
const MediaBlock = Schema.Struct({
  type: Schema.Literal("media"),
  media_type: Schema.String,
  name: optional(Schema.String),
  /** `sha256-` and 64 hex digits of the bytes, for data that came with the message. */
  blob: optional(Schema.String),
  bytes: optional(Schema.Int),
  /** Where it is, for what was named and not brought. */
  uri: optional(Schema.String)
})
/** What a message or a result of a tool is made of. */
export const ContentBlock = Schema.Union(TextBlock, MediaBlock)
export type ContentBlock = typeof ContentBlock.Type
const ToolCallBlock = Schema.Struct({
  type: Schema.Literal("tool_call"),
  tool_call_id: Schema.String,
  name: Schema.String,
  input: Schema.Unknown
})
const ToolResultBlock = Schema.Struct({
  type: Schema.Literal("tool_result"),
  tool_call_id: Schema.String,
  content: Schema.Array(ContentBlock),
  is_error: optional(Schema.Boolean)
})
export const Block = Schema.Union(TextBlock, MediaBlock, ToolCallBlock, ToolResultBlock)
export type Block = typeof Block.Type

const message = { id: Schema.String, time: Time, run: optional(RunID), content: Schema.Array(Block) }

/** One line of `messages.jsonl`. */
export const MessageRow = Schema.Union(
  Schema.Struct({ role: Schema.Literal("user"), ...message }),
  Schema.Struct({
    role: Schema.Literal("assistant"),
    ...message,
    /** `provider/model`. */
    model: Schema.String,
    /** Why it is not whole. */
    error: optional(Schema.Struct({ code: ErrorCode, message: Schema.String }))
  }),
  Schema.Struct({ role: Schema.Literal("tool"), ...message, name: Schema.String }),
  /** What the runtime told the model in between: changed context, reminders. */
  Schema.Struct({ role: Schema.Literal("system"), ...message })
)
export type MessageRow = typeof MessageRow.Type

const event = {
  /** Names the row among its session's: what `resume` takes as `after`. */
  id: Schema.String,
  /** Strictly increasing: four times the event's place in the log, and the row's place among that event's. */
  seq: Schema.Int,
  time: Time
}
const ofRun = { ...event, run: RunID }
/** Steps outside of any activity, of logs that have none, are of no run. */
const maybeOfRun = { ...event, run: optional(RunID) }

/** One line of `events.jsonl`, and a frame in answer to `resume`. */
export const EventRow = Schema.Union(
  Schema.Struct({
    type: Schema.Literal("start"),
    ...ofRun,
    client_id: optional(Schema.String),
    scope: Schema.Literal("private", "shared", "temp"),
    cwd: Schema.String,
    model: optional(Schema.String)
  }),
  Schema.Struct({
    type: Schema.Literal("tool_call"),
    ...maybeOfRun,
    tool_call_id: Schema.String,
    name: Schema.String,
    input: Schema.Unknown
  }),
  Schema.Struct({
    type: Schema.Literal("tool_result"),
    ...maybeOfRun,
    tool_call_id: Schema.String,
    name: Schema.String
  }),
  Schema.Struct({
    type: Schema.Literal("message"),
    ...ofRun,
    role: Schema.Literal("assistant"),
    content: Schema.Array(TextBlock),
    /** The text is longer than a frame may be: the whole is in `latest.md`, and was in the deltas. */
    truncated: optional(Schema.Literal(true)),
    /** UTF-16 code units of the whole text, where it is truncated. */
    length: optional(Schema.Int)
  }),
  Schema.Struct({
    type: Schema.Literal("error"),
    ...maybeOfRun,
    /** The tool whose call failed. */
    tool: optional(Schema.String),
    tool_call_id: optional(Schema.String),
    code: ErrorCode,
    message: Schema.String,
    /** True: the run goes on. */
    recoverable: optional(Schema.Boolean)
  }),
  Schema.Struct({
    type: Schema.Literal("done"),
    ...ofRun,
    client_id: optional(Schema.String),
    status: Schema.Literal("ok", "error", "cancelled")
  }),
  /** A change of the session beside its runs; `value` is what it changed to, where there is one. */
  Schema.Struct({
    type: Schema.Literal("state"),
    ...maybeOfRun,
    change: Schema.Literal("created", "agent", "model", "cwd", "title", "budget", "compaction", "pruned"),
    value: optional(Schema.String)
  })
)
export type EventRow = typeof EventRow.Type

/** The four words of the file `state` (DC-3). */
export const StateWord = Schema.Literal("active", "idle", "done", "error")
export type StateWord = typeof StateWord.Type

/** `meta.json`. Nothing decides by it; it is for people and for clients' lists. */
export const Meta = Schema.Struct({
  /** The version of all files of the session's folder. */
  version: Schema.Literal(1),
  session_id: Schema.String,
  scope: Schema.Literal("private", "shared"),
  shared: optional(Schema.String),
  kind: Schema.Literal("agent", "model"),
  name: Schema.String,
  session: Schema.String,
  title: optional(Schema.String),
  /** Whom it talks to now. */
  agent: Schema.String,
  model: optional(Schema.String),
  parent_id: optional(Schema.String),
  /** How the last run ended. */
  last_status: optional(Schema.Literal("ok", "error", "cancelled")),
  last_run: optional(RunID),
  client_id: optional(Schema.String),
  cost_usd: Schema.Number,
  tokens: Schema.Struct({ input: Schema.Number, output: Schema.Number, reasoning: Schema.Number }),
  /** The last event that these files tell of. */
  seq: Schema.Int
})
export type Meta = typeof Meta.Type
