/**
 * Moves the pictures of entries between blobs and lines, and finds the blobs that logs refer to: a sweep deletes the
 * others. Spec: FM-82..FM-86 (PE-8, PE-9).
 */
import { Duration, Effect, Option, Stream } from "effect"
import type { FileMissing, StorageFailed } from "../storage/StorageError.ts"
import { SessionStorage } from "../storage/SessionStorage.ts"
import { allIn, type BlobHash, refLength } from "./BlobRef.ts"
import { BlobStore, type Swept } from "./BlobStore.ts"
import { blobsOf, externalize, internalize } from "./Pictures.ts"

/** Stores the pictures of an entry as blobs; returns the entry with references. */
export const moveOut = Effect.fnUntraced(function* <A>(entry: A): Effect.fn.Return<A, StorageFailed, BlobStore> {
  const { blobs, value } = externalize(entry)
  if (blobs.size === 0) return entry
  const store = yield* BlobStore
  for (const bytes of blobs.values()) yield* store.put(bytes)
  return value
})

/** An entry with its pictures, and the blobs that are missing or damaged: their references stay. */
export interface MovedIn<A> {
  readonly entry: A
  readonly missing: ReadonlyArray<BlobHash>
}

/** Puts the pictures of an entry back. */
export const moveIn = Effect.fnUntraced(function* <A>(
  entry: A
): Effect.fn.Return<MovedIn<A>, StorageFailed, BlobStore> {
  const wanted = blobsOf(entry)
  if (wanted.size === 0) return { entry, missing: [] }
  const store = yield* BlobStore
  const found = new Map<BlobHash, Uint8Array>()
  for (const hash of wanted) {
    const bytes = yield* Effect.catchTag(store.get(hash), "BlobDamaged", (error) =>
      Effect.as(Effect.logWarning(error.message), Option.none())
    )
    if (Option.isSome(bytes)) found.set(hash, bytes.value)
  }
  const missing = [...wanted].filter((hash) => !found.has(hash))
  if (missing.length > 0) yield* Effect.logWarning(`blobs are missing, their references stay: ${missing.join(", ")}`)
  return { entry: internalize(entry, found), missing }
})

/** How often each blob is referred to in these logs. Reads them in pieces; whatever looks like a reference counts. */
export const references = Effect.fn("BlobUse.references")(function* (
  logs: Iterable<string>
): Effect.fn.Return<ReadonlyMap<BlobHash, number>, FileMissing | StorageFailed, SessionStorage> {
  const storage = yield* SessionStorage
  const counts = new Map<BlobHash, number>()
  for (const path of logs) {
    let rest = ""
    yield* Stream.runForEach(storage.readBytes(path), (bytes) =>
      Effect.sync(() => {
        const text = rest + Buffer.from(bytes).toString("latin1")
        for (const hash of allIn(text)) counts.set(hash, (counts.get(hash) ?? 0) + 1)
        // Too short for a reference that was counted already, long enough for one that the next piece completes.
        rest = text.slice(-(refLength - 1))
      })
    )
  }
  return counts
})

/** How long ago a blob must have been put before a sweep may delete it. */
export const sweepAge = Duration.hours(1)

/**
 * Deletes the blobs that none of these logs refers to. If a log cannot be read, nothing is deleted. `logs` must name
 * every log whose pictures are in this store.
 */
export const sweep = Effect.fn("BlobUse.sweep")(function* (
  logs: Iterable<string>,
  age: Duration.Duration = sweepAge
): Effect.fn.Return<Swept, FileMissing | StorageFailed, SessionStorage | BlobStore> {
  const counts = yield* references(logs)
  return yield* Effect.flatMap(BlobStore, (store) => store.sweep(new Set(counts.keys()), age))
})
