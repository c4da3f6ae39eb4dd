/** Judges single keywords of a tool's input schema; `SafeSchema.ts` repairs the whole. Pure. Spec: MC-682, MC-683. */
import { Predicate } from "effect"

/** `drop`: nothing is wrong, but not every provider accepts it. */
type Verdict = "keep" | "drop" | "wrong"

const when =
  (isRight: (value: unknown) => boolean) =>
  (value: unknown): Verdict =>
    isRight(value) ? "keep" : "wrong"

const isCount = (value: unknown): boolean => Predicate.isNumber(value) && Number.isInteger(value) && value >= 0

/** A regular expression as providers compile it. Long ones are not worth the risk. */
export const isPattern = (value: unknown): value is string => {
  if (!Predicate.isString(value) || value.length > 1_000) return false
  try {
    return new RegExp(value, "u").unicode
  } catch {
    return false
  }
}

const formats: ReadonlySet<unknown> = new Set([
  "date-time",
  "date",
  "time",
  "duration",
  "email",
  "hostname",
  "ipv4",
  "ipv6",
  "uri",
  "uuid"
])

const counts = ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"]

/** Keywords whose value has one right form; keywords that are not here are dropped or have code of their own. */
export const plainKeywords: ReadonlyMap<string, (value: unknown) => Verdict> = new Map([
  ["title", when(Predicate.isString)],
  ["description", when(Predicate.isString)],
  ["default", () => "keep" as const],
  ["examples", when(Array.isArray)],
  ["pattern", when(isPattern)],
  ["format", (value: unknown) => (formats.has(value) ? ("keep" as const) : ("drop" as const))],
  ["multipleOf", when((value) => Predicate.isNumber(value) && value > 0)],
  ["uniqueItems", when(Predicate.isBoolean)],
  ...counts.map((name) => [name, when(isCount)] as const)
])

const known = ["string", "number", "integer", "boolean", "object", "array", "null"] as const
type Type = (typeof known)[number]

/** Names of types in other languages. */
const synonyms: ReadonlyMap<string, Type> = new Map([
  ...known.map((type) => [type, type] as const),
  ["str", "string"],
  ["text", "string"],
  ["int", "integer"],
  ["long", "integer"],
  ["float", "number"],
  ["double", "number"],
  ["decimal", "number"],
  ["bool", "boolean"],
  ["list", "array"],
  ["tuple", "array"],
  ["dict", "object"],
  ["map", "object"],
  ["none", "null"]
])

/** The types that a `type` names; none if it names any or an unknown one. */
export const typesOf = (value: unknown): { readonly types: ReadonlyArray<Type>; readonly isWrong: boolean } => {
  if (value === undefined) return { types: [], isWrong: false }
  const names: ReadonlyArray<unknown> = Array.isArray(value) ? value : [value]
  const types = names.map((name) => (Predicate.isString(name) ? synonyms.get(name.toLowerCase()) : undefined))
  const right = types.filter(Predicate.isNotUndefined)
  const isWrong = names.length === 0 || right.some((type, at) => type !== names[at]) || right.length < names.length
  // An unknown type may be any: to name the others only would forbid it.
  return { types: right.length < names.length ? [] : [...new Set(right)], isWrong }
}

const typeOf = (value: unknown): ReadonlyArray<Type> => {
  if (value === null) return ["null"]
  if (Array.isArray(value)) return ["array"]
  switch (typeof value) {
    case "string":
      return ["string"]
    case "boolean":
      return ["boolean"]
    case "number":
      return Number.isInteger(value) ? ["integer", "number"] : ["number"]
    default:
      return ["object"]
  }
}

/** Whether a value has one of the types. */
export const fits = (value: unknown, types: ReadonlyArray<Type>): boolean =>
  typeOf(value).some((type) => types.includes(type))
