/**
 * Defines the values that prompts, sessions and events share: location, model, prompt, delivery, usage, tool content.
 * Spec: RQ-26, RQ-40, RQ-45 in specs/context.md, TO-91..TO-93, TO-106 in specs/tools.md.
 */
import { Context, Record, Schema } from "effect"
import { JsonRecord } from "./Json.ts"

// Defines a session's todo list.

export const TodoItem = Schema.Struct({
  text: Schema.NonEmptyString.pipe(Schema.maxLength(500)).annotations({ description: "What is to be done" }),
  status: Schema.Literal("pending", "in_progress", "done", "cancelled")
})

export type TodoItem = typeof TodoItem.Type

/** A whole list. */
export const TodoItems = Schema.Array(TodoItem).pipe(Schema.maxItems(100))

/** Where a session works. `directory` is an absolute path; without `workspaceID` it is on this machine. */
export const Location = Schema.Struct({
  directory: Schema.NonEmptyString,
  workspaceID: Schema.optionalWith(Schema.NonEmptyString, { exact: true })
})
export type Location = typeof Location.Type

/** What began a session. Without a source a person or a program did. */
export const SessionOrigin = Schema.Struct({
  source: Schema.optionalWith(Schema.Literal("interactive", "cron"), { exact: true }),
  /** The scheduled job that began a session with source `cron`. */
  cronJobID: Schema.optionalWith(Schema.NonEmptyString, { exact: true })
})
export type SessionOrigin = typeof SessionOrigin.Type

/** A provider's model, with an optional variant (a named set of request settings). */
export const ModelRef = Schema.Struct({
  providerID: Schema.NonEmptyString,
  id: Schema.NonEmptyString,
  variant: Schema.optionalWith(Schema.NonEmptyString, { exact: true })
})
export type ModelRef = typeof ModelRef.Type

/** Whether two references select the same model: an absent variant is `default` (CR-3). */
export const sameModel = (a: ModelRef, b: ModelRef): boolean =>
  a.providerID === b.providerID && a.id === b.id && (a.variant ?? "default") === (b.variant ?? "default")

/** When an input is promoted: at the next safe boundary (`steer`), or as its own activity (`queue`). */
export const Delivery = Schema.Literal("steer", "queue")
export type Delivery = typeof Delivery.Type

const optionalText = Schema.optionalWith(Schema.String, { exact: true })

/** The place in the prompt's text that mentions an attachment or reference: UTF-16 offsets and the text itself. */
export const SourceSpan = Schema.Struct({ start: Schema.Int, end: Schema.Int, text: Schema.String })

/** A file attached to a prompt: a `data:`, `file:` or other URI with its media type. */
export const FileAttachment = Schema.Struct({
  uri: Schema.NonEmptyString,
  mime: Schema.NonEmptyString,
  name: optionalText,
  description: optionalText,
  source: Schema.optionalWith(SourceSpan, { exact: true })
})
export type FileAttachment = typeof FileAttachment.Type

export const AgentMention = Schema.Struct({
  name: Schema.NonEmptyString,
  source: Schema.optionalWith(SourceSpan, { exact: true })
})

/** A configured reference that the prompt mentions. */
export const ReferenceMention = Schema.Struct({
  name: Schema.NonEmptyString,
  source: Schema.optionalWith(SourceSpan, { exact: true })
})

/** The required form of an answer: JSON that matches `schema`, a JSON Schema whose root is an object (RQ-40). */
export const OutputFormat = Schema.Struct({
  schema: JsonRecord,
  description: optionalText
})
export type OutputFormat = typeof OutputFormat.Type

/** A client's id for its request, and the folder it named, as the agent sees it (FR-8). */
export const ClientRequest = Schema.Struct({ id: Schema.NonEmptyString, cwd: Schema.NonEmptyString })
export type ClientRequest = typeof ClientRequest.Type

/** Enables or disables tools by name pattern (`*` matches any run of characters); the last match decides. */
export const Tools = Schema.Record({ key: Schema.NonEmptyString, value: Schema.Boolean })

const asked = {
  text: Schema.String,
  files: Schema.optionalWith(Schema.Array(FileAttachment), { exact: true }),
  agents: Schema.optionalWith(Schema.Array(AgentMention), { exact: true }),
  references: Schema.optionalWith(Schema.Array(ReferenceMention), { exact: true }),
  /** Privileged text for this prompt, shown directly before it. */
  system: optionalText,
  /** For the rest of the activity, unless a later prompt sets its own. The agent's rules still deny (RQ-26, RQ-27). */
  tools: Schema.optionalWith(Tools, { exact: true }),
  output: Schema.optionalWith(OutputFormat, { exact: true }),
  /** The socket client's request behind this prompt: a part of the prompt, so that a repetition is detected. */
  client: Schema.optionalWith(ClientRequest, { exact: true })
}

/** A caller's prompt: text and what it refers to. */
export const PromptInput = Schema.Struct(asked)
export type PromptInput = typeof PromptInput.Type

/** What a tool shows the model, in order. */
export const ToolContent = Schema.Union(
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("file"),
    uri: Schema.NonEmptyString,
    mime: Schema.NonEmptyString,
    name: optionalText
  })
)
export type ToolContent = typeof ToolContent.Type

/** One file or other reference of a prompt as it was at admission, or why it could not be read. */
export const ExpandedPart = Schema.Struct({
  kind: Schema.Literal(
    "file",
    "directory",
    "media",
    "agent",
    "reference",
    "resource",
    "template",
    /** The reference could not be read; the content says why. */
    "failure"
  ),
  name: Schema.String,
  content: ToolContent,
  /** How a picture was changed before it was stored. */
  note: optionalText,
  source: Schema.optionalWith(SourceSpan, { exact: true })
})
export type ExpandedPart = typeof ExpandedPart.Type

/** The expansion of a prompt at admission; `text` is set if a template replaced the prompt's text. */
export const Expansion = Schema.Struct({ text: optionalText, parts: Schema.Array(ExpandedPart) })
export type Expansion = typeof Expansion.Type

/** A stored prompt: the caller's prompt and its expansion. */
export const Prompt = Schema.Struct({ ...asked, expansion: Schema.optionalWith(Expansion, { exact: true }) })
export type Prompt = typeof Prompt.Type

/** Finite: JSON has no infinity, and stored values must be readable. */
const count = Schema.Finite.pipe(Schema.nonNegative())

/** Tokens of one step. `input` includes tokens read from and written to the provider's cache. */
export const Tokens = Schema.Struct({
  input: count,
  output: count,
  reasoning: count,
  cache: Schema.Struct({ read: count, write: count })
})
export type Tokens = typeof Tokens.Type

/** US dollars per million tokens. */
export const Price = Schema.Struct({ input: count, output: count, cacheRead: count, cacheWrite: count })
export type Price = typeof Price.Type

/** Provider metadata as received: provider name -> record. Sent back only to the same provider and model. */
export const ProviderMetadata = JsonRecord
export type ProviderMetadata = typeof ProviderMetadata.Type

/** A stored failure: an open kind, and a sentence for the reader. */
export const StoredError = Schema.Struct({ type: Schema.NonEmptyString, message: Schema.String })
export type StoredError = typeof StoredError.Type

export { JsonRecord } from "./Json.ts"

export const ActivityOutcome = Schema.Literal("completed", "failed", "interrupted")
export type ActivityOutcome = typeof ActivityOutcome.Type

export const Budget = Schema.Struct({
  cost: Schema.optionalWith(Schema.Finite.pipe(Schema.nonNegative()), { exact: true }),
  tokens: Schema.optionalWith(Schema.Int.pipe(Schema.nonNegative()), { exact: true })
})
export type Budget = typeof Budget.Type

/** A key that is equal for equal Locations. */
export const locationKey = ({ directory, workspaceID }: Location): string =>
  JSON.stringify([directory, workspaceID ?? null])

/** The agent of a session without one, for execution and permission alike (CR-6). */
export const defaultAgent = "build"

// The Location of a Location-scoped service, with a canonical directory.

/** The Location that a layer is built for. */
export class CurrentLocation extends Context.Tag("@daybook/log/CurrentLocation")<CurrentLocation, Location>() {}

// Shows a model to people.

/** `provider/model`, with `:variant` if it has one. */
export const modelText = ({ id, providerID, variant }: ModelRef): string =>
  `${providerID}/${id}${variant === undefined ? "" : `:${variant}`}`

// Merges the request options of an activity's prompts: the first prompt sets all, a later prompt only what it names.

export type Wishes = Pick<PromptInput, "tools" | "output">

export const noWishes: Wishes = {}

/** The options after one more prompt joined. */
export const join = (held: Wishes, { output, tools }: Wishes): Wishes => ({
  ...held,
  ...(tools === undefined || Record.isEmptyRecord(tools) ? {} : { tools }),
  ...(output === undefined ? {} : { output })
})

// Defines what requests to providers spent.

/** Cost of provider requests in US dollars, and their tokens. */
export const Usage = Schema.Struct({ cost: Schema.Finite, tokens: Tokens })
export type Usage = typeof Usage.Type

/** What a session did itself, without its children. A fork counts from the fork on. */
export const SessionMetrics = Schema.Struct({
  ...Usage.fields,
  /** Provider requests that ended, successfully or not. */
  turns: Schema.Int,
  toolCalls: Schema.Int,
  /** Milliseconds of its activities, the running one included. */
  durationMs: Schema.Int
})
export type SessionMetrics = typeof SessionMetrics.Type

/** The part of the usage that is estimated, not counted by providers: US dollars, and tokens of input and output. */
export const Estimated = Schema.Struct({ cost: Schema.Finite, tokens: Schema.Finite })
export type Estimated = typeof Estimated.Type
