/** Bounds what a tool shows the model, and keeps the whole of it in files. */
import { Context, Effect, Schema, type Scope } from "effect"
import type { SessionID } from "../Identifiers.ts"
import type { ToolOutput, ToolStorageError } from "./ToolDefinition.ts"

/** What one output may hold inline. Beyond it, the whole is kept in a file. */
export const outputLimits = { lines: 2_000, bytes: 50 * 1024, mediaBytes: 5 * 1024 * 1024 } as const

/** An inline file of a result is larger than a result may carry. */
export class MediaLimitError extends Schema.TaggedError<MediaLimitError>("@daybook/core/MediaLimitError")(
  "MediaLimitError",
  { mime: Schema.String, bytes: Schema.Int, limit: Schema.Int }
) {
  override get message() {
    return `the result holds a ${this.mime} file of ${this.bytes} bytes; at most ${this.limit} bytes fit in a result`
  }
}

/** Whose output it is: it names the file. */
export interface OutputOwner {
  readonly sessionID: SessionID
  readonly callID: string
}

/** The file that takes an output while it grows. */
export interface OutputFile {
  readonly path: string
  /** What `read` calls it. */
  readonly reference: string
  readonly write: (bytes: Uint8Array) => Effect.Effect<void, ToolStorageError>
}

export class ToolOutputStore extends Context.Tag("@daybook/core/ToolOutputStore")<
  ToolOutputStore,
  {
    readonly bound: (
      owner: OutputOwner,
      output: ToolOutput
    ) => Effect.Effect<ToolOutput, ToolStorageError | MediaLimitError>
    readonly open: (owner: OutputOwner) => Effect.Effect<OutputFile, ToolStorageError, Scope.Scope>
  }
>() {}
