/**
 * Requests of a client on the socket, as schemas. `RequestLine.ts` decodes them. Spec: SO-5..SO-19 in specs/socket.md (NA-1, NA-2, DC-1, DC-2).
 */
import { Schema } from "effect"
import { defaultSession, isName, Name, SessionName } from "@daybook/log/domain/Address"
import { RunID } from "@daybook/transcript/row/Rows"
import { cwdProblem } from "../cwd/CwdText.ts"

const optional = <S extends Schema.Schema.All>(schema: S) => Schema.optionalWith(schema, { exact: true })

const loneSurrogate = /\p{Surrogate}/u

/** Why the text cannot be a prompt, if it cannot. */
export const inputProblem = (text: string): string | undefined => {
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
export const longestAnswer = 10_000
/** Patterns of one answer, at most. */
export const mostPatterns = 20
/** The longest pattern, in characters. */
export const longestPattern = 1_000
const Pattern = Schema.NonEmptyString.pipe(Schema.maxLength(longestPattern))
const AnswerText = Schema.String.pipe(Schema.maxLength(longestAnswer))

/** `decision` on a permission or to dismiss a question; or `answers`, one for each part of a question. */
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
