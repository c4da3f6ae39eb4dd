/** Blobs in memory: for tests, and for sessions that are not kept. Spec: FM-82..FM-86. */
import { Clock, Duration, Effect, Layer, Option } from "effect"
import { type BlobHash, hashOf } from "./BlobRef.ts"
import { BlobStore } from "./BlobStore.ts"

interface Kept {
  readonly bytes: Uint8Array
  readonly putAt: number
}

const make = () => {
  const blobs = new Map<BlobHash, Kept>()
  return BlobStore.of({
    put: (bytes) =>
      Effect.map(Clock.currentTimeMillis, (putAt) => {
        const hash = hashOf(bytes)
        blobs.set(hash, { bytes: bytes.slice(), putAt })
        return hash
      }),
    get: (hash) => Effect.sync(() => Option.map(Option.fromNullable(blobs.get(hash)), ({ bytes }) => bytes)),
    list: Effect.sync(() => [...blobs.keys()].toSorted()),
    sweep: (inUse, age) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const before = now - Duration.toMillis(age)
        const unused = [...blobs].filter(([hash, { putAt }]) => !inUse.has(hash) && putAt <= before)
        for (const [hash] of unused) blobs.delete(hash)
        const deletedBytes = unused.reduce((total, [, { bytes }]) => total + bytes.length, 0)
        return { deleted: unused.length, deletedBytes, kept: blobs.size }
      })
  })
}

/** No blobs. */
export const layer = Layer.sync(BlobStore, make)
