/**
 * The file of one entry log: nothing before the first answer, then one line per entry. Whole rewrites are atomic. The first
 * error is logged and fails all later operations. Spec: FM-75, FM-87, FM-88, FM-99, FM-423 in specs/formats.md
 * (PE-2..PE-6, LO-3, MI-7).
 */
import { dirname } from "node:path"
import { Effect, Either, Scope, ScopedRef, Stream } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Json"
import { BlobStore } from "../blob/BlobStore.ts"
import { externalize } from "../blob/BlobUse.ts"
import { type Cut, truncate } from "../blob/Truncation.ts"
import type { Problem } from "../conversation/Conversation.ts"
import { currentVersion, type Header, isEntryRecord, isHeader, isTitleSlot, versionOf } from "../entry/Entry.ts"
import * as EntryReader from "../entry/EntryReader.ts"
import { type EntryError, NotASession, SessionVersionTooNew } from "../entry/EntryReader.ts"
import * as JsonLines from "../lines/JsonLines.ts"
import { recordLine, type RecordRefused, shallow } from "../lines/JsonLines.ts"
import { loggedLatch, SessionStorage, type SessionWriter } from "../storage/SessionStorage.ts"

// Reads an entry log into memory for writing, migrated to the current version.

const isRecord = (value: JsonRecord): boolean => isHeader(value) || isEntryRecord(value)

/** Reads the log in the current version; undefined if the file is empty. */
export const load = Effect.fn("LogLoad.load")(function* (path: string) {
  const storage = yield* SessionStorage
  const before: Array<JsonRecord> = []
  const records: Array<JsonRecord> = []
  const problems: Array<Problem> = []
  let sizeBytes = 0
  let header: Header | undefined
  let migration: EntryReader.Migration | undefined
  const take = (read: JsonLines.LogRecord): EntryError | undefined => {
    const { place, slot, value } = read
    if (migration !== undefined) records.push(migration.next(value, slot).record)
    else if (before.length === 0 && isTitleSlot(value)) before.push(value)
    else if (!isHeader(value)) return new NotASession({ place })
    else {
      const version = versionOf(value)
      if (version !== undefined && version > currentVersion) {
        return new SessionVersionTooNew({ found: version, supported: currentVersion })
      }
      header = value
      migration = EntryReader.makeMigration(value, slot)
    }
    return undefined
  }
  const bytes = Stream.map(storage.readBytes(path), (piece) => {
    sizeBytes += piece.length
    return piece
  })
  yield* Stream.runForEach(JsonLines.read({ isRecord })(bytes), (read) => {
    const error = read._tag === "Problem" ? void problems.push(read) : take(read)
    return error === undefined ? Effect.void : Effect.fail(error)
  })
  if (header === undefined || migration === undefined) {
    if ((yield* storage.stat(path)).sizeBytes === 0) return undefined
    return yield* new NotASession({})
  }
  const version = versionOf(header) ?? currentVersion
  const migrated = { ...header, ...migration.header }
  const last = problems.at(-1)
  return {
    before,
    header: migrated,
    records,
    problems,
    /** Where the records end, in bytes. What stands there is a line that is not complete yet, or was cut off. */
    end: last?.kind === "torn-line" ? last.place.offset : sizeBytes,
    // The version of the file, if it was migrated.
    ...(version < currentVersion ? { migratedFrom: version } : {})
  }
})

export interface RewriteOptions {
  /** Names a copy of the file as it is: the rewrite would lose a part of it. */
  readonly backup?: string | undefined
  /** The file's bytes from this offset on follow the records: another tool appended them. */
  readonly tail?: number
}

/** A record as a file keeps it: pictures as references, long strings cut. */
export interface RecordLine extends ReturnType<typeof externalize<JsonRecord>> {
  readonly cuts: ReadonlyArray<Cut>
  readonly line: string
}

/** A record as a file keeps it, if its line can be read back. */
export const kept = (record: JsonRecord): Either.Either<RecordLine, RecordRefused> =>
  Either.gen(function* () {
    const { blobs, value: moved } = externalize(yield* shallow(record))
    const { cuts, value } = truncate(moved)
    return { blobs, cuts, line: yield* recordLine(value), value }
  })

/** Cuts that are remembered of a log. */
const mostCuts = 1000

function* linesOf(records: Iterable<JsonRecord>): Generator<string> {
  for (const record of records) yield JSON.stringify(record)
}

/** The file at a path; `exists`: it is locked and appended to from the start. */
export const make = Effect.fnUntraced(function* (initial: string, exists: boolean) {
  const [storage, blobs, scope] = [yield* SessionStorage, yield* BlobStore, yield* Effect.scope]
  const writer = yield* ScopedRef.make<SessionWriter | undefined>(() => undefined)
  const latch = loggedLatch(initial)
  const cuts: Array<Cut> = []
  let [path, locked, written] = [initial, false, exists]

  const lock = Effect.suspend(() =>
    locked
      ? Effect.void
      : storage.ensureDir(dirname(path)).pipe(
          Effect.zipRight(Scope.extend(storage.lock(path), scope)),
          Effect.map(() => void (locked = true))
        )
  )
  const open = Effect.suspend(() => ScopedRef.set(writer, storage.openWriter(path)))
  const opened = Effect.flatMap(ScopedRef.get(writer), (current) =>
    current === undefined ? Effect.zipRight(open, ScopedRef.get(writer)) : Effect.succeed(current)
  )

  if (exists) yield* lock
  return {
    path: () => path,
    /** Whether the file exists and lines are appended to it. */
    isWritten: () => written,
    /** Stores the pictures of a record, and returns the record as the file keeps it. */
    stored: Effect.fnUntraced(function* (record: JsonRecord) {
      const stored = yield* kept(record)
      for (const bytes of stored.blobs.values()) yield* blobs.put(bytes)
      cuts.push(...stored.cuts.slice(0, mostCuts - cuts.length))
      return stored
    }),
    /** The strings that were cut so far, up to a limit. */
    cuts: (): ReadonlyArray<Cut> => cuts,
    append: (line: string) => latch.guard(Effect.flatMap(opened, (writer) => writer?.writeLine(line) ?? Effect.void)),
    /** Replaces the whole file; from then on it is written. */
    rewrite: (records: Iterable<JsonRecord>, { backup, tail }: RewriteOptions = {}) =>
      latch.guard(
        Effect.gen(function* () {
          yield* lock
          if (backup !== undefined) {
            yield* Effect.catchTag(storage.backUp(path, backup), "FileMissing", () => Effect.void)
          }
          yield* ScopedRef.set(writer, Effect.succeed(undefined))
          yield* storage.writeLines(path, linesOf(records), tail)
          written = true
        })
      ),
    flush: latch.guard(
      Effect.suspend(() => (written ? Effect.flatMap(opened, (writer) => writer?.fsync ?? Effect.void) : Effect.void))
    ),
    /** Runs a change of the file's place, and continues at the new path. */
    moveTo: <E, R>(next: string, move: Effect.Effect<void, E, R>) =>
      latch.guard(
        Effect.gen(function* () {
          yield* storage.ensureDir(dirname(next))
          if (written) yield* Scope.extend(storage.lock(next), scope)
          yield* ScopedRef.set(writer, Effect.succeed(undefined))
          yield* move
          path = next
        })
      )
  }
})

export type LogFile = Effect.Effect.Success<ReturnType<typeof make>>
