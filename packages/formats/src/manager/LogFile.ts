/**
 * The file of one entry log: nothing before the first answer, then one line per entry. Whole rewrites are atomic. The first
 * error is logged and fails all later operations. Spec: FM-75, FM-87, FM-88 (PE-2..PE-6).
 */
import { dirname } from "node:path"
import { Effect, Scope, ScopedRef } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Json"
import { BlobStore } from "../blob/BlobStore.ts"
import * as BlobUse from "../blob/BlobUse.ts"
import { type Cut, truncate } from "../blob/Truncation.ts"
import * as Latch from "../storage/Latch.ts"
import { SessionStorage, type SessionWriter } from "../storage/SessionStorage.ts"
import type { SessionLocked, StorageFailed } from "../storage/StorageError.ts"

export interface LogFile {
  readonly path: () => string
  /** Whether the file exists and lines are appended to it. */
  readonly isWritten: () => boolean
  /** A record as the file keeps it: pictures as blobs, long strings cut. */
  readonly stored: (record: JsonRecord) => Effect.Effect<JsonRecord, StorageFailed>
  /** The strings that were cut so far, up to a limit. */
  readonly cuts: () => ReadonlyArray<Cut>
  /** Keeps a copy of the file under this path before its first rewrite: the rewrite would lose a part of it. */
  readonly copyFirst: (backup: string) => void
  readonly append: (record: JsonRecord) => Effect.Effect<void, StorageFailed>
  /** Replaces the whole file; from then on it is written. */
  readonly rewrite: (records: Iterable<JsonRecord>) => Effect.Effect<void, SessionLocked | StorageFailed>
  readonly flush: Effect.Effect<void, StorageFailed>
  /** Runs a change of the file's place, and continues at the new path. */
  readonly moveTo: <E, R>(
    path: string,
    move: Effect.Effect<void, E, R>
  ) => Effect.Effect<void, E | SessionLocked | StorageFailed, R>
}

/** Cuts that are remembered of a log. */
const mostCuts = 1000

function* linesOf(records: Iterable<JsonRecord>): Generator<string> {
  for (const record of records) yield JSON.stringify(record)
}

/** The file at a path; `exists`: it is locked and appended to from the start. */
export const make = Effect.fnUntraced(function* (
  initial: string,
  exists: boolean
): Effect.fn.Return<LogFile, SessionLocked | StorageFailed, SessionStorage | BlobStore | Scope.Scope> {
  const [storage, blobs, scope] = [yield* SessionStorage, yield* BlobStore, yield* Effect.scope]
  const writer = yield* ScopedRef.make<SessionWriter | undefined>(() => undefined)
  const latch = Latch.logged(initial)
  const cuts: Array<Cut> = []
  let [path, locked, written] = [initial, false, exists]
  let backup: string | undefined

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

  const copied = Effect.suspend(() =>
    backup === undefined
      ? Effect.void
      : Effect.catchTag(storage.readText(path), "FileMissing", () => Effect.succeed("")).pipe(
          Effect.flatMap((text) => storage.writeText(backup ?? path, text)),
          Effect.map(() => void (backup = undefined))
        )
  )

  if (exists) yield* lock
  return {
    path: () => path,
    isWritten: () => written,
    stored: (record) =>
      Effect.map(Effect.provideService(BlobUse.moveOut(record), BlobStore, blobs), (moved) => {
        const { cuts: found, value } = truncate(moved)
        cuts.push(...found.slice(0, mostCuts - cuts.length))
        return value
      }),
    cuts: () => cuts,
    copyFirst: (path) => void (backup = path),
    append: (record) =>
      latch.guard(Effect.flatMap(opened, (writer) => writer?.writeLine(JSON.stringify(record)) ?? Effect.void)),
    rewrite: (records) =>
      latch.guard(
        lock.pipe(
          Effect.zipRight(copied),
          Effect.zipRight(ScopedRef.set(writer, Effect.succeed(undefined))),
          Effect.zipRight(Effect.suspend(() => storage.writeLines(path, linesOf(records)))),
          Effect.map(() => void (written = true))
        )
      ),
    flush: latch.guard(
      Effect.suspend(() => (written ? Effect.flatMap(opened, (writer) => writer?.fsync ?? Effect.void) : Effect.void))
    ),
    moveTo: (next, move) =>
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
