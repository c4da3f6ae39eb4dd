/**
 * Gives every error of the facade an HTTP status, and a body that people and programs can read: its fields, `_tag` as the
 * stable code, and `message`. Pure. Spec: HT-10..HT-13 in specs/http.md.
 */
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import { Schema, SchemaAST } from "effect"

/** The status of each code. A new error of an endpoint does not compile without one. */
export const statuses = {
  AddressTaken: 409,
  AgentNotFound: 422,
  BodyTooLarge: 413,
  BodyUnreadable: 400,
  BranchNotSummarized: 502,
  BudgetExceeded: 402,
  ContextSnapshotUnreadable: 500,
  CursorAhead: 400,
  CursorExpired: 410,
  EndpointNotFound: 404,
  EventRefused: 409,
  EventUnreadable: 500,
  Forbidden: 403,
  ForeignCursor: 400,
  ImportUnfinished: 409,
  InboxFullError: 429,
  InitializationBlocked: 409,
  InternalError: 500,
  InvalidDurableEvent: 500,
  InvalidInput: 400,
  LogUnavailable: 503,
  MessageNotFound: 404,
  MessageUnreadable: 500,
  MethodNotAllowed: 405,
  ModelNotFound: 422,
  ModelNotSelected: 422,
  NotServed: 501,
  NotWaiting: 409,
  NothingShown: 404,
  NothingToRedo: 409,
  NothingToUndo: 409,
  OwnerLost: 409,
  PermissionClosed: 409,
  PriceUnknown: 422,
  PromptConflictError: 409,
  PromptUnanswered: 409,
  ProviderFailed: 502,
  ProviderNotFound: 422,
  QuestionClosed: 409,
  RedoRefused: 409,
  RequestAmbiguous: 400,
  RunInterrupted: 409,
  SeqConflict: 409,
  SessionBusy: 409,
  SessionNotFound: 404,
  ShellsUnavailable: 503,
  SiteRefused: 403,
  SnapshotUnavailable: 409,
  Stopping: 503,
  StructuredOutputFailed: 502,
  TitleAmbiguous: 409,
  ToolStorageError: 500,
  TooManyRequests: 429,
  TurnLimitExceeded: 409,
  Unauthorized: 401,
  UnsupportedApi: 422,
  VariantUnavailable: 422
} as const

export type Code = keyof typeof statuses

type Failing = { readonly _tag: Code; readonly message: string }

const isCode = (text: unknown): text is Code => typeof text === "string" && Object.hasOwn(statuses, text)

const codeOf = (ast: SchemaAST.AST): Code => {
  const tag = SchemaAST.getPropertySignatures(SchemaAST.encodedAST(ast)).find(({ name }) => name === "_tag")?.type
  if (tag !== undefined && SchemaAST.isLiteral(tag) && isCode(tag.literal)) return tag.literal
  throw new Error(`an error without a code: ${String(ast)}`)
}

/** The body of an error, besides its own fields. */
type Body = object & { readonly message: string }

const failing = <A extends Failing>(ast: SchemaAST.AST): Schema.Schema<A, Body> => {
  const error = Schema.make<A, object>(ast)
  const code = codeOf(ast)
  return Schema.transform(
    Schema.extend(Schema.encodedSchema(error), Schema.Struct({ message: Schema.String })),
    Schema.asSchema(error),
    { strict: true, decode: (body) => body, encode: (body, { message }) => ({ ...body, message }) }
  ).annotations({ identifier: code, ...HttpApiSchema.annotations({ status: statuses[code] }) })
}

/** Made once for each error: dozens of endpoints share them, and a union of the same schemas has each once. */
const known = new WeakMap<SchemaAST.AST, SchemaAST.AST>()

const failure = <A extends Failing>(ast: SchemaAST.AST): Schema.Schema<A, Body> => {
  const made = known.get(ast) ?? failing<A>(ast).ast
  known.set(ast, made)
  return Schema.make(made)
}

const membersOf = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> =>
  SchemaAST.isUnion(ast) ? ast.types.flatMap(membersOf) : [ast]

/** The error, or each error of the union, as a body with its status. */
export const failures = <A extends Failing, I>({ ast }: Schema.Schema<A, I>): Schema.Schema<A, Body> =>
  Schema.Union(...membersOf(ast).map((each) => failure<A>(each)))
