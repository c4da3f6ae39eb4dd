/** The values that prompts, sessions and events share: location, model, prompt, delivery, usage, tool content. */
import { Schema } from "effect"

/**
 * Where a session works. `directory` is an absolute path; a missing `workspaceID` means placement on this machine.
 */
export const Location = Schema.Struct({
  directory: Schema.NonEmptyString,
  workspaceID: Schema.optionalWith(Schema.NonEmptyString, { exact: true })
})
export type Location = typeof Location.Type

/** One model of one provider, with an optional variant (a named set of request settings). */
export const ModelRef = Schema.Struct({
  providerID: Schema.NonEmptyString,
  id: Schema.NonEmptyString,
  variant: Schema.optionalWith(Schema.NonEmptyString, { exact: true })
})
export type ModelRef = typeof ModelRef.Type

/** Whether two references select the same model: an absent variant is `default` (CR-3). */
export const sameModel = (a: ModelRef, b: ModelRef): boolean =>
  a.providerID === b.providerID && a.id === b.id && (a.variant ?? "default") === (b.variant ?? "default")

/** When an input becomes visible: at the next safe boundary (`steer`), or as an activity of its own (`queue`). */
export const Delivery = Schema.Literal("steer", "queue")
export type Delivery = typeof Delivery.Type

const optionalText = Schema.optionalWith(Schema.String, { exact: true })

/** Where in the prompt's text an attachment or reference was mentioned: UTF-16 offsets and the text itself. */
export const SourceSpan = Schema.Struct({ start: Schema.Int, end: Schema.Int, text: Schema.String })

/** A file given with a prompt: a `data:`, `file:` or other URI with its media type. */
export const FileAttachment = Schema.Struct({
  uri: Schema.NonEmptyString,
  mime: Schema.NonEmptyString,
  name: optionalText,
  description: optionalText,
  source: Schema.optionalWith(SourceSpan, { exact: true })
})
export type FileAttachment = typeof FileAttachment.Type

/** An agent that the prompt mentions. */
export const AgentMention = Schema.Struct({
  name: Schema.NonEmptyString,
  source: Schema.optionalWith(SourceSpan, { exact: true })
})

/** A configured reference that the prompt mentions. */
export const ReferenceMention = Schema.Struct({
  name: Schema.NonEmptyString,
  source: Schema.optionalWith(SourceSpan, { exact: true })
})

/** An answer of a given form: JSON that fits `schema`, a JSON Schema whose root is an object (RQ-40). */
export const OutputFormat = Schema.Struct({
  schema: Schema.Record({ key: Schema.String, value: Schema.Unknown }),
  description: optionalText
})
export type OutputFormat = typeof OutputFormat.Type

/** A client's own id for its request, and the folder that it named, as the agent sees it (FR-8). */
export const ClientRequest = Schema.Struct({ id: Schema.NonEmptyString, cwd: Schema.NonEmptyString })
export type ClientRequest = typeof ClientRequest.Type

/** Tools by name pattern (`*` any run of characters), on or off; the last match decides. */
export const Tools = Schema.Record({ key: Schema.NonEmptyString, value: Schema.Boolean })

const asked = {
  text: Schema.String,
  files: Schema.optionalWith(Schema.Array(FileAttachment), { exact: true }),
  agents: Schema.optionalWith(Schema.Array(AgentMention), { exact: true }),
  references: Schema.optionalWith(Schema.Array(ReferenceMention), { exact: true }),
  /** Privileged text for this prompt, shown directly before it. */
  system: optionalText,
  /** Holds for the rest of the activity, unless a later prompt has its own. The agent's rules still deny (RQ-26, RQ-27). */
  tools: Schema.optionalWith(Tools, { exact: true }),
  output: Schema.optionalWith(OutputFormat, { exact: true }),
  /** The request of a client of the socket that this is: part of what was asked, so that a repetition can be told. */
  client: Schema.optionalWith(ClientRequest, { exact: true })
}

/** What a caller asks: text, with what it points at. */
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

/** One thing that a prompt pointed at, as it was when the prompt was admitted, or why it could not be had. */
export const ExpandedPart = Schema.Struct({
  kind: Schema.Literal(
    "file",
    "directory",
    "media",
    "agent",
    "reference",
    "resource",
    "template",
    /** What was pointed at could not be had; the content says why. */
    "failure"
  ),
  name: Schema.String,
  content: ToolContent,
  /** What was done to a picture before it was stored. */
  note: optionalText,
  source: Schema.optionalWith(SourceSpan, { exact: true })
})
export type ExpandedPart = typeof ExpandedPart.Type

/** What a prompt came to before it was admitted; `text` is there where a template took the place of the words. */
export const Expansion = Schema.Struct({ text: optionalText, parts: Schema.Array(ExpandedPart) })
export type Expansion = typeof Expansion.Type

/** A prompt as it is stored: what was asked, and what that came to. */
export const Prompt = Schema.Struct({ ...asked, expansion: Schema.optionalWith(Expansion, { exact: true }) })
export type Prompt = typeof Prompt.Type

/** Finite: JSON has no infinity, and what is stored must be readable. */
const count = Schema.Finite.pipe(Schema.nonNegative())

/** Tokens of one step. `input` counts what was read and written in the provider's cache as well. */
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

/** Provider metadata as the provider sent it: provider name -> record. Replayed only to that provider and model. */
export const ProviderMetadata = Schema.Record({ key: Schema.String, value: Schema.Unknown })
export type ProviderMetadata = typeof ProviderMetadata.Type

/** A failure as it is stored and shown: an open kind, and a sentence for the reader. */
export const StoredError = Schema.Struct({ type: Schema.NonEmptyString, message: Schema.String })
export type StoredError = typeof StoredError.Type

/** A JSON object whose fields this runtime does not interpret. */
export const JsonRecord = Schema.Record({ key: Schema.String, value: Schema.Unknown })
export type JsonRecord = typeof JsonRecord.Type

/** How an activity ended. */
export const ActivityOutcome = Schema.Literal("completed", "failed", "interrupted")
export type ActivityOutcome = typeof ActivityOutcome.Type

/** The most that a session with its children may spend. An absent field is no limit. Cost is in US dollars. */
export const Budget = Schema.Struct({
  cost: Schema.optionalWith(Schema.Finite.pipe(Schema.nonNegative()), { exact: true }),
  tokens: Schema.optionalWith(Schema.Int.pipe(Schema.nonNegative()), { exact: true })
})
export type Budget = typeof Budget.Type
