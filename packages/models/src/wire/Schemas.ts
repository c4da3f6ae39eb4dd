/**
 * A tool's schema in the flavour of Kimi's servers, which reject a request for one schema without a type: each schema has a
 * type, or is a choice or a reference and nothing beside it. Allows what the schema allows, or more. Pure.
 * Spec: MD-791 in specs/models.md.
 */
import { Predicate } from "effect"
import { type Json, list, record } from "./Json.ts"

const schemaMaps = ["properties", "patternProperties", "$defs", "definitions"]
const schemaLists = ["anyOf", "oneOf", "allOf", "prefixItems"]
const schemas = ["items", "additionalProperties"]

/** Keywords that tell the type of what they judge. */
const tells: ReadonlyArray<readonly [type: string, RegExp]> = [
  ["object", /^(?:properties|required|additionalProperties|patternProperties)$/],
  ["array", /^(?:items|prefixItems|minItems|maxItems|uniqueItems)$/],
  ["string", /^(?:pattern|format|minLength|maxLength)$/],
  ["number", /^(?:minimum|maximum|exclusiveMinimum|exclusiveMaximum|multipleOf)$/]
]

const plain = ["string", "number", "boolean", "object", "null"].map((type) => ({ type }))
const anything = [...plain, { type: "array", items: { anyOf: plain } }]

const typeOf = (value: unknown): string => {
  if (value === null) return "null"
  if (Array.isArray(value)) return "array"
  return Number.isInteger(value) ? "integer" : typeof value
}

const known = new WeakMap<Json, Json>()

export const typedSchema = (schema: Json): Json => {
  const made = known.get(schema) ?? typed(Object.keys(schema).length === 0 ? { type: "object" } : schema)
  known.set(schema, made)
  return made
}

const typed = (value: unknown): Json => {
  const { allOf, ...others } = record(value)
  const [only, ...more] = list(allOf)
  const schema = only === undefined || more.length > 0 ? record(value) : { ...others, ...record(only) }
  if (schema["$ref"] !== undefined) {
    const { $defs, $ref, definitions } = schema
    return within(
      Object.fromEntries(Object.entries({ $ref, $defs, definitions }).filter(([, one]) => one !== undefined))
    )
  }
  const { anyOf, oneOf, type, ...rest } = schema
  const branches = list(anyOf ?? oneOf)
  if (branches.length === 0) return within(type === undefined ? { ...rest, ...inferred(rest) } : { type, ...rest })
  // Beside properties, a choice only says which of them go together.
  if ("properties" in rest) return within({ type: type ?? "object", ...rest })
  return within({ ...rest, anyOf: branches.map((one) => (type === undefined ? one : { type, ...record(one) })) })
}

/** The type of a schema that has none, or a choice of types. */
const inferred = (schema: Json): Json => {
  const values = "const" in schema ? [schema["const"]] : list(schema["enum"])
  const types = [...new Set(values.map(typeOf))]
  if (types.length > 1) {
    const branches = types.map((type) => ({ type, enum: values.filter((one) => typeOf(one) === type) }))
    return { enum: undefined, anyOf: branches }
  }
  const [told] = tells.find(([, keyword]) => Object.keys(schema).some((name) => keyword.test(name))) ?? []
  const type = types[0] ?? told
  return type === undefined ? { anyOf: anything } : { type }
}

const within = (schema: Json): Json =>
  Object.fromEntries(
    Object.entries(schema).flatMap(([name, value]) => {
      if (value === undefined) return []
      if (schemaMaps.includes(name)) {
        return [[name, Object.fromEntries(Object.entries(record(value)).map(([key, one]) => [key, typed(one)]))]]
      }
      if (schemaLists.includes(name)) return [[name, list(value).map(typed)]]
      return [[name, schemas.includes(name) && Predicate.isRecord(value) ? typed(value) : value]]
    })
  )
