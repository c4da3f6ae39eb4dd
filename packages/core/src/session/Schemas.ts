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

/** What a caller asks: text, with what it points at. */
export const Prompt = Schema.Struct({
  text: Schema.String,
  files: Schema.optionalWith(Schema.Array(FileAttachment), { exact: true }),
  agents: Schema.optionalWith(Schema.Array(AgentMention), { exact: true }),
  references: Schema.optionalWith(Schema.Array(ReferenceMention), { exact: true })
})
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

/** Provider metadata as the provider sent it: provider name -> record. Replayed only to that provider and model. */
export const ProviderMetadata = Schema.Record({ key: Schema.String, value: Schema.Unknown })
export type ProviderMetadata = typeof ProviderMetadata.Type

/** A failure as it is stored and shown: an open kind, and a sentence for the reader. */
export const StoredError = Schema.Struct({ type: Schema.NonEmptyString, message: Schema.String })
export type StoredError = typeof StoredError.Type

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

/** A JSON object whose fields this runtime does not interpret. */
export const JsonRecord = Schema.Record({ key: Schema.String, value: Schema.Unknown })
export type JsonRecord = typeof JsonRecord.Type

/** How an activity ended. */
export const ActivityOutcome = Schema.Literal("completed", "failed", "interrupted")
export type ActivityOutcome = typeof ActivityOutcome.Type
