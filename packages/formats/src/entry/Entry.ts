/**
 * Defines the entries of entry logs, by type. An entry keeps its record as it was read; `body` is the same record with the
 * type of its schema, and absent if the type is unknown or a field is wrong. Spec: FM-10..FM-13 in specs/formats.md.
 */
import { Either, ParseResult, Predicate, Schema } from "effect"
import { JsonRecord, JsonValue } from "@daybook/log/domain/Json"
import { optionalOrNull, AgentMessage, AgentUsage, BlockContent } from "./AgentMessage.ts"

// Reads the first records of an entry log: the header, and the title slot that omp writes before the header.

export const currentVersion = 3

export const Header = Schema.Struct(
  { type: Schema.Literal("session"), id: Schema.NonEmptyString },
  { key: Schema.String, value: Schema.Unknown }
)
export type Header = typeof Header.Type

/** By hand: lists look at thousands of headers, and a schema would walk all their fields. */
export const isHeader = (record: unknown): record is Header =>
  Predicate.isReadonlyRecord(record) &&
  record["type"] === "session" &&
  Predicate.isString(record["id"]) &&
  record["id"] !== ""

/** The line of fixed size that omp writes before the header, so that it can replace the title in place. */
export const isTitleSlot = (record: JsonRecord): boolean => record["type"] === "title" && "v" in record

/** Without a version it is 1. A version that is not a number is undefined. */
export const versionOf = ({ version }: JsonRecord): number | undefined => {
  if (version === undefined || version === null) return 1
  return Predicate.isNumber(version) ? Math.max(1, Math.floor(version)) : undefined
}

/** Milliseconds of an ISO time or a number; undefined if it is neither. */
export const timeOf = (value: unknown): number | undefined => {
  const time = typeof value === "string" ? Date.parse(value) : value
  return Predicate.isNumber(time) && Number.isFinite(time) ? Math.trunc(time) : undefined
}

const textIn = (value: unknown): string | undefined => {
  const trimmed = Predicate.isString(value) ? value.trim() : ""
  return trimmed === "" ? undefined : trimmed
}

/** What a header and a title slot say. omp updates only the slot, so its title wins. */
export const readHeader = (header: Header, slot: JsonRecord | undefined) => {
  const [cwd, parent] = [textIn(header["cwd"]), textIn(header["parentSession"])]
  const title = textIn(slot?.["title"]) ?? textIn(header["title"])
  const source = textIn(slot?.["title"]) === undefined ? header["titleSource"] : slot?.["source"]
  return {
    id: header.id,
    ...(cwd === undefined ? {} : { cwd }),
    ...(title === undefined ? {} : { title }),
    ...(title !== undefined && source === "user" ? { titledByUser: true as const } : {}),
    ...(parent === undefined ? {} : { parent })
  }
}

const text = optionalOrNull(Schema.String)
const flag = optionalOrNull(Schema.Boolean)
const details = Schema.optional(JsonValue)
/** pi writes `fromHook`, xcsh and omp `fromExtension`. */
const origin = { fromHook: flag, fromExtension: flag }

/** What the models spent that wrote a summary, or that were asked beside the conversation. */
const usage = optionalOrNull(AgentUsage)

const Message = Schema.Struct({ type: Schema.Literal("message"), message: AgentMessage })

const ThinkingLevelChange = Schema.Struct({ type: Schema.Literal("thinking_level_change"), thinkingLevel: text })

/** pi: `provider` and `modelId`; xcsh and omp: `model` as `provider/id`, and `role`. */
const ModelChange = Schema.Struct({
  type: Schema.Literal("model_change"),
  provider: text,
  modelId: text,
  model: text,
  role: text
})

const Compaction = Schema.Struct({
  type: Schema.Literal("compaction"),
  summary: Schema.String,
  shortSummary: text,
  firstKeptEntryId: text,
  /** Version 1: an index into the records of the file, the header being 0. */
  firstKeptEntryIndex: Schema.optional(Schema.Number),
  tokensBefore: optionalOrNull(Schema.Finite),
  details,
  preserveData: details,
  retainedTail: details,
  /** The system prompt and tools at this point (pi). Then system messages before it are not shown. */
  systemMessage: details,
  usage,
  ...origin
})

const BranchSummary = Schema.Struct({
  type: Schema.Literal("branch_summary"),
  fromId: text,
  summary: Schema.String,
  details,
  usage,
  ...origin
})

/** What a model spent beside the conversation; `kind` is any name. pi writes `usage`, omp `model_usage`. */
const Usage = Schema.Struct({
  type: Schema.Literal("usage", "model_usage"),
  kind: text,
  provider: text,
  model: text,
  usage: AgentUsage,
  note: text
})

/** What the model is shown in place of an earlier entry on the branch: null is nothing (pi). */
const ContextEdit = Schema.Struct({
  type: Schema.Literal("context_edit"),
  targetId: Schema.NonEmptyString,
  replacement: Schema.NullOr(Schema.Union(BlockContent, Schema.Struct({ content: BlockContent })))
})

/** The person cleared the context: the model is not shown what precedes it on its branch (omp). */
const ResetBoundary = Schema.Struct({ type: Schema.Literal("reset_boundary") })

const Custom = Schema.Struct({ type: Schema.Literal("custom"), customType: Schema.String, data: details })

const CustomMessage = Schema.Struct({
  type: Schema.Literal("custom_message"),
  customType: Schema.String,
  content: BlockContent,
  details,
  display: flag,
  attribution: text
})

const Label = Schema.Struct({ type: Schema.Literal("label"), targetId: Schema.NonEmptyString, label: text })

const SessionInfo = Schema.Struct({ type: Schema.Literal("session_info"), name: text })

const TitleChange = Schema.Struct({ type: Schema.Literal("title_change"), title: Schema.String, source: text })

const RuleInjection = Schema.Struct({
  type: Schema.Literal("ttsr_injection"),
  injectedRules: Schema.Array(Schema.String)
})

const SessionInit = Schema.Struct({
  type: Schema.Literal("session_init"),
  systemPrompt: Schema.Union(Schema.String, Schema.Array(Schema.String)),
  task: Schema.String,
  tools: Schema.Array(Schema.String),
  outputSchema: details
})

const ModeChange = Schema.Struct({ type: Schema.Literal("mode_change"), mode: Schema.String, data: details })

const ContextChange = Schema.Struct({
  type: Schema.Literal("context_change"),
  contextName: text,
  tenant: text,
  namespace: text
})

const ServiceTierChange = Schema.Struct({ type: Schema.Literal("service_tier_change"), serviceTier: text })

const McpToolSelection = Schema.Struct({
  type: Schema.Literal("mcp_tool_selection"),
  selectedToolNames: Schema.Array(Schema.String)
})

/** What an entry says, without the fields that all entries have. */
export const Body = Schema.Union(
  Message,
  ThinkingLevelChange,
  ModelChange,
  Compaction,
  BranchSummary,
  Usage,
  ContextEdit,
  ResetBoundary,
  Custom,
  CustomMessage,
  Label,
  SessionInfo,
  TitleChange,
  RuleInjection,
  SessionInit,
  ModeChange,
  ContextChange,
  ServiceTierChange,
  McpToolSelection
)
export type Body = typeof Body.Type

export type BodyOf<Type extends Body["type"]> = Extract<Body, { readonly type: Type }>

const knownTypes: ReadonlySet<unknown> = new Set(
  Body.members.flatMap(({ fields }): ReadonlyArray<string> => fields.type.literals)
)

export const Entry = Schema.Struct({
  id: Schema.NonEmptyString,
  parentId: Schema.NullOr(Schema.String),
  /** Milliseconds since the epoch. */
  time: Schema.optional(Schema.Int),
  record: JsonRecord,
  body: Schema.optional(Body)
})
export type Entry = typeof Entry.Type

const isBody = Schema.is(Body)
const validate = ParseResult.validateEither(Body)

/** Whether the record's type is one that this runtime understands. */
export const isKnownType = (record: JsonRecord): boolean => knownTypes.has(record["type"])

/** Whether a record has the form of an entry: a type, an id and perhaps a parent. */
export const isEntryRecord = (record: JsonRecord): boolean => {
  const { id, parentId, type } = record
  return (
    Predicate.isString(type) &&
    type !== "session" &&
    Predicate.isString(id) &&
    id !== "" &&
    (parentId === undefined || parentId === null || Predicate.isString(parentId))
  )
}

/** The fields of a record that have another form than its type requires, without their values. */
const wrongFields = (record: JsonRecord): string => {
  const issues = Either.match(validate(record), {
    onLeft: ParseResult.ArrayFormatter.formatIssueSync,
    onRight: () => []
  })
  const paths = issues.map(({ path }) => path.join(".")).filter((path) => path !== "")
  return [...new Set(paths)].slice(0, 5).join(", ")
}

/** The body of a record, which is the record itself; the names of its wrong fields; undefined if its type is unknown. */
export const bodyOf = (record: JsonRecord): Either.Either<Body, string> | undefined => {
  if (!isKnownType(record)) return undefined
  const value: unknown = record
  return isBody(value) ? Either.right(value) : Either.left(wrongFields(record))
}

export const entryOf = (record: JsonRecord): Entry => {
  const { id, parentId, timestamp } = record
  const body = bodyOf(record)
  const time = timeOf(timestamp)
  return {
    id: Predicate.isString(id) ? id : "",
    parentId: Predicate.isString(parentId) ? parentId : null,
    ...(time === undefined ? {} : { time }),
    record,
    ...(body !== undefined && Either.isRight(body) ? { body: body.right } : {})
  }
}
