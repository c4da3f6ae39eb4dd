/** Defines what goes wrong with the files of foreign sessions, as sentences for people. Spec: FM-70..FM-74. */
import { Predicate, Schema } from "effect"

/** The file does not exist. */
export class FileMissing extends Schema.TaggedError<FileMissing>("@daybook/formats/FileMissing")("FileMissing", {
  path: Schema.String
}) {
  override get message() {
    return `${this.path} does not exist`
  }
}

/** The system refused an operation. `code` is the system's, such as `ENOSPC`. */
export class StorageFailed extends Schema.TaggedError<StorageFailed>("@daybook/formats/StorageFailed")(
  "StorageFailed",
  { operation: Schema.String, path: Schema.String, code: Schema.String, details: Schema.String }
) {
  override get message() {
    return `cannot ${this.operation} ${this.path}: ${this.details}`
  }
}

/** Another writer has the file. Close it there, or wait until that process ends. */
export class SessionLocked extends Schema.TaggedError<SessionLocked>("@daybook/formats/SessionLocked")(
  "SessionLocked",
  { path: Schema.String }
) {
  override get message() {
    return `${this.path} is open for writing elsewhere; close it there first`
  }
}

const sentences: Readonly<Record<string, string>> = {
  EACCES: "permission is denied; give this user access to it",
  EDQUOT: "the quota is used up; free some space",
  EISDIR: "it is a folder",
  EMFILE: "too many files are open; raise the limit of open files",
  ENAMETOOLONG: "the path is longer than this file system allows",
  ENOENT: "it does not exist",
  ENOSPC: "the disk is full; free some space",
  ENOTDIR: "a part of the path is not a folder",
  EROFS: "the file system is read-only"
}

/** The system's code of an error. */
export const codeOf = (cause: unknown): string =>
  Predicate.hasProperty(cause, "code") && typeof cause.code === "string" ? cause.code : "EIO"

/** Translates an error of the system. */
export const failed = (operation: string, path: string, cause: unknown): StorageFailed => {
  const code = codeOf(cause)
  return new StorageFailed({ operation, path, code, details: sentences[code] ?? `the system reports ${code}` })
}

/** Translates an error of the system; a missing file is an error of its own. */
export const failedOrMissing = (operation: string, path: string, cause: unknown): FileMissing | StorageFailed =>
  codeOf(cause) === "ENOENT" ? new FileMissing({ path }) : failed(operation, path, cause)
