/** Reads the bytes of a foreign log. The file is opened for reading only and never changed. Spec: FM-1 in specs/formats.md. */
import { FileSystem } from "@effect/platform/FileSystem"
import type { PlatformError } from "@effect/platform/Error"
import { Effect, Schema, Stream } from "effect"

/** A log cannot be read. Nothing was changed. */
export class LogUnreadable extends Schema.TaggedError<LogUnreadable>("@daybook/formats/LogUnreadable")(
  "LogUnreadable",
  {
    path: Schema.String,
    reason: Schema.Literal("missing", "not a file", "not permitted", "failed"),
    details: Schema.String
  }
) {
  override get message() {
    return `${this.path} cannot be read: ${this.details}`
  }
}

const unreadable = (path: string) => (error: PlatformError) => {
  const reason = error._tag === "BadArgument" ? "failed" : error.reason
  if (reason === "NotFound") return new LogUnreadable({ path, reason: "missing", details: "it does not exist" })
  if (reason === "PermissionDenied") {
    return new LogUnreadable({ path, reason: "not permitted", details: "this user may not read it" })
  }
  return new LogUnreadable({ path, reason: "failed", details: error.message })
}

const chunkBytes = 256 * 1024

/** The bytes of a regular file, in chunks. Anything else fails: opening a pipe would wait for a writer. */
export const bytes = (path: string): Stream.Stream<Uint8Array, LogUnreadable, FileSystem> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const files = yield* FileSystem
      const { type } = yield* Effect.mapError(files.stat(path), unreadable(path))
      if (type !== "File") {
        return yield* new LogUnreadable({ path, reason: "not a file", details: "it is not a regular file" })
      }
      return Stream.mapError(files.stream(path, { chunkSize: chunkBytes }), unreadable(path))
    })
  )
