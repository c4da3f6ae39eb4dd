/**
 * What goes over the socket: requests in, frames out, one JSON object a line. Decoding never fails but with an answer for
 * the client, and that answer quotes nothing that could be long or secret. Lines are cut in `Lines.ts`; what requests do
 * is `Served.ts`. Spec: SO-5..SO-19 in specs/socket.md (FR-1..FR-5, NA-1, NA-2, DC-1, DC-2).
 */
import { ErrorCode, EventRow, RunID } from "@daybook/files"
import { defaultSession, isName, Name, SessionName } from "@daybook/core"
import { Either, Schema } from "effect"
import { cwdProblem } from "./CwdText.ts"
import { maxLineBytes, type Line } from "./Lines.ts"

const optional = <S extends Schema.Schema.All>(schema: S) => Schema.optionalWith(schema, { exact: true })

const loneSurrogate = /\p{Surrogate}/u

const inputProblem = (text: string): string | undefined => {
  if (text === "") return "it is empty"
  if (text.includes("\u0000")) return "it holds a NUL character"
  return loneSurrogate.test(text) ? "it is not well-formed Unicode" : undefined
}

/** The words for a person; the client's answer says only what the field has to be. */
const Input = Schema.String.pipe(Schema.filter((text) => inputProblem(text) === undefined))
const CwdField = Schema.String.pipe(Schema.filter((text) => cwdProblem(text) === undefined))

/** Names a row of `events.jsonl`: any name, or an event's id with the row's place among that event's. */
export const isCursor = (text: string): boolean => isName(text) || /^evt_[A-Za-z0-9._-]{1,98}$/.test(text)
const Cursor = Schema.String.pipe(Schema.filter(isCursor))

/** Who sees a session (SC-1). */
export const Scope = Schema.Literal("private", "shared", "temp")
export type Scope = typeof Scope.Type

/** Which session of the agent or model behind the socket. */
const target = {
  session: Schema.optionalWith(SessionName, { default: () => defaultSession }),
  scope: Schema.optionalWith(Scope, { default: (): Scope => "private" }),
  shared: optional(Name)
}

const Send = Schema.Struct({
  op: Schema.Literal("send"),
  /** The client's own id: the same id again is the same run (FR-8). */
  id: Name,
  ...target,
  cwd: optional(CwdField),
  input: Input
})

const Resume = Schema.Struct({ op: Schema.Literal("resume"), ...target, after: optional(Cursor) })

/** `id` is a run's, or else a client's id in the session named. */
const Cancel = Schema.Struct({ op: Schema.Literal("cancel"), id: Name, ...target })

/** A ping has no fields of its own; an id that is a name comes back in its pong. */
const Ping = Schema.Struct({ op: Schema.Literal("ping"), id: optional(Name) })

/** What a client may ask. */
export const Request = Schema.Union(Send, Resume, Cancel, Ping)
export type Request = typeof Request.Type
export type Send = typeof Send.Type
export type Resume = typeof Resume.Type
export type Cancel = typeof Cancel.Type
export type Ping = typeof Ping.Type

/** Whether an id is a run's: its form is one that `runOf` gives. */
export const isRunID = Schema.is(RunID)

const TextContent = Schema.Array(Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }))

/**
 * Of a run that somebody follows. `id` is the client's id, where the run came from one; `event`, where a frame has a row
 * in `events.jsonl`, is that row's id: the cursor to resume from.
 */
const ofRun = { id: optional(Schema.String), run: RunID, event: optional(Schema.String) }

/** What a client is told. Further types and fields may come: a client skips what it does not know. */
export const RunFrame = Schema.Union(
  Schema.Struct({ type: Schema.Literal("start"), ...ofRun, model: optional(Schema.String) }),
  Schema.Struct({ type: Schema.Literal("delta"), id: optional(Schema.String), run: RunID, text: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("message"),
    ...ofRun,
    role: Schema.Literal("assistant"),
    content: TextContent,
    truncated: optional(Schema.Literal(true)),
    length: optional(Schema.Int)
  }),
  Schema.Struct({
    type: Schema.Literal("error"),
    /** The request's, where it could be read. */
    id: optional(Schema.String),
    run: optional(RunID),
    event: optional(Schema.String),
    code: ErrorCode,
    message: Schema.String,
    /** True: the run goes on. */
    recoverable: optional(Schema.Boolean)
  }),
  Schema.Struct({ type: Schema.Literal("done"), ...ofRun, status: Schema.Literal("ok", "error", "cancelled") }),
  Schema.Struct({ type: Schema.Literal("pong"), id: optional(Schema.String) })
)
export type RunFrame = typeof RunFrame.Type

/** Every frame: those of a run as it happens, and rows of `events.jsonl` in answer to `resume` (they have a `seq`). */
export const Frame = Schema.Union(EventRow, RunFrame)
export type Frame = typeof Frame.Type
export type ErrorFrame = Extract<RunFrame, { readonly type: "error" }>

/** Why a line is no request: the code for programs, the sentence for people, and the request's id where it has one. */
export class WireError extends Schema.TaggedError<WireError>()("WireError", {
  code: ErrorCode,
  message: Schema.String,
  id: optional(Schema.String)
}) {}

/** The answer to a line that is no request. */
export const errorFrame = (error: {
  readonly code: ErrorCode
  readonly message: string
  readonly id?: string | undefined
}): ErrorFrame => ({
  type: "error",
  ...(error.id === undefined ? {} : { id: error.id }),
  code: error.code,
  message: error.message
})

/** The bytes of one line as a request. */
export const decodeLine = (bytes: Uint8Array): Either.Either<Request, WireError> =>
  Either.left(new WireError({ code: "EIO", message: `not yet: ${bytes.length}` }))

/** One line as it came from the splitter, as a request. */
export const decode = (line: Line): Either.Either<Request, WireError> =>
  line._tag === "Line"
    ? decodeLine(line.bytes)
    : Either.left(new WireError({ code: "EMSGSIZE", message: `the frame is longer than ${maxLineBytes} bytes` }))

/** A frame as one line. */
export const encodeFrame = (frame: Frame): string => `${JSON.stringify(frame)}\n`
