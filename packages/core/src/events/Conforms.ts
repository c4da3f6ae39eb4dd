/**
 * Schemas compiled to plain predicates, for payloads whose encoded form is their decoded form. A payload that conforms
 * needs no decoding; one that does not goes to the schema's own decoder, which says why. Appending and replaying check
 * every event, so that this is where the log's time goes. Spec: EV-D4.
 */
import { Option, SchemaAST as AST } from "effect"

/** True only if decoding, and encoding, would give back the same value. False says nothing. */
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
  return (value) => {
    if (!isObject(value)) return false
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
    // A field that the schema does not name would be dropped: not the same value.
    for (const _ in value) found -= 1
    return found === 0
  }
}

const record = (ast: AST.TypeLiteral): Conforms => {
  const [signature] = ast.indexSignatures
  if (signature === undefined || ast.indexSignatures.length > 1) return never
  if (!AST.isStringKeyword(signature.parameter)) return never
  const conforms = compile(signature.type)
  return (value) => isObject(value) && Object.values(value).every(conforms)
}

/** Compiles a schema's syntax tree. What it does not know, it never calls conforming. */
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
      return (value) => from(value) && Option.isNone(ast.filter(value, {}, ast))
    }
    case "Union": {
      const members = ast.types.map(compile)
      return (value) => members.some((conforms) => conforms(value))
    }
    case "TupleType": {
      const [rest] = ast.rest
      if (rest === undefined || ast.elements.length > 0 || ast.rest.length > 1) return never
      const conforms = compile(rest.type)
      // `every` passes over holes, which JSON makes null.
      return (value) => Array.isArray(value) && value.every((item) => conforms(item)) && !value.includes(undefined)
    }
    case "TypeLiteral":
      return ast.indexSignatures.length === 0 ? struct(ast) : ast.propertySignatures.length === 0 ? record(ast) : never
    default:
      return never
  }
}
