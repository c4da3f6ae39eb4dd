/**
 * Decodes one line of the socket to a request. A decoding error is an answer for the client: it names the field and quotes no value,
 * which could be long or secret. `Lines.ts` splits lines; `Served.ts` executes requests. Spec: SO-5..SO-19 in specs/socket.md.
 */
import { Either, ParseResult, Schema } from "effect"
import { isName, nameRule, reservedSession } from "@daybook/log/domain/Address"
import { ErrorCode } from "@daybook/transcript/row/Rows"
import { cwdProblem } from "../cwd/CwdText.ts"
import { type Line, maxLineBytes } from "./Lines.ts"
import {
  Answer,
  Cancel,
  inputProblem,
  List,
  longestAnswer,
  longestPage,
  longestPattern,
  mostPatterns,
  type Request,
  Resume,
  Send,
  Status
} from "./Request.ts"

const optional = <S extends Schema.Schema.All>(schema: S) => Schema.optionalWith(schema, { exact: true })

/** Rejects invalid UTF-8 and keeps a byte order mark, which JSON does not allow. */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/**
 * A line that is not a valid request: the code for programs, the sentence for people, and the request's id if it has
 * one.
 */
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

/** Decodes one line from the splitter. */
export const decode = (line: Line): Either.Either<Request, WireError> =>
  line._tag === "Line"
    ? decodeLine(line.bytes)
    : refuse("EMSGSIZE", `the line is longer than ${maxLineBytes} bytes; it was skipped`)
