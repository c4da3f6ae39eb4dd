/**
 * Moves the pictures of entries between blobs and lines, and finds the blobs that logs refer to; a sweep deletes all
 * other blobs. Spec: FM-81..FM-86 in specs/formats.md (PE-8, PE-9).
 */
import { Duration, Effect, Option, Predicate, Stream } from "effect"
import { SessionStorage, type StorageFailed } from "../storage/SessionStorage.ts"
import { allIn, type BlobHash, BlobStore, hashOf, parseRef, refLength, refOf } from "./BlobStore.ts"

// Moves the pictures of an entry out into blobs, and back.

export const blobThreshold = 1024

/** Replaces the picture's text; the same text keeps it. */
type Change = (text: string, place: "content" | "image_url") => string

const isImage = (value: unknown): value is { readonly type: "image"; readonly data: string } =>
  Predicate.isRecord(value) && value["type"] === "image" && typeof value["data"] === "string"

const mapped = (value: unknown, change: Change, key?: string): unknown => {
  if (typeof value === "string") return key === "image_url" ? change(value, "image_url") : value
  if (Array.isArray(value)) {
    const items = value.map((item: unknown) => {
      if (key !== "content" || !isImage(item)) return mapped(item, change)
      const data = change(item.data, "content")
      return data === item.data ? item : { ...item, data }
    })
    return items.some((item, at) => item !== value[at]) ? items : value
  }
  if (!Predicate.isRecord(value)) return value
  const fields = Object.entries(value).map(([name, field]) => [name, mapped(field, change, name)] as const)
  return fields.some(([name, field]) => field !== value[name]) ? Object.fromEntries(fields) : value
}

/** The value with its pictures changed; the same value if none changed. */
const mapPictures = <A>(value: A, change: Change): A =>
  // A text takes the place of a text: the type stays.
  mapped(value, change) as A

const dataUrl = /^data:image\/[^,]*;base64,/

/** The bytes that replace a picture's text: undefined if the text stays where it is. */
const bytesOf: (...parameters: Parameters<Change>) => Uint8Array | undefined = (text, place) => {
  if (place === "image_url") return dataUrl.test(text) ? Buffer.from(text) : undefined
  if (text.length < blobThreshold) return undefined
  const bytes = Buffer.from(text, "base64")
  // Other padding or another alphabet would not come back as it was.
  return bytes.toString("base64") === text ? bytes : undefined
}

/** Moves the pictures of a value out: the value with references, and the bytes of each blob. */
export const externalize = <A>(value: A) => {
  const blobs = new Map<BlobHash, Uint8Array>()
  const moved = mapPictures(value, (text, place) => {
    const bytes = bytesOf(text, place)
    if (bytes === undefined) return text
    const hash = hashOf(bytes)
    blobs.set(hash, bytes)
    return refOf(hash)
  })
  return { value: moved, blobs }
}

/** The blobs that the pictures of a value refer to. */
export const blobsOf = (value: unknown): ReadonlySet<BlobHash> => {
  const found = new Set<BlobHash>()
  mapPictures(value, (text) => {
    const hash = parseRef(text)
    if (hash !== undefined) found.add(hash)
    return text
  })
  return found
}

/** Puts the pictures back. A blob that is not given stays a reference. */
export const internalize = <A>(value: A, blobs: ReadonlyMap<BlobHash, Uint8Array>): A =>
  mapPictures(value, (text, place) => {
    const hash = parseRef(text)
    const bytes = hash === undefined ? undefined : blobs.get(hash)
    if (bytes === undefined) return text
    return Buffer.from(bytes).toString(place === "content" ? "base64" : "utf8")
  })

/** Stores the pictures of an entry as blobs; returns the entry with references. */
export const moveOut = Effect.fnUntraced(function* <A>(entry: A): Effect.fn.Return<A, StorageFailed, BlobStore> {
  const { blobs, value } = externalize(entry)
  if (blobs.size === 0) return entry
  const store = yield* BlobStore
  for (const bytes of blobs.values()) yield* store.put(bytes)
  return value
})

/** The entry with its pictures, and the blobs that are missing or damaged: their references stay. */
export const moveIn = Effect.fnUntraced(function* <A>(entry: A) {
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
export const references = Effect.fn("BlobUse.references")(function* (logs: Iterable<string>) {
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
const sweepAge = Duration.hours(1)

/** Deletes the blobs that none of these logs refers to; nothing, if a log cannot be read. Name every log. */
export const sweep = Effect.fn("BlobUse.sweep")(function* (logs: Iterable<string>, age: Duration.Duration = sweepAge) {
  const counts = yield* references(logs)
  return yield* Effect.flatMap(BlobStore, (store) => store.sweep(new Set(counts.keys()), age))
})
