/**
 * The difference between two JSON values that keeps the order of fields: applied to the first value, it gives the
 * second one, byte for byte as compact JSON. A long text that the first value holds is referred to, not repeated. Pure.
 * Spec: IM-21.
 */
import { Either, ParseResult, Predicate, Schema } from "effect"
import { JsonValue } from "@daybook/log/domain/Json"
import { optional } from "@daybook/log/support/Optional"

// Refers to long texts of another value in place of repeating them: a text that equals one, is a part of one, or
// contains one.

/** A shorter text is repeated: a reference to it would be as long. */
const shortest = 48

/** A part of a text: the text's index among the texts of the other value, from, to (UTF-16 code units). */
export const Piece = Schema.Union(
  Schema.String,
  Schema.Tuple(Schema.NonNegativeInt, Schema.NonNegativeInt, Schema.NonNegativeInt)
)

/** A text in pieces: as they are, or borrowed. */
const Pieces = Schema.Array(Piece)
export type Borrowed = typeof Pieces.Type

/** The long texts of a value, in order. */
export type Lender = () => ReadonlyArray<string>

const collect = (value: unknown, into: Array<string>): void => {
  if (typeof value === "string") {
    if (value.length >= shortest) into.push(value)
  } else if (typeof value === "object" && value !== null) for (const item of Object.values(value)) collect(item, into)
}

/** The texts of a value, collected when the first one is needed. */
const lend = (value: unknown): Lender => {
  let texts: Array<string> | undefined
  return () => {
    if (texts === undefined) collect(value, (texts = []))
    return texts
  }
}

/** The text in pieces; undefined if there is nothing to borrow. */
const borrowedText = (text: string, lender: Lender): Borrowed | undefined => {
  if (text.length < shortest) return undefined
  const texts = lender()
  const whole = texts.indexOf(text)
  if (whole >= 0) return [[whole, 0, text.length]]
  for (const [index, lent] of texts.entries()) {
    if (lent.length > text.length) {
      const from = lent.indexOf(text)
      if (from >= 0) return [[index, from, from + text.length]]
      continue
    }
    const at = text.indexOf(lent)
    if (at < 0) continue
    const before = text.slice(0, at)
    const after = text.slice(at + lent.length)
    return [...(before === "" ? [] : [before]), [index, 0, lent.length], ...(after === "" ? [] : [after])]
  }
  return undefined
}

const restored = (pieces: Borrowed, lender: Lender): string =>
  pieces
    .map((piece) => (typeof piece === "string" ? piece : (lender()[piece[0]] ?? "").slice(piece[1], piece[2])))
    .join("")

export type Json = null | boolean | number | string | ReadonlyArray<Json> | JsonObject
export interface JsonObject {
  readonly [key: string]: Json
}

type Literal =
  | { readonly is: unknown }
  | { readonly text: Borrowed }
  | { readonly list: ReadonlyArray<Literal> }
  | { readonly object: ReadonlyArray<readonly [key: string, value: Literal]> }

/** What turns a value into another one; the fields are short because sessions store one for almost every record. */
export type Difference =
  | Literal
  /** The second object lacks the fields of `cut`, has others in `at`, and new ones in `new` at an index of its fields. */
  | {
      readonly cut?: ReadonlyArray<string>
      readonly at?: ReadonlyArray<readonly [key: string, difference: Difference]>
      readonly new?: ReadonlyArray<readonly [index: number, key: string, value: Literal]>
    }
  /** The second array has `size` items, others than the first one at the indexes in `items`, and `more` at its end. */
  | {
      readonly size: number
      readonly items?: ReadonlyArray<readonly [index: number, difference: Difference]>
      readonly more?: ReadonlyArray<Literal>
    }

const Literal: Schema.Schema<Literal> = Schema.Union(
  Schema.Struct({ text: Pieces }),
  Schema.Struct({ list: Schema.Array(Schema.suspend(() => Literal)) }),
  Schema.Struct({
    object: Schema.Array(
      Schema.Tuple(
        Schema.String,
        Schema.suspend(() => Literal)
      )
    )
  }),
  Schema.Struct({ is: JsonValue })
)

const inner: Schema.Schema<Difference> = Schema.suspend(() => Difference)

/** The stored form. */
export const Difference: Schema.Schema<Difference> = Schema.Union(
  Schema.Struct({
    cut: optional(Schema.Array(Schema.String)),
    at: optional(Schema.Array(Schema.Tuple(Schema.String, inner))),
    new: optional(Schema.Array(Schema.Tuple(Schema.NonNegativeInt, Schema.String, Literal)))
  }),
  Schema.Struct({
    size: Schema.NonNegativeInt,
    items: optional(Schema.Array(Schema.Tuple(Schema.NonNegativeInt, inner))),
    more: optional(Schema.Array(Literal))
  }),
  Literal
)

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => Predicate.isReadonlyRecord(value)

const literal = (value: unknown, lender: Lender): Literal => {
  if (typeof value === "string") {
    const text = borrowedText(value, lender)
    return text === undefined ? { is: value } : { text }
  }
  if (Array.isArray(value)) {
    const list = value.map((item) => literal(item, lender))
    return list.every((item) => "is" in item) ? { is: value } : { list }
  }
  if (!isObject(value)) return { is: value }
  const object = Object.entries(value).map(([key, item]) => [key, literal(item, lender)] as const)
  return object.every(([, item]) => "is" in item) ? { is: value } : { object }
}

/** Whether the keys that both objects have are in the same order. */
const sameOrder = (before: Readonly<Record<string, unknown>>, after: Readonly<Record<string, unknown>>): boolean => {
  const kept = Object.keys(before).filter((key) => Object.hasOwn(after, key))
  let at = 0
  for (const key of Object.keys(after)) if (key === kept[at]) at += 1
  return at === kept.length
}

const differentArrays = (
  before: ReadonlyArray<unknown>,
  after: ReadonlyArray<unknown>,
  lender: Lender
): Difference | undefined => {
  const items = after.slice(0, before.length).flatMap((item, index) => {
    const difference = differentFrom(before[index], item, lender)
    return difference === undefined ? [] : [[index, difference] as const]
  })
  const more = after.slice(before.length).map((item) => literal(item, lender))
  if (items.length === 0 && after.length === before.length) return undefined
  return {
    size: after.length,
    ...(items.length === 0 ? {} : { items }),
    ...(more.length === 0 ? {} : { more })
  }
}

const differentObjects = (
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
  lender: Lender
): Difference | undefined => {
  if (!sameOrder(before, after)) return literal(after, lender)
  const cut = Object.keys(before).filter((key) => !Object.hasOwn(after, key))
  const at: Array<readonly [string, Difference]> = []
  const added: Array<readonly [number, string, Literal]> = []
  for (const [index, [key, value]] of Object.entries(after).entries()) {
    if (!Object.hasOwn(before, key)) {
      added.push([index, key, literal(value, lender)])
      continue
    }
    const difference = differentFrom(before[key], value, lender)
    if (difference !== undefined) at.push([key, difference])
  }
  if (cut.length + at.length + added.length === 0) return undefined
  return {
    ...(cut.length === 0 ? {} : { cut }),
    ...(at.length === 0 ? {} : { at }),
    ...(added.length === 0 ? {} : { new: added })
  }
}

const differentFrom = (before: unknown, after: unknown, lender: Lender): Difference | undefined => {
  if (before === after) return undefined
  if (Array.isArray(before) && Array.isArray(after)) return differentArrays(before, after, lender)
  if (isObject(before) && isObject(after)) return differentObjects(before, after, lender)
  return literal(after, lender)
}

/** What turns `before` into `after`; undefined if both are the same compact JSON. */
export const difference = (before: Json, after: Json): Difference | undefined =>
  differentFrom(before, after, lend(before))

const valueOf = (given: Literal, lender: Lender): unknown => {
  if ("text" in given) return restored(given.text, lender)
  if ("list" in given) return given.list.map((item) => valueOf(item, lender))
  if ("object" in given) return Object.fromEntries(given.object.map(([key, item]) => [key, valueOf(item, lender)]))
  return given.is
}

const changed = (before: unknown, given: Difference, lender: Lender): unknown => {
  if ("text" in given || "list" in given || "object" in given || "is" in given) return valueOf(given, lender)
  if ("size" in given) {
    const kept: Array<unknown> = Array.isArray(before) ? before.slice(0, given.size) : []
    for (const [index, difference] of given.items ?? []) kept[index] = changed(kept[index], difference, lender)
    return [...kept, ...(given.more ?? []).map((item) => valueOf(item, lender))]
  }
  const cut = new Set(given.cut)
  const at = new Map(given.at)
  const fields = Object.entries(isObject(before) ? before : {}).flatMap(([key, value]): Array<[string, unknown]> => {
    if (cut.has(key)) return []
    const difference = at.get(key)
    return [[key, difference === undefined ? value : changed(value, difference, lender)]]
  })
  for (const [index, key, value] of given.new ?? []) fields.splice(index, 0, [key, valueOf(value, lender)])
  return Object.fromEntries(fields)
}

/** Without other fields, one of the forms fits. */
const decode = ParseResult.decodeUnknownEither(Difference, { onExcessProperty: "error" })

/** Applies a stored difference; the reason if it is none. */
export const apply = (before: Json, stored: unknown): Either.Either<unknown, string> =>
  decode(stored).pipe(
    Either.mapBoth({
      onLeft: ParseResult.TreeFormatter.formatIssueSync,
      onRight: (given) => changed(before, given, lend(before))
    })
  )
