/** Defines the result of a tool's call. */
import { Schema } from "effect"
import { JsonRecord, ToolContent } from "@daybook/log/domain/Values"

/**
 * A result as stored and shown. The model reads `content`; `structured` holds facts for programs, and never repeats the
 * content. If `content` is empty, the model reads `structured` as JSON.
 */
export const ToolOutput = Schema.Struct({
  structured: JsonRecord,
  content: Schema.Array(ToolContent),
  /** Files with the complete output of truncated parts. */
  outputPaths: Schema.optionalWith(Schema.Array(Schema.String), { exact: true })
})
export type ToolOutput = typeof ToolOutput.Type
