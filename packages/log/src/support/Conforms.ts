/**
 * Compiles schemas to plain predicates, for payloads whose encoded form is their decoded form. A conforming payload
 * needs no decoding; any other goes to the schema's decoder, which reports the error. Every append and replay checks
 * every event, so speed matters most here. Spec: EV-D4.
 */
import { SchemaAST as AST, Option, Predicate, Schema } from "effect"

/** True only if decoding and encoding would return the same value. False means unknown. */
export type Conforms = (value: unknown) => boolean

const never: Conforms = () => false

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const struct = (ast: AST.TypeLiteral): Conforms => {
  const fields = ast.propertySignatures.map(({ isOptional, name, type }) => ({
    name: String(name),
    isOptional,
    conforms: compile(type)
  }))
  const inAnyOrder = (value: Record<string, unknown>): boolean => {
    let found = 0
    for (const { conforms, isOptional, name } of fields) {
      const field = value[name]
      if (field === undefined && !(name in value)) {
        if (isOptional) continue
        return false
      }
      if (!conforms(field)) return false
      found += 1
    }
    // Decoding drops unknown fields, so the value would not stay the same.
    for (const _ in value) found -= 1
    return found === 0
  }
  // Fields usually come in the schema's order. Reading a field while its name is enumerated is faster than by its name.
  return (value) => {
    if (!isObject(value)) return false
    let next = 0
    for (const name in value) {
      while (fields[next]?.isOptional === true && fields[next]?.name !== name) next += 1
      const field = fields[next]
      if (field?.name !== name) return inAnyOrder(value)
      if (!field.conforms(value[name])) return false
      next += 1
    }
    while (fields[next]?.isOptional === true) next += 1
    return next === fields.length
  }
}

const record = (ast: AST.TypeLiteral): Conforms => {
  const [signature] = ast.indexSignatures
  if (signature === undefined || ast.indexSignatures.length > 1) return never
  if (!AST.isStringKeyword(signature.parameter)) return never
  const conforms = compile(signature.type)
  return (value) => isObject(value) && Object.values(value).every(conforms)
}

/** The regular expression of `Schema.pattern`. One with state between its tests is left to the filter. */
const regexOf = ({ annotations }: AST.Refinement): RegExp | undefined => {
  const pattern = annotations[Schema.PatternSchemaId]
  if (!Predicate.hasProperty(pattern, "regex")) return undefined
  const { regex } = pattern
  return regex instanceof RegExp && !regex.global && !regex.sticky ? regex : undefined
}

/** Matches strings. Neighbouring events often hold the same id, so the last match is kept. */
const matches = (regex: RegExp, from: Conforms): Conforms => {
  let last: string | undefined
  return (value) => {
    if (value === last && last !== undefined) return true
    if (typeof value !== "string" || !regex.test(value) || !from(value)) return false
    last = value
    return true
  }
}

/** Compiles a schema's AST. Nothing conforms to an AST node that it does not support. */
export const compile = (ast: AST.AST): Conforms => {
  switch (ast._tag) {
    case "StringKeyword":
      return (value) => typeof value === "string"
    case "NumberKeyword":
      return (value) => typeof value === "number"
    case "BooleanKeyword":
      return (value) => typeof value === "boolean"
    case "UnknownKeyword":
      return () => true
    case "Literal":
      return (value) => value === ast.literal
    case "Refinement": {
      const from = compile(ast.from)
      const regex = regexOf(ast)
      // A refinement's filter allocates for every value; the expression that it runs does not.
      return regex === undefined
        ? (value) => from(value) && Option.isNone(ast.filter(value, {}, ast))
        : matches(regex, from)
    }
    case "Union": {
      const members = ast.types.map(compile)
      return (value) => members.some((conforms) => conforms(value))
    }
    case "TupleType": {
      const [rest] = ast.rest
      if (rest === undefined || ast.elements.length > 0 || ast.rest.length > 1) return never
      const conforms = compile(rest.type)
      // `every` skips holes, which JSON turns into null.
      return (value) => Array.isArray(value) && value.every((item) => conforms(item)) && !value.includes(undefined)
    }
    case "TypeLiteral":
      return ast.indexSignatures.length === 0 ? struct(ast) : ast.propertySignatures.length === 0 ? record(ast) : never
    default:
      return never
  }
}
