/** TypeScript's types of the API, from its document. Values are as the client gives them. Pure. Spec: PA-501 in specs/packages.md. */

/** What the client decodes to a value that JSON does not have. */
const decoded = { URL: "URL", Uint8ArrayFromBase64: "Uint8Array" }

const place = "#/components/schemas/"

/** `session.next.renamed` is no name of a type. */
const nameOf = (name) => name.replaceAll(/(?:^|\.)(\w)/g, (_, letter) => letter.toUpperCase())

const comment = (text, indent) => (text === undefined ? "" : `${indent}/** ${text.replaceAll("*/", "* /")} */\n`)

const key = (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name))

/** What may be absent. An answer may have it as undefined too; arguments are checked exactly. */
const absent = { arguments: "", answers: " | undefined" }

/** The fields of an object, and those with any other name. */
const objectOf = (of, { additionalProperties, patternProperties = {}, properties = {}, required = [] }, indent) => {
  const inner = `${indent}  `
  const fields = Object.entries(properties).map(([name, field]) => {
    const [mark, or] = required.includes(name) ? ["", ""] : ["?", absent[of]]
    return `${comment(field.description, inner)}${inner}readonly ${key(name)}${mark}: ${typeOf(of, field, inner)}${or}`
  })
  const others = [...Object.values(patternProperties), additionalProperties].filter(
    (each) => typeof each === "object" && each !== null
  )
  const open = others.map((each) => `{ readonly [name: string]: ${typeOf(of, each, indent)}${absent[of]} }`)
  if (fields.length === 0) return open.length > 0 ? open.join(" & ") : "{}"
  return [`{\n${fields.join("\n")}\n${indent}}`, ...open].join(" & ")
}

const unionOf = (of, schemas, indent) => {
  const types = [...new Set(schemas.map((each) => typeOf(of, each, indent)))]
  return types.length === 1 ? types[0] : `(${types.join(" | ")})`
}

/** What an object stands around: its only field, which the client decodes, takes its place. */
const inside = ({ properties = {} }) => {
  const [field, ...more] = Object.values(properties)
  return more.length > 0 ? undefined : decoded[field?.$ref?.slice(place.length)]
}

/** The type of a schema, of arguments or answers. */
const typeOf = (of, schema, indent = "") => {
  const { $ref, anyOf, contentSchema, enum: values, items, oneOf, type } = schema
  if ($ref !== undefined) return decoded[$ref.slice(place.length)] ?? nameOf($ref.slice(place.length))
  // Numbers that a schema lists are versions, of which there may be more.
  if (values?.every(Number.isInteger)) return "number"
  if (values !== undefined) return values.map((value) => JSON.stringify(value)).join(" | ")
  if (anyOf !== undefined || oneOf !== undefined) return unionOf(of, anyOf ?? oneOf, indent)
  // A query has JSON as its text.
  if (contentSchema !== undefined) return typeOf(of, contentSchema, indent)
  switch (type) {
    case "string":
    case "boolean":
    case "null":
      return type
    case "integer":
    case "number":
      return "number"
    case "array":
      return `ReadonlyArray<${typeOf(of, items, indent)}>`
    case "object":
      return inside(schema) ?? objectOf(of, schema, indent)
    default:
      return "unknown"
  }
}

const operationsOf = ({ paths }) =>
  Object.values(paths).flatMap((item) =>
    Object.values(item).map((operation) => ({ ...operation, name: operation.operationId.split(".").at(-1) }))
  )

const jsonOf = (content) => content?.["application/json"]?.schema

const queryOf = (parameters) => ({
  properties: Object.fromEntries(
    parameters.flatMap(({ description, in: where, name, schema }) =>
      where === "query" ? [[name, { ...schema, description }]] : []
    )
  ),
  required: parameters.flatMap(({ in: where, name, required }) => (where === "query" && required ? [name] : []))
})

const members = (operations, of) => {
  const found = operations.flatMap((operation) => {
    const type = of(operation)
    return type === undefined ? [] : [`  readonly ${operation.name}: ${type}`]
  })
  return `{\n${found.join("\n")}\n}`
}

/** A module with the types of the document, its bodies, queries and results. */
export const wireTypes = (document) => {
  const operations = operationsOf(document)
  const schemas = Object.entries(document.components.schemas).filter(([name]) => decoded[name] === undefined)
  return [
    ...schemas.map(
      ([name, schema]) => `${comment(schema.description, "")}export type ${nameOf(name)} = ${typeOf("answers", schema)}`
    ),
    `/** What each endpoint takes as its body. */\nexport interface Bodies ${members(operations, ({ requestBody }) => {
      const schema = jsonOf(requestBody?.content)
      return schema && typeOf("arguments", schema, "  ")
    })}`,
    `/** What each endpoint takes as its query. */\nexport interface Queries ${members(operations, ({ parameters }) => {
      const query = queryOf(parameters)
      return Object.keys(query.properties).length === 0 ? undefined : objectOf("arguments", query, "  ")
    })}`,
    `/** What each endpoint returns. */\nexport interface Results ${members(operations, (operation) => {
      const { 200: found, 201: made } = operation.responses
      const schema = jsonOf((found ?? made)?.content)
      return schema && typeOf("answers", schema, "  ")
    })}`
  ]
    .join("\n\n")
    .concat("\n")
}

/** The declarations of the client, with the words of the document for each verb that is an endpoint and has none. */
export const documented = (document, text) => {
  const words = new Map(
    operationsOf(document).map(({ description, name, summary }) => [name, `${summary}. ${description}`.trim()])
  )
  return text.replaceAll(/(\*\/\n)?^( +)readonly (\w+): \(/gm, (all, own, indent, name) =>
    own !== undefined || !words.has(name) ? all : `${comment(words.get(name), indent)}${all}`
  )
}
