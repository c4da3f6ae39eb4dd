/**
 * Frames of the server on the socket, one JSON object per line: their schemas, and the line of each. A text that is
 * longer than a line may be is truncated and marked. Requests are in `Request.ts`. Spec: SO-5..SO-19 in specs/socket.md
 * (FR-1..FR-5).
 */
import { Schema } from "effect"
import { QuestionItem } from "@daybook/core/domain/Question"
import { PermissionSubject } from "@daybook/core/permission/PermissionSubject"
import { JsonValue } from "@daybook/log/domain/Json"
import { beginningOf } from "@daybook/log/support/Text"
import { ErrorCode, EventRow, RunID } from "@daybook/transcript/row/Rows"
import { AskID, maxLineBytes, Scope } from "./Request.ts"
import { optional } from "@daybook/log/support/Optional"

const TextContent = Schema.Array(Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }))

/**
 * Fields of a run's frames. `id` is the client's id, if the run came from one. `event` is the id of the frame's row in
 * `events.jsonl`, if it has one: the cursor to resume from.
 */
const ofRun = { id: optional(Schema.String), run: RunID, event: optional(Schema.String) }

const RunStatus = Schema.Struct({
  session: Schema.String,
  scope: Scope,
  shared: optional(Schema.String),
  run: RunID,
  client_id: optional(Schema.String),
  state: Schema.Literal("active", "waiting"),
  /** Open asks of an active run. */
  asks: optional(Schema.Array(AskID))
})
export type RunStatus = typeof RunStatus.Type

const SessionItem = Schema.Struct({
  /** Its name, or its id if it has none. */
  session: Schema.String,
  session_id: Schema.String,
  title: optional(Schema.String),
  state: Schema.Literal("active", "idle", "error"),
  waiting: Schema.Int,
  cwd: Schema.String,
  model: optional(Schema.String),
  created_at: Schema.String,
  updated_at: Schema.String
})
export type SessionItem = typeof SessionItem.Type

/** A frame for a client. Types and fields may be added: a client ignores those that it does not know. */
export const RunFrame = Schema.Union(
  /** The prompt waits. With `run` it is on disk; without, its session first moves to another folder or model. */
  Schema.Struct({ type: Schema.Literal("queued"), id: optional(Schema.String), run: optional(RunID) }),
  Schema.Struct({ type: Schema.Literal("start"), ...ofRun, model: optional(Schema.String) }),
  Schema.Struct({ type: Schema.Literal("delta"), id: optional(Schema.String), run: RunID, text: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("reasoning_delta"),
    id: optional(Schema.String),
    run: RunID,
    text: Schema.String
  }),
  Schema.Struct({
    type: Schema.Literal("tool_call"),
    ...ofRun,
    tool_call_id: Schema.String,
    name: Schema.String,
    input: JsonValue
  }),
  Schema.Struct({
    type: Schema.Literal("tool_result"),
    ...ofRun,
    tool_call_id: Schema.String,
    name: Schema.String,
    content: TextContent,
    truncated: optional(Schema.Literal(true)),
    length: optional(Schema.Int)
  }),
  /** A tool needs a permission from a person. */
  Schema.Struct({
    type: Schema.Literal("ask"),
    id: optional(Schema.String),
    run: optional(RunID),
    ask: AskID,
    kind: Schema.Literal("permission"),
    tool_call_id: Schema.String,
    permission: Schema.String,
    resources: Schema.Array(Schema.String),
    title: Schema.String,
    /** The patterns that "session" and "always" allow from now on; empty if these decisions are not available. */
    always: Schema.Array(Schema.String),
    /** The agent, session, folder and tool that ask. */
    agent: Schema.String,
    session_id: Schema.String,
    session_title: optional(Schema.String),
    /** The folder as the client knows it; absent if the session is gone. */
    cwd: optional(Schema.String),
    tool: Schema.String,
    /** The whole action that needs the permission. */
    subject: PermissionSubject,
    /** Further remarks for the person. */
    notes: Schema.Array(Schema.String),
    /** Milliseconds until it is refused without an answer; absent if it waits without a limit. */
    time_left_ms: optional(Schema.Int),
    truncated: optional(Schema.Literal(true))
  }),
  /** The model asks a person a question. */
  Schema.Struct({
    type: Schema.Literal("ask"),
    id: optional(Schema.String),
    run: optional(RunID),
    ask: AskID,
    kind: Schema.Literal("question"),
    tool_call_id: Schema.String,
    questions: Schema.Array(QuestionItem)
  }),
  /** The ask was closed: by a client, elsewhere, or with its run. */
  Schema.Struct({
    type: Schema.Literal("answered"),
    id: optional(Schema.String),
    run: optional(RunID),
    ask: AskID,
    decision: optional(Schema.String)
  }),
  Schema.Struct({
    type: Schema.Literal("status"),
    id: optional(Schema.String),
    kind: Schema.Literal("agent", "model"),
    name: Schema.String,
    runs: Schema.Array(RunStatus),
    /** How late the server's event loop was in the last fifth of a second, at its 99th percentile. */
    lag_ms: Schema.NonNegativeInt,
    /** More runs exist than are listed. */
    more: optional(Schema.Literal(true))
  }),
  Schema.Struct({
    type: Schema.Literal("list"),
    id: optional(Schema.String),
    sessions: Schema.Array(SessionItem),
    /** `after` of the next page; absent on the last. */
    next: optional(Schema.String)
  }),
  Schema.Struct({
    type: Schema.Literal("message"),
    ...ofRun,
    role: Schema.Literal("assistant"),
    content: TextContent,
    truncated: optional(Schema.Literal(true)),
    length: optional(Schema.Int),
    problem: optional(Schema.String)
  }),
  Schema.Struct({
    type: Schema.Literal("error"),
    /** The request's id, if it could be read. */
    id: optional(Schema.String),
    run: optional(RunID),
    event: optional(Schema.String),
    /** The tool whose call failed. */
    tool: optional(Schema.String),
    tool_call_id: optional(Schema.String),
    code: ErrorCode,
    message: Schema.String,
    /** True: the run continues. */
    recoverable: optional(Schema.Boolean)
  }),
  Schema.Struct({ type: Schema.Literal("done"), ...ofRun, status: Schema.Literal("ok", "error", "cancelled") }),
  Schema.Struct({ type: Schema.Literal("pong"), id: optional(Schema.String) })
)
export type RunFrame = typeof RunFrame.Type

/** Any frame: those of a live run, and rows of `events.jsonl` in answer to `resume` (they have a `seq`). */
export const Frame = Schema.Union(EventRow, RunFrame)
export type Frame = typeof Frame.Type

/** The error frame of a refused line or request. */
export const errorFrame = (error: {
  readonly code: ErrorCode
  readonly message: string
  readonly id?: string | undefined
  readonly run?: RunID | undefined
}): Extract<RunFrame, { readonly type: "error" }> => ({
  type: "error",
  ...(error.id === undefined ? {} : { id: error.id }),
  ...(error.run === undefined ? {} : { run: error.run }),
  code: error.code,
  message: error.message
})

/** The longest delta in UTF-16 code units; any such frame is far below the limit of a line. */
export const maxDeltaLength = 65_536

export const deltaTexts = (text: string): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  for (let rest = text; rest.length > 0; rest = rest.slice(pieces.at(-1)?.length)) {
    pieces.push(beginningOf(rest, maxDeltaLength))
  }
  return pieces
}

const fits = (line: string): boolean => line.length * 3 <= maxLineBytes || Buffer.byteLength(line) <= maxLineBytes

/** The frame as one line. A frame that is too long has shortened texts and is marked `truncated`. */
export const encodeFrame = (frame: Frame): string => {
  const line = JSON.stringify(frame)
  if (fits(line)) return `${line}\n`
  for (const length of [131_072, 16_384, 1024]) {
    const shorter = JSON.stringify({ ...frame, truncated: true }, (_, value: unknown) =>
      typeof value === "string" ? beginningOf(value, length) : value
    )
    if (fits(shorter)) return `${shorter}\n`
  }
  // Many small values: keep only the plain fields.
  const named = Object.entries(frame).filter(([, value]) => typeof value !== "object")
  return `${JSON.stringify({ ...Object.fromEntries(named), truncated: true }, (_, value: unknown) =>
    typeof value === "string" ? beginningOf(value, 1024) : value
  )}\n`
}

export {
  type Answer,
  AskID,
  type Cancel,
  decode,
  decodeLine,
  isCursor,
  isRunID,
  type List,
  longestPage,
  type Ping,
  Request,
  type Resume,
  Scope,
  type Send,
  type Status,
  WireError
} from "./Request.ts"
