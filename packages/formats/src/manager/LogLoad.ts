/**
 * Reads an entry log into memory for writing, migrated to the current version. Everything that could be read stays, also
 * what is not an entry. Spec: FM-99 (LO-3, MI-7).
 */
import { Effect, Stream } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Json"
import type { Problem } from "../conversation/Conversation.ts"
import { isEntryRecord } from "../entry/Entry.ts"
import { type EntryError, NotASession, SessionVersionTooNew } from "../entry/EntryErrors.ts"
import { currentVersion, type Header, isHeader, isTitleSlot, versionOf } from "../entry/Header.ts"
import * as Migration from "../entry/Migration.ts"
import * as JsonLines from "../lines/JsonLines.ts"
import { SessionStorage } from "../storage/SessionStorage.ts"
import type { FileMissing, StorageFailed } from "../storage/StorageError.ts"

/** A log in memory. */
export interface LoadedLog {
  /** Records before the header: omp's title slot. */
  readonly before: ReadonlyArray<JsonRecord>
  /** In the current version. */
  readonly header: Header
  /** The records after the header, in the current version. */
  readonly records: ReadonlyArray<JsonRecord>
  readonly problems: ReadonlyArray<Problem>
  /** Where the records end, in bytes. What stands there is a line that is not complete yet, or was cut off. */
  readonly end: number
  /** The version of the file, if it was migrated. */
  readonly migratedFrom?: number
}

const isRecord = (value: JsonRecord): boolean => isHeader(value) || isEntryRecord(value)

/** Reads the log; undefined if the file is empty. */
export const load = Effect.fn("LogLoad.load")(function* (
  path: string
): Effect.fn.Return<LoadedLog | undefined, EntryError | FileMissing | StorageFailed, SessionStorage> {
  const storage = yield* SessionStorage
  const before: Array<JsonRecord> = []
  const records: Array<JsonRecord> = []
  const problems: Array<Problem> = []
  let sizeBytes = 0
  let header: Header | undefined
  let migration: Migration.Migration | undefined
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
      migration = Migration.make(value, slot)
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
    end: last?.kind === "torn-line" ? last.place.offset : sizeBytes,
    ...(version < currentVersion ? { migratedFrom: version } : {})
  }
})
