/**
 * Schemas of the lines of `messages.jsonl` and `events.jsonl`, and of `meta.json`. Any JSON parser reads them; fields
 * are only added. Spec: FI-20..FI-35 in specs/files.md (FL-4, FL-5, DC-4, DC-15, FR-9).
 */
import { createHash } from "node:crypto"
import { Schema } from "effect"
import { JsonValue } from "@daybook/log/domain/Json"
import { optional } from "@daybook/log/support/Optional"

// Formats the times of rows. Pure. Spec: FI-5 in specs/files.md (DC-4).

const firstTime = Date.parse("0000-01-01T00:00:00.000Z")

const lastTime = Date.parse("9999-12-31T23:59:59.999Z")

const minute = 60_000

/** The last minute formatted, and its text up to the seconds. Successive events mostly share a minute. */
let last = { minute: Number.NaN, text: "" }

const textOfMinute = (at: number): string => {
  if (last.minute !== at) last = { minute: at, text: new Date(at * minute).toISOString().slice(0, 17) }
  return last.text
}

/** RFC 3339 in UTC with milliseconds (DC-4). Times outside the years 0000 to 9999 are clamped. */
export const timeText = (ms: number): string => {
  const at = Math.trunc(Math.min(Math.max(ms, firstTime), lastTime))
  const whole = Math.floor(at / minute)
  const rest = String(at - whole * minute).padStart(5, "0")
  return `${textOfMinute(whole)}${rest.slice(0, 2)}.${rest.slice(2)}Z`
}

// Shows a session's folder as its agent sees it. Pure. Spec: FI-10 in specs/files.md.

/** The folder as the agent sees it: its path below the root. Without a root, or outside, the host path. */
export const agentDirectory = (root: string | undefined, directory: string): string => {
  if (root === undefined || root === "/") return directory
  if (directory === root) return "/"
  return directory.startsWith(`${root}/`) ? directory.slice(root.length) : directory
}

/** The errno names of errors; clients decide by these and never parse the message (FR-5). */
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

/** The id of a run, one activity of the session: `ctx-` and 32 lowercase hex digits (FR-9). */
export const RunID = Schema.String.pipe(Schema.pattern(/^ctx-[0-9a-f]{32}$/))
export type RunID = typeof RunID.Type

const TextBlock = Schema.Struct({
  type: Schema.Literal("text"),
  text: Schema.String,
  /** The source of a text that the user did not type: part of a prompt's expansion, or a command's output. */
  from: optional(
    Schema.Literal("template", "file", "directory", "media", "agent", "reference", "resource", "failure", "shell")
  ),
  /** The name of the source: a path or an agent's name. */
  name: optional(Schema.String)
})
/** A file. Lines hold no bytes; `blob` names the content (PK-5). */
const MediaBlock = Schema.Struct({
  type: Schema.Literal("media"),
  media_type: Schema.String,
  name: optional(Schema.String),
  /** `sha256-` and 64 hex digits of the bytes, for data that came with the message. */
  blob: optional(Schema.String),
  bytes: optional(Schema.Int),
  /** The location, for a file that was named without data. */
  uri: optional(Schema.String)
})
/** A block of a message or of a tool result. */
export const ContentBlock = Schema.Union(TextBlock, MediaBlock)
export type ContentBlock = typeof ContentBlock.Type
const ToolCallBlock = Schema.Struct({
  type: Schema.Literal("tool_call"),
  tool_call_id: Schema.String,
  name: Schema.String,
  input: JsonValue
})
const ToolResultBlock = Schema.Struct({
  type: Schema.Literal("tool_result"),
  tool_call_id: Schema.String,
  content: Schema.Array(ContentBlock),
  is_error: optional(Schema.Boolean)
})
/** A block of a row of `messages.jsonl`. */
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
    /** Why the step is incomplete. */
    error: optional(Schema.Struct({ code: ErrorCode, message: Schema.String }))
  }),
  Schema.Struct({ role: Schema.Literal("tool"), ...message, name: Schema.String }),
  /** Text for the model from the runtime: changed context, reminders. */
  Schema.Struct({ role: Schema.Literal("system"), ...message })
)
export type MessageRow = typeof MessageRow.Type

const event = {
  /** The id of the row within its session: the `after` of `resume`. */
  id: Schema.String,
  /** Strictly increasing: four times the event's sequence number, plus the row's index within the event. */
  seq: Schema.Int,
  time: Time
}
const ofRun = { ...event, run: RunID }
/** Steps outside any activity, in logs without activities, have no run. */
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
    input: JsonValue
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
    /** The text is longer than a frame may be; `latest.md` and the deltas have all of it. */
    truncated: optional(Schema.Literal(true)),
    /** UTF-16 code units of the whole text, if it is truncated. */
    length: optional(Schema.Int),
    /** What the answer lacks, for people. */
    problem: optional(Schema.String)
  }),
  Schema.Struct({
    type: Schema.Literal("error"),
    ...maybeOfRun,
    /** The tool whose call failed. */
    tool: optional(Schema.String),
    tool_call_id: optional(Schema.String),
    code: ErrorCode,
    message: Schema.String,
    /** True: the run continues. */
    recoverable: optional(Schema.Boolean)
  }),
  Schema.Struct({
    type: Schema.Literal("done"),
    ...ofRun,
    client_id: optional(Schema.String),
    status: Schema.Literal("ok", "error", "cancelled")
  }),
  /** A change of the session outside its runs; `value` is the new value, if any. */
  Schema.Struct({
    type: Schema.Literal("state"),
    ...maybeOfRun,
    change: Schema.Literal(
      "created",
      "agent",
      "model",
      "cwd",
      "title",
      "budget",
      "compaction",
      "pruned",
      "undo",
      "withheld",
      "leaf",
      "label",
      "fork"
    ),
    value: optional(Schema.String)
  })
)
export type EventRow = typeof EventRow.Type

/** The four values of the file `state` (DC-3). */
export const StateWord = Schema.Literal("active", "idle", "done", "error")
export type StateWord = typeof StateWord.Type

// Computes the id of a run.

/**
 * The id of the run that began with the prompt of this message id; of a run without a prompt, the argument is the
 * activity id. It is known before the run begins and is the same in every process.
 */
export const runOf = (sessionID: string, of: string): RunID =>
  `ctx-${createHash("sha256").update(`${sessionID}/${of}`).digest("hex").slice(0, 32)}`
