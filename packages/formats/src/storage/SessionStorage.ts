/**
 * The contract of the files that foreign session logs are kept in: folders, texts, growing files with one writer.
 * Implemented on disk (`FileSessionStorage.ts`) and in memory (`MemorySessionStorage.ts`); `test/formats/storage` runs
 * one suite on both. It knows nothing of entries. Spec: FM-70..FM-76 in specs/formats.md.
 */
import { Context, Effect, type Either, Option, Schema, type Scope, type Stream } from "effect"
import { codeOf } from "@daybook/log/support/SystemError"

// Defines what goes wrong with the files of foreign sessions, as sentences for people.

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

/** Translates an error of the system. */
export const failed = (operation: string, path: string, cause: unknown): StorageFailed => {
  const code = codeOf(cause, "EIO")
  return new StorageFailed({ operation, path, code, details: sentences[code] ?? `the system reports ${code}` })
}

/** Translates an error of the system; a missing file is an error of its own. */
export const failedOrMissing = (operation: string, path: string, cause: unknown): FileMissing | StorageFailed =>
  codeOf(cause) === "ENOENT" ? new FileMissing({ path }) : failed(operation, path, cause)

// Keeps the first error of a file: every later operation on the file fails with it.

export interface Latch {
  /** Runs the operation unless an earlier one failed. */
  readonly guard: <A, E, R>(use: Effect.Effect<A, E, R>) => Effect.Effect<A, E | StorageFailed, R>
  readonly error: Effect.Effect<Option.Option<StorageFailed>>
}

/** A latch; `onFirst` runs once, for the error that it keeps. */
export const makeLatch = (onFirst: (error: StorageFailed) => Effect.Effect<void> = () => Effect.void): Latch => {
  let first: StorageFailed | undefined
  const keep = (error: unknown) =>
    Effect.suspend(() => {
      if (first !== undefined || !(error instanceof StorageFailed)) return Effect.void
      first = error
      return onFirst(error)
    })
  return {
    guard: <A, E, R>(use: Effect.Effect<A, E, R>) =>
      Effect.suspend((): Effect.Effect<A, E | StorageFailed, R> =>
        first === undefined ? Effect.tapError(use, keep) : Effect.fail(first)
      ),
    error: Effect.sync(() => Option.fromNullable(first))
  }
}

export const loggedLatch = (path: string): Latch =>
  makeLatch((error) => Effect.logError(`${path} is not written any more: ${error.message}`))

export const FileStat = Schema.Struct({
  sizeBytes: Schema.NonNegativeInt,
  /** Milliseconds since the epoch, with fractions. */
  modifiedAt: Schema.Finite
})
export type FileStat = typeof FileStat.Type

/** The start of a file, as lists need it. */
export interface FileStart extends FileStat {
  /** The text of the first bytes, without a character that they cut. */
  readonly text: string
}

/** The name of a copy; later copies are numbered. */
export const backupName = (path: string, label: string, number: number): string =>
  `${path}.${label}${number === 1 ? "" : `.${number}`}.bak`

export type Start = Either.Either<FileStart, FileMissing | StorageFailed>

/** Appends lines to one file. The scope that opened it closes it. */
export interface SessionWriter {
  /**
   * Appends the line and a newline in one write. A line that cannot be written whole leaves the file as it was (FM-73).
   * After an error, every operation of this writer fails with that error.
   */
  readonly writeLine: (line: string) => Effect.Effect<void, StorageFailed>
  /** Makes the lines durable. */
  readonly fsync: Effect.Effect<void, StorageFailed>
  /** The first error. */
  readonly error: Effect.Effect<Option.Option<StorageFailed>>
}

/** What `SessionStorage` offers. */
export interface Service {
  /** Creates the folder and its parents, for this user only. An existing folder stays as it is. */
  readonly ensureDir: (path: string) => Effect.Effect<void, StorageFailed>
  readonly exists: (path: string) => Effect.Effect<boolean, StorageFailed>
  readonly stat: (path: string) => Effect.Effect<FileStat, FileMissing | StorageFailed>
  /** The names of the folder's files, sorted; none if the folder does not exist. Hidden files are omitted. */
  readonly listFiles: (folder: string) => Effect.Effect<ReadonlyArray<string>, StorageFailed>
  /** The names of the folder's folders, sorted; none if the folder does not exist. Hidden folders are omitted. */
  readonly listDirs: (folder: string) => Effect.Effect<ReadonlyArray<string>, StorageFailed>
  /** The whole text. For small files: the text is held in memory. */
  readonly readText: (path: string) => Effect.Effect<string, FileMissing | StorageFailed>
  /** What `stat` says of each file, and its first bytes. Read together: an effect each costs as much as a file. */
  readonly readStarts: (paths: ReadonlyArray<string>, bytes: number) => Effect.Effect<ReadonlyArray<Start>>
  readonly readBytes: (path: string) => Stream.Stream<Uint8Array, FileMissing | StorageFailed>
  /** Replaces the file by the text, atomically (FM-72): a reader sees the old or the new content. */
  readonly writeText: (path: string, text: string) => Effect.Effect<void, StorageFailed>
  /**
   * Replaces the file by the lines, each with a newline, as `writeText` does. The file's bytes from the offset `tail`
   * on follow the lines, also those that another program appends meanwhile (FM-422).
   */
  readonly writeLines: (path: string, lines: Iterable<string>, tail?: number) => Effect.Effect<void, StorageFailed>
  /** Copies the file, byte for byte and durably, to a name that no file has, such as `log.jsonl.v1.bak` (FM-421). */
  readonly backUp: (path: string, label: string) => Effect.Effect<string, FileMissing | StorageFailed>
  /** Renames a file or folder; a file or an empty folder at the new path is replaced by its like. */
  readonly rename: (from: string, to: string) => Effect.Effect<void, FileMissing | StorageFailed>
  /** Removes the file if it exists. */
  readonly unlink: (path: string) => Effect.Effect<void, StorageFailed>
  /**
   * Opens the file for appending, and creates it if it is absent. If its last line has no newline, the first write
   * ends that line first, so that records never share a line (FM-73).
   */
  readonly openWriter: (path: string) => Effect.Effect<SessionWriter, StorageFailed, Scope.Scope>
  /** Allows this scope alone to write the file. `SessionLocked` if another scope or process may (FM-74). */
  readonly lock: (path: string) => Effect.Effect<void, SessionLocked | StorageFailed, Scope.Scope>
}

/**
 * Files of sessions, on a disk or in memory.
 *
 * @example
 * ```ts
 * import { SessionStorage } from "@daybook/formats"
 * import { Effect } from "effect"
 *
 * export const text = (path: string) =>
 *   Effect.flatMap(SessionStorage.SessionStorage, ({ readText }) => readText(path))
 * ```
 */
export class SessionStorage extends Context.Tag("@daybook/formats/SessionStorage")<SessionStorage, Service>() {}
