/**
 * The contract of blobs, kept by the SHA-256 of their bytes. A blob is verified when it is read, and deleted only by an
 * explicit sweep. Implemented on disk (`FileBlobStore.ts`) and in memory (`MemoryBlobStore.ts`). Which blobs are in
 * use: `BlobUse.ts`. Spec: FM-82..FM-86 (PE-8, PE-9).
 */
import { Context, type Duration, type Effect, type Option, Schema } from "effect"
import type { StorageFailed } from "../storage/StorageError.ts"
import { BlobHash } from "./BlobRef.ts"

/** The bytes of a blob are not the ones that it is named after. */
export class BlobDamaged extends Schema.TaggedError<BlobDamaged>("@daybook/formats/BlobDamaged")("BlobDamaged", {
  hash: BlobHash
}) {
  override get message() {
    return `the blob ${this.hash} is damaged: its bytes have another SHA-256; restore it from a backup`
  }
}

/** What a sweep did. */
export const Swept = Schema.Struct({
  deleted: Schema.NonNegativeInt,
  deletedBytes: Schema.NonNegativeInt,
  kept: Schema.NonNegativeInt
})
export type Swept = typeof Swept.Type

export class BlobStore extends Context.Tag("@daybook/formats/BlobStore")<
  BlobStore,
  {
    /** Stores the bytes durably, unless they are there, and marks the blob as used now. */
    readonly put: (bytes: Uint8Array) => Effect.Effect<BlobHash, StorageFailed>
    /** The verified bytes; none if the blob is missing. */
    readonly get: (hash: BlobHash) => Effect.Effect<Option.Option<Uint8Array>, BlobDamaged | StorageFailed>
    /** The stored blobs. */
    readonly list: Effect.Effect<ReadonlyArray<BlobHash>, StorageFailed>
    /**
     * Deletes the blobs that are not in use and were last put longer ago than `age`. A log that is being written puts
     * its blobs first: `age` must exceed the time from there to its line, and the time that `inUse` took to read.
     */
    readonly sweep: (inUse: ReadonlySet<BlobHash>, age: Duration.Duration) => Effect.Effect<Swept, StorageFailed>
  }
>() {}
