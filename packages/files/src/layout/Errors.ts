/**
 * The errors of the files package, and the findings about files that differ from what Daybook wrote. Each error names
 * the path and says what to do. Spec: FI-60..FI-89 in specs/files.md.
 */
import { Schema } from "effect"
import { ErrorCause } from "@daybook/log/domain/Json"
import { CursorAhead, CursorExpired, EventUnreadable } from "@daybook/log/log/EventLog"
import { StoreError } from "@daybook/log/store/StoreError"

/** A path component is not what Daybook creates there. It was neither followed nor changed. */
export class PathRefused extends Schema.TaggedError<PathRefused>("@daybook/files/PathRefused")("PathRefused", {
  path: Schema.String,
  found: Schema.Literal("symbolic link", "folder", "other kind of file", "folder of another user"),
  /** The owner, if the folder belongs to another user. */
  owner: Schema.optionalWith(Schema.Int, { exact: true })
}) {
  override get message() {
    if (this.found === "folder of another user") {
      return `${this.path} belongs to user ${this.owner}; choose another space or another root`
    }
    const found = this.found === "other kind of file" ? "another kind of file" : `a ${this.found}`
    return `${this.path} is ${found}, which Daybook does not use; move it away, and Daybook creates it again`
  }
}

/** A file system call failed. `code` is its errno name. */
export class FileFailed extends Schema.TaggedError<FileFailed>("@daybook/files/FileFailed")("FileFailed", {
  operation: Schema.String,
  path: Schema.String,
  code: Schema.String,
  details: Schema.String
}) {
  override get message() {
    return `could not ${this.operation} ${this.path}: ${this.details}`
  }
}

/** The exporter's record under the root cannot be read or written. */
export class LedgerFailed extends Schema.TaggedError<LedgerFailed>("@daybook/files/LedgerFailed")("LedgerFailed", {
  path: Schema.String,
  cause: ErrorCause
}) {
  override get message() {
    const said = this.cause instanceof Error ? this.cause.message : String(this.cause)
    return `the exporter's record ${this.path} cannot be used: ${said}`
  }
}

/** Another process keeps the files under this root. */
export class RootBusy extends Schema.TaggedError<RootBusy>("@daybook/files/RootBusy")("RootBusy", {
  root: Schema.String
}) {
  override get message() {
    return `another process keeps the files under ${this.root}: end it, or choose another root`
  }
}

/** The files under this root were made from another database, or from a later state of this one. */
export class RootOfAnotherStore extends Schema.TaggedError<RootOfAnotherStore>("@daybook/files/RootOfAnotherStore")(
  "RootOfAnotherStore",
  { root: Schema.String }
) {
  override get message() {
    return (
      `the files under ${this.root} were made from another database, or from a later state of this one: ` +
      `choose another root, or remove the folder .daybook there to have them compared and written again`
    )
  }
}

/** The root cannot hold the session files. */
export class RootUnusable extends Schema.TaggedError<RootUnusable>("@daybook/files/RootUnusable")("RootUnusable", {
  root: Schema.String,
  details: Schema.String
}) {
  override get message() {
    return `${this.root} cannot hold the session files: ${this.details}`
  }
}

/** The thread that writes the files ended. The next export starts another one, which continues from the record. */
export class ExportThreadEnded extends Schema.TaggedError<ExportThreadEnded>("@daybook/files/ExportThreadEnded")(
  "ExportThreadEnded",
  { details: Schema.String }
) {
  override get message() {
    return `the thread that writes the session files ended: ${this.details}; the next export starts another one`
  }
}

/** The errors of a file operation under the root. */
export type SafeError = PathRefused | FileFailed

/** The errors of an export. Written files stay; the next export continues from there. */
export const ExportError = Schema.Union(
  PathRefused,
  FileFailed,
  LedgerFailed,
  RootBusy,
  RootOfAnotherStore,
  RootUnusable,
  CursorAhead,
  CursorExpired,
  EventUnreadable,
  StoreError,
  ExportThreadEnded
)
export type ExportError = typeof ExportError.Type

/** How a file under the root differs from what Daybook wrote. */
export const FindingKind = Schema.Literal(
  /** An expected file does not exist. */
  "missing",
  /** The content differs from what was written. */
  "changed",
  /** The last line of a JSONL file has no newline. */
  "torn",
  /** The permissions or the group differ from those of the scope. */
  "mode",
  /** A link, a folder or a device is in the place of a file. */
  "refused",
  /** An entry that Daybook did not create. */
  "foreign",
  /** The files reflect fewer events than the log holds. */
  "behind",
  /** Retention removed events that a comparison or a repair needs. The files stay as they are. */
  "pruned"
)
export type FindingKind = typeof FindingKind.Type

/** A difference between the files and the log; `details` is a sentence for people. */
export const Finding = Schema.Struct({
  kind: FindingKind,
  /** Relative to the root. */
  path: Schema.String,
  sessionID: Schema.optionalWith(Schema.String, { exact: true }),
  details: Schema.String,
  /** The path that the changed file was moved to, relative to the root. */
  aside: Schema.optionalWith(Schema.String, { exact: true })
})
export type Finding = typeof Finding.Type
