/**
 * Finds the places of an entry that hold pictures: image blocks in `content` arrays, as base64, and `image_url` strings,
 * as data URLs. Moves them out into blobs, and back. Pure. Spec: FM-81..FM-83 (PE-8).
 */
import { Predicate } from "effect"
import type { BlobHash } from "./BlobRef.ts"
import * as BlobRef from "./BlobRef.ts"

/** Base64 characters from which a picture becomes a blob. */
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
export const mapPictures = <A>(value: A, change: Change): A =>
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
    const hash = BlobRef.hashOf(bytes)
    blobs.set(hash, bytes)
    return BlobRef.refOf(hash)
  })
  return { value: moved, blobs }
}

/** The blobs that the pictures of a value refer to. */
export const blobsOf = (value: unknown): ReadonlySet<BlobHash> => {
  const found = new Set<BlobHash>()
  mapPictures(value, (text) => {
    const hash = BlobRef.parse(text)
    if (hash !== undefined) found.add(hash)
    return text
  })
  return found
}

/** Puts the pictures back. A blob that is not given stays a reference. */
export const internalize = <A>(value: A, blobs: ReadonlyMap<BlobHash, Uint8Array>): A =>
  mapPictures(value, (text, place) => {
    const hash = BlobRef.parse(text)
    const bytes = hash === undefined ? undefined : blobs.get(hash)
    if (bytes === undefined) return text
    return Buffer.from(bytes).toString(place === "content" ? "base64" : "utf8")
  })
