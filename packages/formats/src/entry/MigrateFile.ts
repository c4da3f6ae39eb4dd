/** Migrates a file to version 3 in place, and keeps a copy. Spec: FM-24..FM-26, FM-50, FM-51 (MI-7, PE-3). */
import { dirname } from "node:path"
import type { PlatformError } from "@effect/platform/Error"
import { type File, FileSystem } from "@effect/platform/FileSystem"
import { Effect, Option, Stream } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Json"
import type { Head } from "../conversation/Conversation.ts"
import * as JsonLines from "../lines/JsonLines.ts"
import * as LogFile from "../lines/LogFile.ts"
import * as FileSessionStorage from "../storage/FileSessionStorage.ts"
import { type SessionLocked, SessionStorage, StorageFailed } from "../storage/SessionStorage.ts"
import { currentVersion, isHeader } from "./Entry.ts"
import * as EntryReader from "./EntryReader.ts"
import { LogChanged, NotASession } from "./EntryReader.ts"

// Writes the lines of an entry log: the records before the header, the header, then the entries in file order.

export const lineOf = (record: JsonRecord): string => `${JSON.stringify(record)}\n`

export const headLines = ({ before = [], record }: Pick<Head, "before" | "record">): ReadonlyArray<string> =>
  [...before, record].map(lineOf)

/** The lines of a log. `records` are the entries in version 3, in the order in which they were appended. */
export const lines =
  (head: Pick<Head, "before" | "record">) =>
  <E, R>(records: Stream.Stream<JsonRecord, E, R>): Stream.Stream<string, E, R> =>
    Stream.concat(Stream.fromIterable(headLines(head)), Stream.map(records, lineOf))

export interface Result {
  /** The version that the file had. If it is 3, the file was not touched. */
  readonly version: number
  /** The path of the original. */
  readonly backup?: string
  /** How many damaged places the new file does not have; `EntryReader` names them in the original. */
  readonly problems: number
}

const written = (operation: string, path: string) => (error: PlatformError) =>
  new StorageFailed({
    operation,
    path,
    code: error._tag === "SystemError" ? error.reason : "BadArgument",
    details: error.message
  })

/** The lines of the file in version 3: a record that the migration leaves alone keeps its text. */
const migratedLines = () => {
  let migration: EntryReader.Migration | undefined
  return ({ slot, text, value }: JsonLines.LogRecord): string => {
    if (migration === undefined) {
      if (!isHeader(value)) return `${text}\n`
      migration = EntryReader.makeMigration(value, slot)
      return lineOf(migration.header)
    }
    const { record } = migration.next(value, slot)
    return record === value ? `${text}\n` : lineOf(record)
  }
}

const write = Effect.fnUntraced(function* (path: string, file: File) {
  const toLine = migratedLines()
  let problems = 0
  yield* LogFile.bytes(path).pipe(
    JsonLines.read({ isRecord: EntryReader.isRecord }),
    Stream.mapChunks((reads) => {
      problems += [...reads].filter(({ _tag }) => _tag === "Problem").length
      return reads
    }),
    Stream.filterMap((read) => (read._tag === "Problem" ? Option.none() : Option.some(toLine(read)))),
    Stream.grouped(256),
    Stream.runForEach((lines) =>
      Effect.mapError(file.writeAll(Buffer.from([...lines].join(""))), written("write", path))
    )
  )
  yield* Effect.mapError(file.sync, written("make durable", path))
  return problems
})

/** The file's permissions, and what changes when another program writes to it. */
const look = Effect.fnUntraced(function* (path: string) {
  const files = yield* FileSystem
  const { ino, mode, mtime, size } = yield* Effect.mapError(files.stat(path), written("look at", path))
  const modified = Option.match(mtime, { onNone: () => "", onSome: (time) => time.toISOString() })
  return { mode: mode & 0o777, stamp: `${Option.getOrElse(ino, () => 0)} ${modified} ${size}` }
})

const versionOf = Effect.fnUntraced(function* (path: string) {
  const head = yield* EntryReader.fromPath(path).pipe(
    Stream.filterMap((piece) => (piece._tag === "Head" ? Option.some(piece.version ?? currentVersion) : Option.none())),
    Stream.runHead
  )
  return yield* Effect.mapError(head, () => new NotASession({}))
})

/** Replaces the original by the written file and makes its new name durable. */
const replace = Effect.fnUntraced(function* (temporary: string, path: string) {
  const files = yield* FileSystem
  yield* Effect.mapError(files.rename(temporary, path), written("rename", temporary))
  const folder = dirname(path)
  yield* files.open(folder).pipe(
    Effect.flatMap((handle) => handle.sync),
    Effect.scoped,
    Effect.mapError(written("make durable", folder))
  )
})

export type MigrateError = EntryReader.ReadingError | LogChanged | LogFile.LogUnreadable | SessionLocked | StorageFailed

/**
 * Migrates the file to version 3, unless it has that version. Fails without a change if another writer has its lock, or
 * if it is written to meanwhile. The original stays beside it, as `name.v1.bak`.
 */
export const migrateFile = Effect.fn("MigrateFile.migrateFile")(function* (name: string) {
  const files = yield* FileSystem
  // A rename onto a link would replace the link.
  const path = yield* Effect.orElseSucceed(files.realPath(name), () => name)
  const version = yield* versionOf(path)
  if (version === currentVersion) return { version, problems: 0 }
  const storage = yield* SessionStorage
  yield* storage.lock(path)
  const before = yield* look(path)
  const temporary = yield* Effect.acquireRelease(
    Effect.sync(() => FileSessionStorage.reserveTemporary(path)),
    (name) => Effect.sync(() => FileSessionStorage.releaseTemporary(name))
  )
  const file = yield* Effect.mapError(
    files.open(temporary, { flag: "wx", mode: before.mode }),
    written("create", temporary)
  )
  const problems = yield* write(path, file)
  if ((yield* look(path)).stamp !== before.stamp) return yield* new LogChanged({ path })
  return yield* Effect.uninterruptible(
    Effect.gen(function* () {
      const backup = yield* Effect.mapError(storage.backUp(path, `v${version}`), (error) =>
        error._tag === "FileMissing" ? new LogChanged({ path }) : error
      )
      yield* replace(temporary, path)
      return { version, backup, problems }
    })
  )
}, Effect.scoped)
