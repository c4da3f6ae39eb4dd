/**
 * What goes over the socket: requests in, frames out, one JSON object a line. Decoding never fails but with an answer for
 * the client, and that answer quotes nothing that could be long or secret. Lines are cut in `Lines.ts`; what requests do
 * is `Served.ts`. Spec: SO-5..SO-19 in specs/socket.md (FR-1..FR-5, NA-1, NA-2, DC-1, DC-2).
 */
import { ErrorCode, EventRow, RunID } from "@daybook/files"
import {
  defaultSession,
  isName,
  Name,
  nameRule,
  PermissionSubject,
  QuestionItem,
  reservedSession,
  SessionName
} from "@daybook/core"
import { Either, ParseResult, Schema } from "effect"
import { cwdProblem } from "./CwdText.ts"
import { maxLineBytes, type Line } from "./Lines.ts"

const optional = <S extends Schema.Schema.All>(schema: S) => Schema.optionalWith(schema, { exact: true })

/** Refuses what is not UTF-8 and keeps a byte order mark, which JSON does not know. */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const loneSurrogate = /\p{Surrogate}/u

const inputProblem = (text: string): string | undefined => {
  if (text === "") return "it is empty"
  if (text.includes("\u0000")) return "it holds a NUL character"
  return loneSurrogate.test(text) ? "it is not well-formed Unicode" : undefined
}

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

/** Names an open question to the client: a permission, or what the model asks. */
export const AskID = Schema.String.pipe(Schema.pattern(/^ask-[0-9a-f]{32}$/))

const longestAnswer = 10_000
const mostPatterns = 20
const longestPattern = 1_000
const Pattern = Schema.NonEmptyString.pipe(Schema.maxLength(longestPattern))
const AnswerText = Schema.String.pipe(Schema.maxLength(longestAnswer))

/** `decision` on a permission, or to dismiss a question; `answers` to a question, one for each of its parts. */
const Answer = Schema.Struct({
  op: Schema.Literal("answer"),
  id: optional(Name),
  ...target,
  ask: AskID,
  decision: optional(Schema.Literal("once", "session", "always", "decline", "correct", "dismiss")),
  /** Patterns that are saved in place of those of the ask; with `always` only. */
  always: optional(Schema.Array(Pattern).pipe(Schema.minItems(1), Schema.maxItems(mostPatterns))),
  /** What the model reads; with `correct` only. */
  message: optional(AnswerText.pipe(Schema.minLength(1))),
  answers: optional(Schema.Array(AnswerText).pipe(Schema.minItems(1), Schema.maxItems(4)))
})

/** What runs and waits behind this socket. */
const Status = Schema.Struct({ op: Schema.Literal("status"), id: optional(Name) })

export const longestPage = 100

/** Sessions of this agent or model in one scope, the newest first. */
const List = Schema.Struct({
  op: Schema.Literal("list"),
  id: optional(Name),
  scope: Schema.optionalWith(Schema.Literal("private", "shared"), { default: () => "private" as const }),
  shared: optional(Name),
  limit: Schema.optionalWith(Schema.Int.pipe(Schema.between(1, longestPage)), { default: () => 50 }),
  /** `next` of the page before. */
  after: optional(Schema.String.pipe(Schema.pattern(/^[A-Za-z0-9_-]{1,512}$/)))
})

/** What a client may ask. */
export const Request = Schema.Union(Send, Resume, Cancel, Answer, Status, List, Ping)
export type Request = typeof Request.Type
export type Send = typeof Send.Type
export type Resume = typeof Resume.Type
export type Cancel = typeof Cancel.Type
export type Answer = typeof Answer.Type
export type Status = typeof Status.Type
export type List = typeof List.Type
export type Ping = typeof Ping.Type

/** Whether an id is a run's: its form is one that `runOf` gives. */
export const isRunID = Schema.is(RunID)

const TextContent = Schema.Array(Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }))

/**
 * Of a run that somebody follows. `id` is the client's id, where the run came from one; `event`, where a frame has a row
 * in `events.jsonl`, is that row's id: the cursor to resume from.
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
  /** Its name, or its id where it has none. */
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

/** What a client is told. Further types and fields may come: a client skips what it does not know. */
export const RunFrame = Schema.Union(
  /** The prompt waits. With `run` it is on disk; without, it is not admitted yet: the session is brought to its folder first. */
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
    input: Schema.Unknown
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
  /** A person is asked whether a tool may do what it wants to do. */
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
    /** What the decisions "session" and "always" allow from now on; without any they cannot be given. */
    always: Schema.Array(Schema.String),
    /** Who asks: the agent, the session and the folder, and with which tool. */
    agent: Schema.String,
    session_id: Schema.String,
    session_title: optional(Schema.String),
    /** The folder, as the client knows it; where the session is gone, there is none. */
    cwd: optional(Schema.String),
    tool: Schema.String,
    /** All of what would be done. */
    subject: PermissionSubject,
    /** What else is to be known. */
    notes: Schema.Array(Schema.String),
    truncated: optional(Schema.Literal(true))
  }),
  /** The model asks a person. */
  Schema.Struct({
    type: Schema.Literal("ask"),
    id: optional(Schema.String),
    run: optional(RunID),
    ask: AskID,
    kind: Schema.Literal("question"),
    tool_call_id: Schema.String,
    questions: Schema.Array(QuestionItem)
  }),
  /** The ask is closed: by a client, elsewhere, or with its run. */
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
    /** There are more runs than are listed. */
    more: optional(Schema.Literal(true))
  }),
  Schema.Struct({
    type: Schema.Literal("list"),
    id: optional(Schema.String),
    sessions: Schema.Array(SessionItem),
    /** `after` of the next page; there is none without it. */
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
    /** The request's, where it could be read. */
    id: optional(Schema.String),
    run: optional(RunID),
    event: optional(Schema.String),
    /** The tool whose call failed. */
    tool: optional(Schema.String),
    tool_call_id: optional(Schema.String),
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

/** What each field has to be. A value is looked at only for its own fault, and never quoted. */
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

/** Where one operation gives a field another meaning. */
const listRules: typeof rules = {
  ...rules,
  scope: () => 'has to be "private" or "shared": temp sessions are in no list',
  after: () => "has to be the next of the page before"
}

/** The field that a schema found fault with. Its own words would quote the value, however long or deep that is. */
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
    (fields["op"] === "list" ? listRules : rules)[field]?.(fields[field]) ?? "is not what the operation takes"
  return Object.hasOwn(fields, field) ? `"${field}" ${rule}` : `"${field}" is missing: it ${rule}`
}

/** One for each operation, so that a fault is that of a field. */
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

/** The bytes of one line, without its end, as a request. */
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
    isFields(value) ? decodeFields(value) : refuse("EINVAL", "the line holds no JSON object")
  )
}

/** One line as it came from the splitter, as a request. */
export const decode = (line: Line): Either.Either<Request, WireError> =>
  line._tag === "Line"
    ? decodeLine(line.bytes)
    : refuse("EMSGSIZE", `the line is longer than ${maxLineBytes} bytes; it was skipped`)

/** The most that one delta carries, in UTF-16 code units: whatever they are, the frame is far below the limit. */
export const maxDeltaLength = 65_536

/** The first `length` code units, without the half of a surrogate pair at the end. */
const clip = (text: string, length: number): string => {
  if (text.length <= length) return text
  const last = text.charCodeAt(length - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length)
}

/** A text in pieces that fit a delta; joined, they are the text. */
export const deltaTexts = (text: string): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  for (let rest = text; rest.length > 0; rest = rest.slice(pieces.at(-1)?.length)) {
    pieces.push(clip(rest, maxDeltaLength))
  }
  return pieces
}

const fits = (line: string): boolean => line.length * 3 <= maxLineBytes || Buffer.byteLength(line) <= maxLineBytes

/**
 * A frame as one line, with its end. What would be longer than a frame may be has its texts shortened, as far as it
 * needs, and says so by `truncated`; the whole is in the session's files.
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
  // Many small values: only what names the frame is left.
  const named = Object.entries(frame).filter(([, value]) => typeof value !== "object")
  return `${JSON.stringify({ ...Object.fromEntries(named), truncated: true }, (_, value: unknown) =>
    typeof value === "string" ? clip(value, 1024) : value
  )}\n`
}
