/**
 * Lines of a client on the socket: bytes to lines, a line to a request, and its fields as schemas. A decoding error is
 * an answer for the client. Spec: SO-1..SO-19, SO-40, SO-41 in specs/socket.md (FR-1..FR-3, NA-1, NA-2, DC-1, DC-2).
 */
import { Either, ParseResult, Schema } from "effect"
import { defaultSession, isName, Name, nameRule, reservedSession, SessionName } from "@daybook/log/domain/Address"
import { ErrorCode, RunID } from "@daybook/transcript/row/Rows"
import { optional } from "@daybook/log/support/Optional"

// Splits bytes into lines, one per frame (FR-1); a line above `maxLineBytes` is reported once and skipped.

/** The longest frame in either direction in bytes, without its line end (FR-3). */
export const maxLineBytes = 1_048_576

/** A line without its end, or the report of one that is too long. */
export type Line = { readonly _tag: "Line"; readonly bytes: Uint8Array } | { readonly _tag: "TooLong" }

const tooLong: Line = { _tag: "TooLong" }
const newline = 0x0a
const carriageReturn = 0x0d
const firstCapacity = 4096

/** Splits one stream of bytes. Between two chunks it keeps at most the begun line. */
interface Splitter {
  /** The lines that end in the chunk. A line may be a view of the chunk: use it before the chunk changes. */
  readonly push: (chunk: Uint8Array) => ReadonlyArray<Line>
  /** Ends the stream; a last line without its end is a line too. */
  readonly end: () => ReadonlyArray<Line>
}

const withoutReturn = (bytes: Uint8Array) => (bytes.at(-1) === carriageReturn ? bytes.subarray(0, -1) : bytes)

/** A new splitter; `limit` is for tests. */
export const make = (limit: number = maxLineBytes): Splitter => {
  // One more byte than a line, because a CR may be part of CRLF.
  const room = limit + 1
  let kept = new Uint8Array(0)
  let length = 0
  let skipping = false

  const keep = (bytes: Uint8Array): void => {
    if (length + bytes.length > kept.length) {
      const grown = new Uint8Array(Math.min(room, Math.max(firstCapacity, kept.length * 2, length + bytes.length)))
      grown.set(kept.subarray(0, length))
      kept = grown
    }
    kept.set(bytes, length)
    length += bytes.length
  }

  /** Takes the kept line together with its memory. */
  const take = (): Uint8Array => {
    const bytes = kept.subarray(0, length)
    kept = new Uint8Array(0)
    length = 0
    return bytes
  }

  /** Whether the begun line is already too long, whatever follows. */
  const exceeds = (more: Uint8Array): boolean => {
    const total = length + more.length
    if (total < room) return false
    return total > room || (more.length > 0 ? more.at(-1) : kept[length - 1]) !== carriageReturn
  }

  const complete = (rest: Uint8Array): Line => {
    if (length > 0) keep(rest)
    return { _tag: "Line", bytes: withoutReturn(length > 0 ? take() : rest) }
  }

  const push = (chunk: Uint8Array): ReadonlyArray<Line> => {
    const lines: Array<Line> = []
    let from = 0
    while (from < chunk.length) {
      const at = chunk.indexOf(newline, from)
      const part = chunk.subarray(from, at === -1 ? chunk.length : at)
      if (skipping) skipping = at === -1
      else if (exceeds(part)) {
        lines.push(tooLong)
        take()
        skipping = at === -1
      } else if (at === -1) keep(part)
      else lines.push(complete(part))
      from = at === -1 ? chunk.length : at + 1
    }
    return lines
  }

  const end = (): ReadonlyArray<Line> => (length === 0 ? [] : [complete(new Uint8Array(0))])

  return { push, end }
}

// Checks the text of a working directory before any file access.

/** The maximum length of a path and of a name, in UTF-8 bytes, as file systems allow. */
export const maxCwdBytes = 4095
const maxSegmentBytes = 255

/** Control characters are refused: the file `cwd` of a session is one line. */
const control = /\p{Cc}/u
const loneSurrogate = /\p{Surrogate}/u

const bytes = (text: string): number => Buffer.byteLength(text, "utf8")

/** The names in a path; `//`, `/./` and a trailing `/` add none. */
export const segmentsOf = (cwd: string) => cwd.split("/").filter((segment) => segment !== "" && segment !== ".")

/** Why the text is not a valid working directory, as the end of a sentence; undefined if it is. */
export const cwdProblem = (cwd: string): string | undefined => {
  if (cwd === "") return "it is empty"
  if (bytes(cwd) > maxCwdBytes) return `it is longer than ${maxCwdBytes} bytes`
  if (control.test(cwd)) return "it holds a control character, such as NUL or a line break"
  if (loneSurrogate.test(cwd)) return "it is not well-formed Unicode"
  if (!cwd.startsWith("/")) return "it is not absolute"
  const segments = segmentsOf(cwd)
  if (segments.includes("..")) return 'it holds a ".."'
  if (segments.some((segment) => bytes(segment) > maxSegmentBytes)) {
    return `a name in it is longer than ${maxSegmentBytes} bytes`
  }
  return undefined
}

// Requests of a client on the socket, as schemas.

/** Why the text cannot be a prompt, if it cannot. */
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

export const Send = Schema.Struct({
  op: Schema.Literal("send"),
  /** The client's id of the request; the same id again is the same run (FR-8). */
  id: Name,
  ...target,
  cwd: optional(CwdField),
  input: Input
})

export const Resume = Schema.Struct({ op: Schema.Literal("resume"), ...target, after: optional(Cursor) })

/** `id` is a run's id, or a client's id in the named session. */
export const Cancel = Schema.Struct({ op: Schema.Literal("cancel"), id: Name, ...target })

/** Returns a pong; an `id` that is a name is repeated in it. */
const Ping = Schema.Struct({ op: Schema.Literal("ping"), id: optional(Name) })

/** The id of an open ask: a permission, or a question of the model. */
export const AskID = Schema.String.pipe(Schema.pattern(/^ask-[0-9a-f]{32}$/))

/** The longest answer or message, in characters. */
const longestAnswer = 10_000
const mostPatterns = 20
/** The longest pattern, in characters. */
const longestPattern = 1_000
const Pattern = Schema.NonEmptyString.pipe(Schema.maxLength(longestPattern))
const AnswerText = Schema.String.pipe(Schema.maxLength(longestAnswer))

export const Answer = Schema.Struct({
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
export const Status = Schema.Struct({ op: Schema.Literal("status"), id: optional(Name) })

/** Sessions on one page of a list, at most. */
export const longestPage = 100

/** Sessions of this agent or model in one scope, the latest change first. */
export const List = Schema.Struct({
  op: Schema.Literal("list"),
  id: optional(Name),
  scope: Schema.optionalWith(Schema.Literal("private", "shared"), { default: () => "private" as const }),
  shared: optional(Name),
  limit: Schema.optionalWith(Schema.Int.pipe(Schema.between(1, longestPage)), { default: () => 50 }),
  /** `next` of the previous page. */
  after: optional(Schema.String.pipe(Schema.pattern(/^[A-Za-z0-9_-]{1,512}$/)))
})

export const Request = Schema.Union(Send, Resume, Cancel, Answer, Status, List, Ping)
export type Request = typeof Request.Type
export type Send = typeof Send.Type
export type Resume = typeof Resume.Type
export type Cancel = typeof Cancel.Type
export type Answer = typeof Answer.Type
export type Status = typeof Status.Type
export type List = typeof List.Type
export type Ping = typeof Ping.Type

export const isRunID = Schema.is(RunID)

// Decodes one line of the socket to a request. An error names the field and quotes no value, which could be secret.

/** Rejects invalid UTF-8 and keeps a byte order mark, which JSON does not allow. */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** A line that is not a valid request: code for programs, sentence for people, the request's id if any. */
export class WireError extends Schema.TaggedError<WireError>()("WireError", {
  code: ErrorCode,
  message: Schema.String,
  id: optional(Schema.String)
}) {}

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

export const decode = (line: Line): Either.Either<Request, WireError> =>
  line._tag === "Line"
    ? decodeLine(line.bytes)
    : refuse("EMSGSIZE", `the line is longer than ${maxLineBytes} bytes; it was skipped`)
