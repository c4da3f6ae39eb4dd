/**
 * Repairs a tool's input schema so that every provider accepts it: draft 2020-12, an object at the root, plain names, and
 * references that resolve. The server still validates the input by its own schema.
 * Pure and total. Spec: MC-11, MC-680..MC-687 in specs/tools.md.
 */
import { Predicate } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Values"

// Judges single keywords of a tool's input schema.

/** `drop`: nothing is wrong, but not every provider accepts it. */
type Verdict = "keep" | "drop" | "wrong"

const when =
  (isRight: (value: unknown) => boolean) =>
  (value: unknown): Verdict =>
    isRight(value) ? "keep" : "wrong"

const isCount = (value: unknown): boolean => Predicate.isNumber(value) && Number.isInteger(value) && value >= 0

/** A regular expression as providers compile it. Long ones are not worth the risk. */
const isPattern = (value: unknown): value is string => {
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
const plainKeywords: ReadonlyMap<string, (value: unknown) => Verdict> = new Map([
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
const typesOf = (value: unknown): { readonly types: ReadonlyArray<Type>; readonly isWrong: boolean } => {
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

const fits = (value: unknown, types: ReadonlyArray<Type>): boolean => typeOf(value).some((type) => types.includes(type))

export interface SafeSchema {
  readonly schema: JsonRecord
  /** Whether something was wrong with the schema. Dropping what only some providers refuse does not count. */
  readonly changed: boolean
  /** An input by `schema` under the names of the server. */
  readonly restoreInput: (input: JsonRecord) => JsonRecord
}

const limits = { depth: 40, definitions: 200, bytes: 64 * 1024 } as const

/** Property names that every provider accepts. */
const safeName = /^[a-zA-Z0-9_.-]{1,64}$/
const isSafe = (name: string): boolean => safeName.test(name) && name !== "__proto__"

/** The state of one repair. */
interface Repair {
  readonly root: unknown
  readonly taken: Set<string>
  /** Aliases by the server's names. */
  readonly aliases: Map<string, string>
  /** Names of definitions by pointer, in the order of their first use. */
  readonly definitions: Map<string, string>
  changed: boolean
}

const empty: JsonRecord = {}

const note = <A>(repair: Repair, value: A): A => {
  repair.changed = true
  return value
}

const own = (value: unknown, key: string): unknown =>
  (Predicate.isRecord(value) || Array.isArray(value)) && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined

const entriesOf = (value: unknown): ReadonlyArray<readonly [string, unknown]> =>
  Predicate.isRecord(value) ? Object.entries(value) : []

const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

const distinct = (values: ReadonlyArray<unknown>): ReadonlyArray<unknown> => [
  ...new Map(values.map((value) => [JSON.stringify(value), value])).values()
]

const anyOf = (schemas: ReadonlyArray<JsonRecord>): JsonRecord => {
  const [first = empty, ...others] = distinct(schemas).filter(Predicate.isRecord)
  return others.length === 0 ? first : { anyOf: [first, ...others] }
}

const unique = (wanted: string, taken: Set<string>): string => {
  const plain = wanted.replaceAll(/[^a-zA-Z0-9_.-]/g, "_").slice(0, 64) || "_"
  let name = plain
  for (let number = 2; taken.has(name) || !isSafe(name); number++) name = `${plain.slice(0, 58)}_${number}`
  taken.add(name)
  return name
}

const nameOf = (repair: Repair, name: string): string => {
  if (isSafe(name)) return name
  repair.changed = true
  const alias = repair.aliases.get(name) ?? unique(name, repair.taken)
  repair.aliases.set(name, alias)
  return alias
}

const decoded = (segment: string): string => {
  try {
    return decodeURIComponent(segment).replaceAll("~1", "/").replaceAll("~0", "~")
  } catch {
    return segment
  }
}

/** Where a reference leads, past references that only lead on. Undefined if it leads nowhere. */
const resolve = (root: unknown, ref: unknown): { readonly pointer: string; readonly target: unknown } | undefined => {
  const seen = new Set<string>()
  for (let next = ref; Predicate.isString(next) && !seen.has(next);) {
    seen.add(next)
    const path = /^#(?:\/|$)/.test(next) ? next.slice(1).split("/").slice(1).map(decoded) : undefined
    const found = path?.reduce(own, root) ?? definitionNamed(root, next)
    if (!Predicate.isRecord(found) && !Predicate.isBoolean(found)) return undefined
    const onward = own(found, "$ref")
    if (onward === undefined || found === root) return { pointer: next, target: found }
    next = onward
  }
  return undefined
}

/** A definition by its bare name, wherever the reference looks for it: `#/components/schemas/A`, `A`. */
const definitionNamed = (root: unknown, ref: string): unknown => {
  const name = decoded(/[^/#]*$/.exec(ref)?.[0] ?? "")
  return own(own(root, "$defs"), name) ?? own(own(root, "definitions"), name)
}

/** A reference to a definition of the repaired schema. */
const reference = (repair: Repair, ref: unknown): JsonRecord => {
  const found = resolve(repair.root, ref)
  if (found === undefined) return note(repair, empty)
  const known = repair.definitions.get(found.pointer)
  if (known === undefined && repair.definitions.size === limits.definitions) return note(repair, empty)
  const names = new Set(repair.definitions.values())
  const name = known ?? unique(/[^/#]*$/.exec(found.pointer)?.[0] || "root", names)
  repair.definitions.set(found.pointer, name)
  return { $ref: `#/$defs/${name}` }
}

/** A schema at any place but the root. In a branch of a choice, `required` may name properties from outside. */
const schemaOf = (repair: Repair, value: unknown, depth: number, isBranch = false): JsonRecord => {
  if (Predicate.isBoolean(value)) return value ? empty : { not: {} }
  if (Predicate.isString(value)) return note(repair, schemaOf(repair, { type: value }, depth))
  if (!Predicate.isRecord(value) || depth > limits.depth) return note(repair, empty)
  return {
    ...(value["$ref"] === undefined ? {} : reference(repair, value["$ref"])),
    ...plain(repair, value),
    ...bounds(repair, value),
    ...choices(repair, value, depth + 1),
    ...object(repair, value, depth + 1, isBranch),
    ...array(repair, value, depth + 1),
    ...typed(repair, value["type"], value)
  }
}

/** Keywords whose value has one right form. */
const plain = (repair: Repair, schema: JsonRecord): JsonRecord =>
  Object.fromEntries(
    entriesOf(schema).filter(([key, value]) => {
      const judge = plainKeywords.get(key)
      if (judge === undefined) return false
      const verdict = judge(value)
      if (verdict === "wrong") repair.changed = true
      return verdict === "keep"
    })
  )

/** Draft 4 wrote `exclusiveMinimum: true` beside `minimum`. */
const bounds = (repair: Repair, schema: JsonRecord): JsonRecord => {
  const bound = (inclusive: string, exclusive: string): JsonRecord => {
    const [limit, strict] = [schema[inclusive], schema[exclusive]]
    const kept = Predicate.isNumber(limit) ? limit : undefined
    if (kept === undefined && limit !== undefined) repair.changed = true
    if (Predicate.isNumber(strict)) return { ...(kept === undefined ? {} : { [inclusive]: kept }), [exclusive]: strict }
    if (strict !== undefined) repair.changed = true
    return kept === undefined ? {} : { [strict === true ? exclusive : inclusive]: kept }
  }
  return { ...bound("minimum", "exclusiveMinimum"), ...bound("maximum", "exclusiveMaximum") }
}

const combinators = ["allOf", "anyOf", "oneOf"] as const

const choices = (repair: Repair, schema: JsonRecord, depth: number): JsonRecord => {
  const several = combinators.flatMap((key) => {
    if (schema[key] === undefined) return []
    const branches = listOf(schema[key])
    if (branches.length === 0) return note(repair, [])
    return [[key, branches.map((each) => schemaOf(repair, each, depth, true))] as const]
  })
  const single = ["not", "if", "then", "else"].flatMap((key) =>
    schema[key] === undefined ? [] : [[key, schemaOf(repair, schema[key], depth, true)] as const]
  )
  return Object.fromEntries([...several, ...single])
}

const strings = (value: unknown): ReadonlyArray<string> => listOf(value).filter(Predicate.isString)

/** Names that a schema requires: draft 3 wrote `required: true` at the property, some put the list among them. */
const requiredOf = (repair: Repair, schema: JsonRecord): ReadonlyArray<string> => {
  const { properties, required } = schema
  if (required !== undefined && !Array.isArray(required) && !Predicate.isBoolean(required)) repair.changed = true
  const named = Predicate.isString(required) ? [required] : strings(required)
  const misplaced = isMisplaced(properties) ? strings(own(properties, "required")) : []
  const marked = entriesOf(properties).flatMap(([name, each]) => (own(each, "required") === true ? [name] : []))
  if (misplaced.length + marked.length > 0) repair.changed = true
  return [...new Set([...named, ...misplaced, ...marked])]
}

const isMisplaced = (properties: unknown): boolean => Array.isArray(own(properties, "required"))

const propertiesOf = (repair: Repair, value: unknown, depth: number): ReadonlyArray<readonly [string, JsonRecord]> => {
  if (value !== undefined && !Predicate.isRecord(value)) repair.changed = true
  return entriesOf(value).flatMap(([name, each]) => {
    if (name === "required" && isMisplaced(value)) return note(repair, [])
    const alias = nameOf(repair, name)
    const schema = schemaOf(repair, each, depth)
    if (alias === name) return [[name, schema] as const]
    const about = Predicate.isString(schema["description"]) ? ` ${schema["description"]}` : ""
    return [[alias, { ...schema, description: `Sent as ${JSON.stringify(name)}.${about}` }] as const]
  })
}

const object = (repair: Repair, schema: JsonRecord, depth: number, isBranch: boolean): JsonRecord => {
  const properties = propertiesOf(repair, schema["properties"], depth)
  const names = new Set(properties.map(([name]) => name))
  const wanted = requiredOf(repair, schema).map((name) => nameOf(repair, name))
  const required = wanted.filter((name) => isBranch || names.has(name))
  if (required.length < wanted.length) repair.changed = true
  return {
    ...(schema["properties"] === undefined ? {} : { properties: Object.fromEntries(properties) }),
    ...(required.length === 0 ? {} : { required }),
    ...others(repair, schema, depth)
  }
}

/** Which other properties are allowed. */
const others = (repair: Repair, schema: JsonRecord, depth: number): JsonRecord => {
  const { additionalProperties: additional, patternProperties } = schema
  const patterns = entriesOf(patternProperties).flatMap(([pattern, each]) =>
    isPattern(pattern) ? [[pattern, schemaOf(repair, each, depth)] as const] : note(repair, [])
  )
  return {
    ...(patterns.length === 0 ? {} : { patternProperties: Object.fromEntries(patterns) }),
    ...(additional === undefined
      ? {}
      : { additionalProperties: Predicate.isBoolean(additional) ? additional : schemaOf(repair, additional, depth) })
  }
}

const array = (repair: Repair, schema: JsonRecord, depth: number): JsonRecord => {
  const { contains, items, prefixItems } = schema
  if (Array.isArray(items)) repair.changed = true
  const tuple = [...listOf(prefixItems), ...listOf(items)]
  const rest = items === undefined || items === false || Array.isArray(items) ? [] : [items]
  const elements = [...tuple, ...rest].map((each) => schemaOf(repair, each, depth))
  const isArray = typesOf(schema["type"]).types.includes("array")
  return {
    ...(elements.length > 0 ? { items: anyOf(elements) } : isArray || items !== undefined ? { items: {} } : {}),
    ...(contains === undefined ? {} : { contains: schemaOf(repair, contains, depth) })
  }
}

/** The type, and the values that it permits. A value that does not fit the type could never be sent. */
const typed = (repair: Repair, value: unknown, schema: JsonRecord = empty): JsonRecord => {
  const { isWrong, types } = typesOf(value)
  if (isWrong) repair.changed = true
  const nullable = schema["nullable"] === true && types.length > 0 && !types.includes("null")
  const all = nullable ? [...types, "null" as const] : types
  const type = all.length === 0 ? {} : { type: all.length === 1 ? all[0] : all }
  const isConstant = Object.hasOwn(schema, "const")
  if (schema["enum"] === undefined && !isConstant) return type
  const given = isConstant ? [schema["const"]] : listOf(schema["enum"])
  const values = distinct(nullable && !isConstant ? [...given, null] : given)
  if (values.length === 0) return note(repair, type)
  const fitting = all.length === 0 ? values : values.filter((each) => fits(each, all))
  if (fitting.length < values.length) repair.changed = true
  const kept = fitting.length === 0 ? values : fitting
  return { ...(fitting.length === 0 ? {} : type), ...(isConstant ? { const: kept[0] } : { enum: kept }) }
}

/** A schema that contributes to the root. `isMandatory`: the input fulfils it in any case. */
type Part = { readonly schema: JsonRecord; readonly isMandatory: boolean }

/** The root schema, the schemas that it references, and the branches of its `anyOf` and `oneOf`. */
const partsOf = (root: unknown): ReadonlyArray<Part> => {
  const parts = new Map<unknown, Part>()
  const pending: Array<readonly [unknown, boolean]> = [[root, true]]
  for (let at = 0; at < pending.length; at++) {
    const [schema, isMandatory] = pending[at] ?? []
    if (!Predicate.isRecord(schema) || isMandatory === undefined || parts.has(schema)) continue
    parts.set(schema, { schema, isMandatory })
    if (schema["$ref"] !== undefined) pending.push([resolve(root, schema["$ref"])?.target, isMandatory])
    for (const each of listOf(schema["allOf"])) pending.push([each, isMandatory])
    for (const key of ["anyOf", "oneOf"]) for (const each of listOf(schema[key])) pending.push([each, false])
    for (const key of ["then", "else"]) pending.push([schema[key], false])
  }
  return [...parts.values()]
}

/** The root: an object with the properties of all parts, since some providers refuse choices there. */
const rootOf = (repair: Repair): JsonRecord => {
  const { root } = repair
  if (!Predicate.isRecord(root) && root !== true) return note(repair, { type: "object", properties: {} })
  const { isWrong, types } = typesOf(own(root, "type"))
  if (isWrong || (types.length > 0 && !types.includes("object"))) repair.changed = true
  if (Predicate.isRecord(root) && root["$ref"] !== undefined && resolve(root, root["$ref"]) === undefined) {
    repair.changed = true
  }
  const found = new Map<string, Array<JsonRecord>>()
  const required = new Set<string>()
  const mandatory = new Set<string>()
  const rest: Array<JsonRecord> = []
  for (const { isMandatory, schema } of partsOf(root)) {
    for (const [name, each] of propertiesOf(repair, schema["properties"], 1)) {
      // What holds in any case comes first, and a choice does not widen it.
      if (mandatory.has(name)) continue
      found.set(name, [...(found.get(name) ?? []), each])
      if (isMandatory) mandatory.add(name)
    }
    for (const name of requiredOf(repair, schema)) if (isMandatory) required.add(nameOf(repair, name))
    if (isMandatory) rest.push({ ...plain(repair, schema), ...others(repair, schema, 1) })
  }
  const names = [...required].filter((name) => found.has(name))
  if (names.length < required.size) repair.changed = true
  return {
    ...Object.assign({}, ...rest.toReversed()),
    type: "object",
    properties: Object.fromEntries([...found].map(([name, schemas]) => [name, anyOf(schemas)])),
    ...(names.length === 0 ? {} : { required: names })
  }
}

/** The referenced definitions, directly or through others. */
const definitionsOf = (repair: Repair): JsonRecord => {
  const all = new Map<string, JsonRecord>()
  // The map grows while it is read.
  for (const [pointer, name] of repair.definitions) {
    all.set(name, schemaOf(repair, resolve(repair.root, pointer)?.target, 0))
  }
  return all.size === 0 ? {} : { $defs: Object.fromEntries(all) }
}

/** All keys of a value, at any depth. */
const keysOf = (root: unknown): Set<string> => {
  const keys = new Set<string>()
  const pending: Array<unknown> = [root]
  for (let at = 0; at < pending.length; at++) {
    const value = pending[at]
    for (const each of listOf(value)) pending.push(each)
    for (const [key, each] of entriesOf(value)) {
      keys.add(key)
      pending.push(each)
    }
  }
  return keys
}

/** Repairs any JSON value that a server gives as a schema. */
export const sanitise = (root: unknown): SafeSchema => {
  const repair: Repair = {
    root,
    taken: keysOf(root),
    aliases: new Map(),
    definitions: new Map(),
    changed: false
  }
  const schema = { ...rootOf(repair), ...definitionsOf(repair) }
  if (Buffer.byteLength(JSON.stringify(schema)) > limits.bytes) {
    return { schema: { type: "object", properties: {} }, changed: true, restoreInput: (input) => input }
  }
  const originals = new Map([...repair.aliases].map(([name, alias]) => [alias, name]))
  return {
    schema,
    changed: repair.changed,
    restoreInput: (input) =>
      originals.size === 0 ? input : restoredRecord(input, [schema], { originals, root: schema })
  }
}

type Names = { readonly originals: ReadonlyMap<string, string>; readonly root: JsonRecord }

/** The schemas that may describe a value: references and choices are followed. */
const applicable = (schemas: ReadonlyArray<unknown>, root: JsonRecord): ReadonlyArray<JsonRecord> => {
  const all = new Set<JsonRecord>()
  const pending = [...schemas]
  for (let at = 0; at < pending.length; at++) {
    const schema = pending[at]
    if (!Predicate.isRecord(schema) || all.has(schema)) continue
    all.add(schema)
    pending.push(resolve(root, schema["$ref"])?.target, schema["then"], schema["else"])
    for (const key of combinators) pending.push(...listOf(schema[key]))
  }
  return [...all]
}

const restored = (value: unknown, schemas: ReadonlyArray<unknown>, names: Names): unknown => {
  if (Array.isArray(value)) {
    const items = applicable(schemas, names.root).map(({ items }) => items)
    return value.map((each) => restored(each, items, names))
  }
  return Predicate.isRecord(value) ? restoredRecord(value, schemas, names) : value
}

const restoredRecord = (value: JsonRecord, schemas: ReadonlyArray<unknown>, names: Names): JsonRecord => {
  const all = applicable(schemas, names.root)
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => {
      const described = all.flatMap(({ properties }) => own(properties, key) ?? [])
      // A pattern is not tried: a server could choose one that takes forever.
      const others = all.flatMap(({ additionalProperties, patternProperties }) => [
        additionalProperties,
        ...entriesOf(patternProperties).map(([, of]) => of)
      ])
      const name = described.length > 0 ? (names.originals.get(key) ?? key) : key
      return [name, restored(each, described.length > 0 ? described : others, names)] as const
    })
  )
}
