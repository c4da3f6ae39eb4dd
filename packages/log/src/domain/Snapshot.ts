/**
 * What each context source told the model last, and how a change is stored. The event of a change also holds the text
 * that the model reads, so a long string is stored as its place in this text, or in the earlier snapshot if the string
 * did not change. Pure. Spec: CX-4, CX-52 in specs/context.md.
 */
import { Schema } from "effect"
import { JsonValue } from "./Json.ts"
import { optional } from "../support/Optional.ts"

/** The value of each source in stored form, by key; `removed` is the text that revokes it, rendered in advance. */
export const Snapshot = Schema.Record({
  key: Schema.String,
  value: Schema.Struct({ value: JsonValue, removed: optional(Schema.String) })
})
export type Snapshot = typeof Snapshot.Type

/** The way to a string: the source's key, then indexes and fields within its value. */
const ValuePath = Schema.Array(Schema.Union(Schema.String, Schema.NonNegativeInt))
type ValuePath = typeof ValuePath.Type

/** The string at `at` is part of the event's text, or the string that the earlier snapshot had at `was`. */
const Quote = Schema.Union(
  Schema.Struct({ at: ValuePath, from: Schema.NonNegativeInt, to: Schema.NonNegativeInt }),
  Schema.Struct({ at: ValuePath, was: ValuePath })
)
type Quote = typeof Quote.Type

/** A change of a snapshot: the sources whose value is new, null in place of quoted strings, and the keys that are gone. */
export const SnapshotChange = Schema.Struct({
  told: Snapshot,
  quotes: optional(Schema.Array(Quote)),
  gone: optional(Schema.Array(Schema.String))
})
export type SnapshotChange = typeof SnapshotChange.Type

/** A shorter string takes less room than its place. */
const quotable = 96

const isLong = (leaf: unknown): leaf is string => typeof leaf === "string" && leaf.length >= quotable

const mapLeaves = (value: unknown, replace: (leaf: unknown, at: ValuePath) => unknown, at: ValuePath): unknown =>
  Array.isArray(value)
    ? value.map((item, index) => mapLeaves(item, replace, [...at, index]))
    : typeof value === "object" && value !== null
      ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapLeaves(item, replace, [...at, key])]))
      : replace(value, at)

const mapValues = (snapshot: Snapshot, replace: (leaf: unknown, at: ValuePath) => unknown): Snapshot =>
  Object.fromEntries(
    Object.entries(snapshot).map(([key, told]) => [key, { ...told, value: mapLeaves(told.value, replace, [key]) }])
  )

/** The long strings of a snapshot, with their places. */
const longStrings = (snapshot: Snapshot): ReadonlyArray<readonly [text: string, at: ValuePath]> => {
  const found: Array<readonly [string, ValuePath]> = []
  mapValues(snapshot, (leaf, at) => isLong(leaf) && found.push([leaf, at]))
  return found
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

export const sameSnapshot = (a: Snapshot, b: Snapshot): boolean =>
  Object.keys(a).length === Object.keys(b).length && Object.entries(a).every(([key, told]) => same(told, b[key]))

/** The change from `before` to `next`, for an event with this text. */
export const difference = (before: Snapshot, next: Snapshot, text: string): SnapshotChange => {
  const earlier = new Map(longStrings(before))
  const quotes: Array<Quote> = []
  const quote = (leaf: unknown, at: ValuePath): unknown => {
    if (!isLong(leaf)) return leaf
    const [from, was] = [text.indexOf(leaf), earlier.get(leaf)]
    if (from >= 0) quotes.push({ at, from, to: from + leaf.length })
    else if (was !== undefined) quotes.push({ at, was })
    else return leaf
    return null
  }
  const told = Object.fromEntries(Object.entries(next).filter(([key, told]) => !same(told, before[key])))
  const gone = Object.keys(before).filter((key) => next[key] === undefined)
  return {
    told: mapValues(told, quote),
    ...(quotes.length === 0 ? {} : { quotes }),
    ...(gone.length === 0 ? {} : { gone })
  }
}

/** The snapshot after a change: the inverse of `difference`. */
export const advance = (before: Snapshot, change: SnapshotChange, text: string): Snapshot => {
  const { gone = [], quotes = [], told } = change
  const nameOf = (at: ValuePath) => JSON.stringify(at)
  const earlier = new Map(longStrings(before).map(([text, at]) => [nameOf(at), text]))
  const quoted = new Map(
    quotes.map((quote) => [
      nameOf(quote.at),
      "was" in quote ? earlier.get(nameOf(quote.was)) : text.slice(quote.from, quote.to)
    ])
  )
  const whole = (leaf: unknown, at: ValuePath) => (leaf === null ? (quoted.get(nameOf(at)) ?? null) : leaf)
  const kept = Object.entries(before).filter(([key]) => !gone.includes(key))
  return { ...Object.fromEntries(kept), ...mapValues(told, whole) }
}
