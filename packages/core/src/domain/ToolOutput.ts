/** Defines the result of a tool's call. */
import type { JsonRecord, ToolContent } from "@daybook/log/domain/Values"

/**
 * A result as stored and shown. The model reads `content`; `structured` holds facts for programs, and never repeats the
 * content. If `content` is empty, the model reads `structured` as JSON.
 */
export interface ToolOutput {
  readonly structured: JsonRecord
  readonly content: ReadonlyArray<ToolContent>
  /** Files with the complete output of truncated parts. */
  readonly outputPaths?: ReadonlyArray<string>
}
