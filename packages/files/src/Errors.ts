/**
 * What can go wrong with the files, and what is found of other hands in them. Each error names the path and says in a
 * sentence what to do. Spec: FI-60..FI-89 in specs/files.md.
 */
import type { EventUnreadable, CursorAhead, CursorExpired, LogUnavailable, StoreError } from "@daybook/core"
import { Schema } from "effect"

/** Something on the way to a file, or at its end, is not what Daybook makes there. It was not followed, nor changed. */
export class PathRefused extends Schema.TaggedError<PathRefused>("@daybook/files/PathRefused")("PathRefused", {
  path: Schema.String,
  found: Schema.Literal("symbolic link", "folder", "other kind of file", "folder of another user"),
  /** The user that a folder of another user belongs to. */
  owner: Schema.optionalWith(Schema.Int, { exact: true })
}) {
  override get message() {
    if (this.found === "folder of another user") {
      return `${this.path} belongs to user ${this.owner}, who keeps what lies there; choose another space or another root`
    }
    return `${this.path} is a ${this.found}, which is not followed; move it away and it is made anew`
  }
}

/** The file system could not do it. `code` is its errno name. */
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

/** The exporter's own record under the root cannot be used. */
export class LedgerFailed extends Schema.TaggedError<LedgerFailed>("@daybook/files/LedgerFailed")("LedgerFailed", {
  path: Schema.String,
  cause: Schema.Defect
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

/** The root cannot hold the files. */
export class RootUnusable extends Schema.TaggedError<RootUnusable>("@daybook/files/RootUnusable")("RootUnusable", {
  root: Schema.String,
  details: Schema.String
}) {
  override get message() {
    return `${this.root} cannot hold the session files: ${this.details}`
  }
}

/** Everything that a file operation under the root can fail with. */
export type SafeError = PathRefused | FileFailed

/** Everything that an export can fail with. What was written stays, and the next export goes on from there. */
export type ExportError =
  | SafeError
  | LedgerFailed
  | RootBusy
  | RootOfAnotherStore
  | RootUnusable
  | CursorAhead
  | CursorExpired
  | EventUnreadable
  | LogUnavailable
  | StoreError

/** What is not as Daybook wrote it, in the files under the root. */
export const FindingKind = Schema.Literal(
  /** A file that should be there is not. */
  "missing",
  /** Its content is not what was written. */
  "changed",
  /** The last line of a JSONL file has no end. */
  "torn",
  /** Its permissions are others than the scope has. */
  "mode",
  /** A link, a folder or a device stands where a file should. */
  "refused",
  /** Something that is not ours lies among the files. */
  "foreign",
  /** The files tell of fewer events than the log holds. */
  "behind"
)
export type FindingKind = typeof FindingKind.Type

export const Finding = Schema.Struct({
  kind: FindingKind,
  /** Relative to the root. */
  path: Schema.String,
  sessionID: Schema.optionalWith(Schema.String, { exact: true }),
  details: Schema.String,
  /** Where the changed file was moved to, relative to the root. */
  aside: Schema.optionalWith(Schema.String, { exact: true })
})
export type Finding = typeof Finding.Type
