/**
 * Defines a foreign session log in terms that all dialects share: a head, then one item for each record, in file order,
 * and a problem for each part of the file that could not be read. Readers produce it as a stream, so that memory is
 * bounded by the largest record. An item names its parent, so that the items form a tree. Spec: specs/formats.md.
 */
import { Schema } from "effect"
import { JsonRecord } from "@daybook/log/domain/Json"
import { Withheld as WithheldPart } from "@daybook/log/domain/Message"
import { optional } from "@daybook/log/support/Optional"

// Names the session logs that Daybook reads.

/**
 * Who wrote a session log: `pi`, `xcsh` and `omp` write entry logs, `thread` is a folder with `session.jsonl` and
 * `metadata.json`; `claude-code` and `codex` are only read.
 */
export const Dialect = Schema.Literal("pi", "xcsh", "omp", "thread", "claude-code", "codex")
export type Dialect = typeof Dialect.Type

export const RecordPlace = Schema.Struct({
  /** Counts from 1. */
  line: Schema.Int,
  /** Bytes from the start of the file to the record. */
  offset: Schema.Int
})
export type RecordPlace = typeof RecordPlace.Type

/** What a log says about itself. Times are milliseconds since the epoch. */
export const Head = Schema.TaggedStruct("Head", {
  dialect: Dialect,
  /** The session's id in the tool that wrote it. */
  id: Schema.NonEmptyString,
  /** The format's version, if it has one. */
  version: optional(Schema.Int),
  /** The folder that the session worked in. */
  cwd: optional(Schema.String),
  title: optional(Schema.String),
  /** A person chose the title. */
  titledByUser: optional(Schema.Literal(true)),
  createdAt: Schema.Int,
  /** The session that this one continues, as its tool names it: an id or a path. */
  parent: optional(Schema.String),
  /** Records before the head, such as the title slot of omp. */
  before: optional(Schema.Array(JsonRecord)),
  /** The head as it was read, for an export in the same format. */
  record: JsonRecord
})
export type Head = typeof Head.Type

/** A picture or another file inside a message. */
export const Media = Schema.Struct({
  type: Schema.Literal("media"),
  mime: Schema.NonEmptyString,
  /** Base64. */
  data: Schema.String
})

export const Text = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String })

/** What a message shows, in order. */
export const Content = Schema.Array(Schema.Union(Text, Media))
export type Content = typeof Content.Type

export const shownText = (text: string): Content => (text === "" ? [] : [{ type: "text", text }])

/** Content as logs write it: a text, items, or nothing. */
export const contentBy =
  (shown: (item: unknown) => Content) =>
  (content: unknown): Content => {
    if (content === undefined || content === null) return []
    return Array.isArray(content) ? content.flatMap(shown) : shown(content)
  }

/** The texts of a content without the pictures. */
export const textOf = (content: Content): string =>
  content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")

export const AnswerPart = Schema.Union(
  Text,
  Schema.Struct({ type: Schema.Literal("reasoning"), text: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("call"),
    id: Schema.NonEmptyString,
    name: Schema.NonEmptyString,
    input: JsonRecord
  })
)
export type AnswerPart = typeof AnswerPart.Type

const count = Schema.Finite.pipe(Schema.nonNegative())

/** Tokens and cost. `input` excludes tokens read from or written to a cache. Cost is in US dollars. */
export const Spending = Schema.Struct({
  input: count,
  output: count,
  reasoning: count,
  cacheRead: count,
  cacheWrite: count,
  cost: count
})
export type Spending = typeof Spending.Type

const base = {
  /** The record's id, unique in the log. */
  key: Schema.NonEmptyString,
  /** The record that this one follows; null for the first of a tree. */
  parent: Schema.NullOr(Schema.NonEmptyString),
  /** Milliseconds since the epoch. */
  time: Schema.Int,
  place: RecordPlace,
  /** The record as it was read, for an export in the same format. */
  record: JsonRecord
}
/** What every item says of its record. */
export type Base = Schema.Struct.Type<typeof base>

export const User = Schema.TaggedStruct("User", { ...base, content: Content })

/** A model's answer. Its results are items of their own. */
export const Answer = Schema.TaggedStruct("Answer", {
  ...base,
  provider: Schema.NonEmptyString,
  model: Schema.NonEmptyString,
  parts: Schema.Array(AnswerPart),
  /** Why the model stopped, as its tool names it. */
  finish: optional(Schema.String),
  /** Why the request failed. */
  error: optional(Schema.String),
  /** A person or a crash ended the answer. */
  aborted: optional(Schema.Literal(true)),
  spent: optional(Spending)
})

export const Result = Schema.TaggedStruct("Result", {
  ...base,
  callID: Schema.NonEmptyString,
  tool: Schema.String,
  content: Content,
  failed: Schema.Boolean,
  /** What the tool's own subagents spent. */
  spent: optional(Spending)
})

export const Command = Schema.TaggedStruct("Command", {
  ...base,
  command: Schema.String,
  output: Schema.String,
  exitCode: optional(Schema.Int),
  cancelled: Schema.Boolean,
  /** The model is not shown it. */
  hidden: Schema.Boolean
})

/** A text that neither the person nor the model wrote; the model is shown it. */
export const Note = Schema.TaggedStruct("Note", { ...base, content: Content })

/** A summary that replaces what precedes it on its branch, up to the first kept record. */
export const Compaction = Schema.TaggedStruct("Compaction", {
  ...base,
  summary: Schema.String,
  /** The first record that stays visible; null if none does. */
  firstKept: Schema.NullOr(Schema.NonEmptyString),
  tokensBefore: optional(count),
  readFiles: Schema.Array(Schema.String),
  modifiedFiles: Schema.Array(Schema.String),
  /** What the summary cost. */
  spent: optional(Spending)
})

/** A summary of a branch that was left. */
export const BranchSummary = Schema.TaggedStruct("BranchSummary", {
  ...base,
  summary: Schema.String,
  spent: optional(Spending)
})

/** From here on, the model is shown something else in place of an earlier record of its branch. */
export const Edit = Schema.TaggedStruct("Edit", {
  ...base,
  target: Schema.NonEmptyString,
  /** Absent: nothing is shown. */
  content: optional(Content),
  /** The calls that stay in an edited answer. */
  calls: optional(Schema.Array(Schema.Struct({ id: Schema.NonEmptyString, input: JsonRecord })))
})

/** A part of an earlier record that one model is not shown, or is shown again, as Daybook's own exports say it. */
export const Withheld = Schema.TaggedStruct("Withheld", { ...base, target: Schema.NonEmptyString, part: WithheldPart })

/** What a model spent beside the conversation. */
export const Usage = Schema.TaggedStruct("Usage", { ...base, spent: Spending })

export const ModelChange = Schema.TaggedStruct("ModelChange", {
  ...base,
  provider: Schema.NonEmptyString,
  model: Schema.NonEmptyString,
  /** What the model is used for; absent: everything. */
  role: optional(Schema.NonEmptyString)
})

/** Another title. */
export const Title = Schema.TaggedStruct("Title", { ...base, title: Schema.String })

export const Label = Schema.TaggedStruct("Label", {
  ...base,
  target: Schema.NonEmptyString,
  label: Schema.NullOr(Schema.NonEmptyString)
})

/** A record that shows the model nothing: a setting, an extension's state, or an unknown type. */
export const Opaque = Schema.TaggedStruct("Opaque", base)

export const Item = Schema.Union(
  User,
  Answer,
  Result,
  Command,
  Note,
  Compaction,
  BranchSummary,
  Edit,
  Withheld,
  Usage,
  ModelChange,
  Title,
  Label,
  Opaque
)
export type Item = typeof Item.Type

/** A part of a file that was not read as it stands, and what the reader did about it. */
export const Problem = Schema.TaggedStruct("Problem", {
  place: RecordPlace,
  /** A stable name, such as `torn-line`, `glued-records`, `duplicate-id`, `missing-parent`. */
  kind: Schema.NonEmptyString,
  /** A sentence for a person. */
  details: Schema.String
})
export type Problem = typeof Problem.Type

/** What a reader produces: problems before the head, the head, then items and problems. */
export const Piece = Schema.Union(Head, Item, Problem)
export type Piece = typeof Piece.Type
