/**
 * Mends what `@effect/platform` derives: ids that many schemas share, schemas that generators of clients cannot read, queries as
 * texts, and sentences of the schema library. Changes the document. Spec: HT-2, HT-503 in specs/http.md.
 */
import type { OpenAPISpec } from "@effect/platform/OpenApi"
import { Predicate } from "effect"

/** The library's schemas, in our words. */
const named: Readonly<Record<string, object>> = {
  Finite: { description: "A number." },
  HttpApiDecodeError: { description: "An argument does not fit its schema; `issues` name the fields." },
  Int: { description: "A whole number." },
  Issue: { description: "What does not fit, and where." },
  NonEmptyString: { description: "A text that is not empty." },
  NonNegativeInt: { description: "A whole number from 0 on." },
  PropertyKey: { description: "The name of a field, or the number of an item." },
  URL: { format: "uri", description: "An address." },
  Uint8ArrayFromBase64: { contentEncoding: "base64", description: "Bytes, in base64." }
}

/** Where schemas are in a schema, besides its fields. */
const parts = ["additionalProperties", "allOf", "anyOf", "contentSchema", "items", "oneOf", "prefixItems"]

/** Mends a schema and those in it. */
const mend = (schema: unknown): void => {
  if (Array.isArray(schema)) return schema.forEach(mend)
  if (!Predicate.isRecord(schema)) return
  for (const part of parts) mend(schema[part])
  for (const fields of [schema["properties"], schema["patternProperties"]]) {
    if (Predicate.isRecord(fields)) Object.values(fields).forEach(mend)
  }
  const { $id, description, prefixItems } = schema
  // The library's sentences begin with a small letter, and describe its own code.
  if (typeof description === "string" && !/^[A-Z`].*\.$/s.test(description)) delete schema["description"]
  delete schema["title"]
  delete schema["$id"]
  if ($id === "/schemas/%7B%7D") {
    // A struct without fields: by the library, arrays fit it too.
    delete schema["anyOf"]
    schema["type"] = "object"
  }
  if (Array.isArray(prefixItems)) {
    // All parts of our tuples have one form. A list of so many of them is understood by each reader.
    delete schema["prefixItems"]
    const [items] = prefixItems
    Object.assign(schema, { items, minItems: prefixItems.length, maxItems: prefixItems.length })
  }
}

/** What a caller writes in a query. */
interface Parameter {
  readonly in: string
  schema: object
  style?: string
  explode?: boolean
}

/** Gives a parameter the type of its value instead of text. */
const mendParameter = (parameter: Parameter, types: ReadonlyArray<unknown>): void => {
  if (parameter.in !== "query") return
  const { schema } = parameter
  if ("$ref" in schema && schema.$ref === "#/components/schemas/NumberFromString") {
    parameter.schema = { type: "integer" }
  } else if ("$ref" in schema && schema.$ref === "#/components/schemas/EventTypes") {
    Object.assign(parameter, { style: "form", explode: false })
    parameter.schema = { type: "array", items: { type: "string", enum: types } }
  } else if ("enum" in schema && JSON.stringify(schema.enum) === '["0","1"]') {
    parameter.schema = { type: "integer", enum: [0, 1] }
  }
}

/** Describes a response. Errors carry their own descriptions. */
const answers: Readonly<Record<string, string>> = {
  200: "The result.",
  201: "The result, which is new.",
  202: "The work goes on: send the same request again.",
  204: "It is done. There is no body."
}

/** Mends the document. `types`: those of events. */
export const tidy = ({ components, paths }: OpenAPISpec, types: ReadonlyArray<string>): void => {
  for (const [name, schema] of Object.entries(components.schemas)) {
    mend(schema)
    Object.assign(schema, named[name])
  }
  for (const { parameters, requestBody, responses } of Object.values(paths).flatMap((item) => Object.values(item))) {
    for (const parameter of parameters) {
      mend(parameter.schema)
      mendParameter(parameter, types)
    }
    for (const { schema } of Object.values(requestBody?.content ?? {})) mend(schema)
    for (const [status, response] of Object.entries(responses)) {
      for (const { schema } of Object.values(response.content ?? {})) mend(schema)
      response.description = answers[status] ?? response.description
    }
  }
  delete components.schemas["EventTypes"]
  delete components.schemas["NumberFromString"]
}
