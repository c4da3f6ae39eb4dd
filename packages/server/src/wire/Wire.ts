/**
 * The protocol of the socket: decodes requests and encodes frames, one JSON object per line. A decoding error is an
 * answer for the client and quotes no value, which could be long or secret. `Lines.ts` splits lines; `Served.ts`
 * executes requests. Spec: SO-5..SO-19 in specs/socket.md (FR-1..FR-5, NA-1, NA-2, DC-1, DC-2).
 */
import { Either, ParseResult, Schema } from "effect"
import { QuestionItem } from "@daybook/core/domain/Question"
import { PermissionSubject } from "@daybook/core/permission/PermissionSubject"
import { defaultSession, isName, Name, nameRule, reservedSession, SessionName } from "@daybook/log/domain/Address"
import { JsonValue } from "@daybook/log/domain/Json"
import { ErrorCode, EventRow, RunID } from "@daybook/transcript/row/Rows"
import { cwdProblem } from "../cwd/CwdText.ts"
import { type Line, maxLineBytes } from "./Lines.ts"

const optional = <S extends Schema.Schema.All>(schema: S) => Schema.optionalWith(schema, { exact: true })

/** Rejects invalid UTF-8 and keeps a byte order mark, which JSON does not allow. */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const loneSurrogate = /\p{Surrogate}/u

const inputProblem = (text: string): string | undefined => {
  if (text === "") return "it is empty"
  if (text.includes("\u0000")) return "it holds a NUL character"
  return loneSurrogate.test(text) ? "it is not well-formed Unicode" : undefined
}

const Input = Schema.String.pipe(Schema.filter((text) => inputProblem(text) === undefined))
const CwdField = Schema.String.pipe(Schema.filter((text) => cwdProblem(text) === undefined))

/** Whether the text can name a row of `events.jsonl`: any name, or an event id with the row's number. */
export const isCursor = (text: string): boolean => isName(text) || /^evt_[A-Za-z0-9._-]{1,98}$/.test(text)
const Cursor = Schema.String.pipe(Schema.filter(isCursor))

/** Who sees a session (SC-1). */
export const Scope = Schema.Literal("private", "shared", "temp")
export type Scope = typeof Scope.Type

/** The session, of the agent or model behind the socket. */
const target = {
  session: Schema.optionalWith(SessionName, { default: () => defaultSession }),
  scope: Schema.optionalWith(Scope, { default: (): Scope => "private" }),
  shared: optional(Name)
}

const Send = Schema.Struct({
  op: Schema.Literal("send"),
  /** The client's id of the request; the same id again is the same run (FR-8). */
  id: Name,
  ...target,
  cwd: optional(CwdField),
  input: Input
})

const Resume = Schema.Struct({ op: Schema.Literal("resume"), ...target, after: optional(Cursor) })

/** `id` is a run's id, or a client's id in the named session. */
const Cancel = Schema.Struct({ op: Schema.Literal("cancel"), id: Name, ...target })

/** Returns a pong; an `id` that is a name is repeated in it. */
const Ping = Schema.Struct({ op: Schema.Literal("ping"), id: optional(Name) })

/** The id of an open ask: a permission, or a question of the model. */
export const AskID = Schema.String.pipe(Schema.pattern(/^ask-[0-9a-f]{32}$/))

const longestAnswer = 10_000
const mostPatterns = 20
const longestPattern = 1_000
const Pattern = Schema.NonEmptyString.pipe(Schema.maxLength(longestPattern))
const AnswerText = Schema.String.pipe(Schema.maxLength(longestAnswer))

/** `decision` on a permission or to dismiss a question; or `answers`, one for each part of a question. */
const Answer = Schema.Struct({
  op: Schema.Literal("answer"),
  id: optional(Name),
  ...target,
  ask: AskID,
  decision: optional(Schema.Literal("once", "session", "always", "decline", "correct", "dismiss")),
  /** Patterns to save in place of the ask's; only with `always`. */
  always: optional(Schema.Array(Pattern).pipe(Schema.minItems(1), Schema.maxItems(mostPatterns))),
  /** Text for the model; only with `correct`. */
  message: optional(AnswerText.pipe(Schema.minLength(1))),
  answers: optional(Schema.Array(AnswerText).pipe(Schema.minItems(1), Schema.maxItems(4)))
})

/** The active and waiting runs behind this socket. */
const Status = Schema.Struct({ op: Schema.Literal("status"), id: optional(Name) })

/** Sessions on one page of a list, at most. */
export const longestPage = 100

/** Sessions of this agent or model in one scope, the latest change first. */
const List = Schema.Struct({
  op: Schema.Literal("list"),
  id: optional(Name),
  scope: Schema.optionalWith(Schema.Literal("private", "shared"), { default: () => "private" as const }),
  shared: optional(Name),
  limit: Schema.optionalWith(Schema.Int.pipe(Schema.between(1, longestPage)), { default: () => 50 }),
  /** `next` of the previous page. */
  after: optional(Schema.String.pipe(Schema.pattern(/^[A-Za-z0-9_-]{1,512}$/)))
})

/** A request of a client. */
export const Request = Schema.Union(Send, Resume, Cancel, Answer, Status, List, Ping)
export type Request = typeof Request.Type
export type Send = typeof Send.Type
export type Resume = typeof Resume.Type
export type Cancel = typeof Cancel.Type
export type Answer = typeof Answer.Type
export type Status = typeof Status.Type
export type List = typeof List.Type
export type Ping = typeof Ping.Type

/** Whether the id is a run's, by the form that `runOf` gives. */
export const isRunID = Schema.is(RunID)

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
  /**
   * The prompt waits. With `run` it is on disk; without, it is not admitted yet, because its session first moves to
   * another folder or model.
   */
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
    length: optional(Schema.Int)
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
export type ErrorFrame = Extract<RunFrame, { readonly type: "error" }>

/**
 * A line that is not a valid request: the code for programs, the sentence for people, and the request's id if it has
 * one.
 */
export class WireError extends Schema.TaggedError<WireError>()("WireError", {
  code: ErrorCode,
  message: Schema.String,
  id: optional(Schema.String)
}) {}

/** The error frame of a refused line or request. */
export const errorFrame = (error: {
  readonly code: ErrorCode
  readonly message: string
  readonly id?: string | undefined
  readonly run?: RunID | undefined
}): ErrorFrame => ({
  type: "error",
  ...(error.id === undefined ? {} : { id: error.id }),
  ...(error.run === undefined ? {} : { run: error.run }),
  code: error.code,
  message: error.message
})

const refuse = (code: ErrorCode, message: string, id?: string) =>
  Either.left(new WireError({ code, message, ...(id === undefined ? {} : { id }) }))

const ops = "send, resume, cancel, answer, status, list or ping"

/** What each field must be. A value is inspected only for its own fault, and never quoted. */
const rules: Readonly<Record<string, (value: unknown) => string>> = {
  id: () => `has to be a name: ${nameRule}`,
  session: () => `has to be a name: ${nameRule}; and not "${reservedSession}"`,
  scope: () => 'has to be "private", "shared" or "temp"',
  shared: () => `has to be the name of a shared space: ${nameRule}`,
  cwd: (value) =>
    `has to be an absolute path of the agent's world${typeof value === "string" ? `: ${cwdProblem(value)}` : ""}`,
  input: (value) => `has to be text${typeof value === "string" ? `: ${inputProblem(value)}` : ""}`,
  after: () => "has to be the id of a row of events.jsonl",
  ask: () => "has to be the ask of a frame of that type",
  decision: () => 'has to be "once", "session", "always", "decline", "correct" or "dismiss"',
  always: () => `has to be an array of 1-${mostPatterns} patterns of 1-${longestPattern} characters`,
  message: () => `has to be text of 1-${longestAnswer} characters`,
  answers: () => `has to be an array of 1-4 texts of ${longestAnswer} characters at most, one for each question`,
  limit: () => `has to be a whole number from 1 to ${longestPage}`
}

/** Rules of `list` for fields with another meaning there. */
const listRules: typeof rules = {
  ...rules,
  scope: () => 'has to be "private" or "shared": temp sessions are in no list',
  after: () => 'has to be the "next" of the previous page'
}

/** The field that the schema rejected. The schema's own message would quote the value, which may be long or deep. */
const faultyField = (issue: ParseResult.ParseIssue): string => {
  switch (issue._tag) {
    case "Pointer":
      return String(Array.isArray(issue.path) ? issue.path[0] : issue.path)
    case "Composite": {
      const [first] = Array.isArray(issue.issues) ? issue.issues : [issue.issues]
      return first === undefined ? "" : faultyField(first)
    }
    case "Refinement":
    case "Transformation":
      return faultyField(issue.issue)
    default:
      return ""
  }
}

type Fields = Readonly<Record<string, unknown>>

const describe = (fields: Fields, issue: ParseResult.ParseIssue): string => {
  const field = faultyField(issue)
  const rule =
    (fields["op"] === "list" ? listRules : rules)[field]?.(fields[field]) ?? "is not valid for this operation"
  return Object.hasOwn(fields, field) ? `"${field}" ${rule}` : `"${field}" is missing: it ${rule}`
}

/** One decoder per operation, so that an error names a field. */
const decoders: Readonly<Record<string, (fields: unknown) => Either.Either<Request, ParseResult.ParseIssue>>> = {
  send: ParseResult.decodeUnknownEither(Send),
  resume: ParseResult.decodeUnknownEither(Resume),
  cancel: ParseResult.decodeUnknownEither(Cancel),
  answer: ParseResult.decodeUnknownEither(Answer),
  status: ParseResult.decodeUnknownEither(Status),
  list: ParseResult.decodeUnknownEither(List)
}

const answerFault = ({ answers, decision, message }: Answer): string | undefined => {
  if ((answers === undefined) === (decision === undefined)) return 'give either "decision" or "answers"'
  if (decision === "correct" && message === undefined)
    return '"message" is missing: it has to say what the model should do'
  return message !== undefined && decision !== "correct" ? '"message" goes with decision "correct" only' : undefined
}

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const parse = (text: string): Either.Either<unknown, WireError> => {
  try {
    return Either.right(JSON.parse(text))
  } catch (error) {
    const reason = error instanceof Error ? error.message : ""
    if (reason.includes("after JSON")) return refuse("EINVAL", "the line holds more than one JSON value")
    const at = /at position (\d+)/.exec(reason)?.[1]
    return refuse("EINVAL", `the line is not valid JSON${at === undefined ? "" : `, from character ${at}`}`)
  }
}

const decodeFields = (fields: Fields): Either.Either<Request, WireError> => {
  const id = typeof fields["id"] === "string" && isName(fields["id"]) ? fields["id"] : undefined
  if (!Object.hasOwn(fields, "op")) return refuse("EINVAL", `"op" is missing: it has to be ${ops}`, id)
  const op = fields["op"]
  if (op === "ping") return Either.right({ op, ...(id === undefined ? {} : { id }) })
  const decoder = typeof op === "string" && Object.hasOwn(decoders, op) ? decoders[op] : undefined
  if (decoder === undefined) return refuse("EINVAL", `"op" has to be ${ops}`, id)
  const request = decoder(fields)
  if (Either.isLeft(request)) return refuse("EINVAL", describe(fields, request.left), id)
  const fault = request.right.op === "answer" ? answerFault(request.right) : undefined
  if (fault !== undefined) return refuse("EINVAL", fault, id)
  if (request.right.op === "ping" || request.right.op === "status") return Either.right(request.right)
  const { scope, shared } = request.right
  if (scope === "shared" && shared === undefined) {
    return refuse("EINVAL", '"shared" is missing: scope "shared" needs the name of the space', id)
  }
  if (scope !== "shared" && shared !== undefined) {
    return refuse("EINVAL", `"shared" goes with scope "shared" only, and the scope is "${scope}"`, id)
  }
  return Either.right(request.right)
}

/** Decodes the bytes of one line, without its end. */
export const decodeLine = (bytes: Uint8Array): Either.Either<Request, WireError> => {
  if (bytes.length > maxLineBytes) return decode({ _tag: "TooLong" })
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    return refuse("EINVAL", "the line is not UTF-8")
  }
  if (text.trim() === "") return refuse("EINVAL", "the line is empty: a request is one JSON object")
  return Either.flatMap(parse(text), (value) =>
    isFields(value) ? decodeFields(value) : refuse("EINVAL", "the line is not a JSON object")
  )
}

/** Decodes one line from the splitter. */
export const decode = (line: Line): Either.Either<Request, WireError> =>
  line._tag === "Line"
    ? decodeLine(line.bytes)
    : refuse("EMSGSIZE", `the line is longer than ${maxLineBytes} bytes; it was skipped`)

/** The longest delta in UTF-16 code units; any such frame is far below the limit of a line. */
export const maxDeltaLength = 65_536

/** The first `length` code units, without half a surrogate pair at the end. */
const clip = (text: string, length: number): string => {
  if (text.length <= length) return text
  const last = text.charCodeAt(length - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length)
}

/** The text in pieces that fit a delta. */
export const deltaTexts = (text: string): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  for (let rest = text; rest.length > 0; rest = rest.slice(pieces.at(-1)?.length)) {
    pieces.push(clip(rest, maxDeltaLength))
  }
  return pieces
}

const fits = (line: string): boolean => line.length * 3 <= maxLineBytes || Buffer.byteLength(line) <= maxLineBytes

/**
 * The frame as one line, with its end. A frame that is too long has its texts shortened as needed and is marked
 * `truncated`; the whole text is in the session's files.
 */
export const encodeFrame = (frame: Frame): string => {
  const line = JSON.stringify(frame)
  if (fits(line)) return `${line}\n`
  for (const length of [131_072, 16_384, 1024]) {
    const shorter = JSON.stringify({ ...frame, truncated: true }, (_, value: unknown) =>
      typeof value === "string" ? clip(value, length) : value
    )
    if (fits(shorter)) return `${shorter}\n`
  }
  // Many small values: keep only the plain fields.
  const named = Object.entries(frame).filter(([, value]) => typeof value !== "object")
  return `${JSON.stringify({ ...Object.fromEntries(named), truncated: true }, (_, value: unknown) =>
    typeof value === "string" ? clip(value, 1024) : value
  )}\n`
}
