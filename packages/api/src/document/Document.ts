/**
 * The OpenAPI document: what `@effect/platform` derives from the endpoints, with words for each endpoint, parameter,
 * field and error. The words are not annotations of the endpoints, so that clients do not carry the words. Pure. Spec:
 * HT-2, HT-10, HT-503 in specs/http.md.
 *
 * @module @daybook/api/document/Document
 */
import * as HttpApi from "@effect/platform/HttpApi"
import * as OpenApi from "@effect/platform/OpenApi"
import type { OpenAPISpec, OpenAPISpecOperation } from "@effect/platform/OpenApi"
import * as OpenApiJsonSchema from "@effect/platform/OpenApiJsonSchema"
import type { JsonSchema } from "@effect/platform/OpenApiJsonSchema"
import { Predicate, Record, Schema } from "effect"
import { durableTypes } from "@daybook/log/events/SessionEvents"
import { Api } from "../index.ts"
import * as Access from "../wire/Access.ts"
import { Administering, Following, Prompting, Reading, type Scope } from "../wire/Access.ts"
import { Frame, mediaTypes } from "../wire/EventFrames.ts"
import { type Code, failures, statuses } from "../wire/Failure.ts"
import { endpoints, errors, examples, parameters } from "./Endpoints.ts"
import { placeIn, placeOfAnswer, textOf } from "./Fields.ts"

// Adds the errors that a request meets before its endpoint.

const earlierErrors = failures(
  Schema.Union(
    Access.BodyTooLarge,
    Access.BodyUnreadable,
    Access.RequestAmbiguous,
    Access.SiteRefused,
    Access.TooManyRequests
  )
)
const ofAll: ReadonlyArray<Code> = ["RequestAmbiguous", "SiteRefused", "TooManyRequests"]
const ofBodies: ReadonlyArray<Code> = ["BodyTooLarge", "BodyUnreadable"]

const [media, schemasPath] = ["application/json", "#/components/schemas/"] as const

/** The names of the errors of a response. */
const codesOf = (schema: JsonSchema): ReadonlyArray<string> => {
  if ("anyOf" in schema) return schema.anyOf.flatMap((each) => ("$ref" in each ? codesOf(each) : []))
  return "$ref" in schema ? [schema.$ref.replace(schemasPath, "")] : []
}

const add = ({ responses }: OpenAPISpecOperation, code: Code): void => {
  const { content, description = "" } = responses[statuses[code]] ?? {}
  const known = content?.[media]?.schema
  const codes = new Set([...(known === undefined ? [] : codesOf(known)), code])
  const anyOf = [...codes].map((each) => ({ $ref: schemasPath + each }))
  const [only, ...more] = anyOf
  const schema = only !== undefined && more.length === 0 ? only : { anyOf }
  responses[statuses[code]] = { description, content: { ...content, [media]: { schema } } }
}

/** Adds them to each operation, and their schemas to the components. */
const addEarlier = ({ components, paths }: OpenAPISpec): void => {
  OpenApiJsonSchema.makeWithDefs(earlierErrors, { defs: components.schemas, defsPath: schemasPath })
  for (const operation of Object.values(paths).flatMap((item) => Object.values(item))) {
    for (const code of operation.requestBody === undefined ? ofAll : [...ofAll, ...ofBodies]) add(operation, code)
  }
}

// Mends what `@effect/platform` derives: shared ids, schemas that generators of clients cannot read, queries as texts.

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
type Parameter = { readonly in: string; schema: object; style?: string; explode?: boolean }

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

/** Mends the document. `types` are the types of events. */
const tidy = ({ components, paths }: OpenAPISpec, types: ReadonlyArray<string>): void => {
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

const namedIn = (texts: Readonly<Record<string, string>>, name: string): string | undefined =>
  Object.hasOwn(texts, name) ? texts[name] : undefined

const scopes: ReadonlyMap<unknown, Scope> = new Map<unknown, Scope>([
  [Reading, "read"],
  [Following, "read"],
  [Prompting, "prompt"],
  [Administering, "admin"]
])

/** The scope that each endpoint needs, by its name. */
const needed = (): ReadonlyMap<string, Scope> => {
  const found = new Map<string, Scope>()
  HttpApi.reflect(Api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, middleware }) => {
      for (const each of middleware) {
        const scope = scopes.get(each)
        if (scope !== undefined) found.set(endpoint.name, scope)
      }
    }
  })
  return found
}

/** The error of a request that no schema fits, which the library defines. */
const misfit = "HttpApiDecodeError"
const misfitText = "An argument does not fit its schema; `issues` name the fields."

const explained = (response: OpenApi.OpenApiSpecResponse): OpenApi.OpenApiSpecResponse => {
  const codes = Object.values(response.content ?? {}).flatMap(({ schema }) => codesOf(schema))
  const texts = codes.flatMap((code) => {
    const text = code === misfit ? misfitText : namedIn(errors, code)
    return text === undefined ? [] : [`${code}: ${text}`]
  })
  return texts.length === 0 ? response : { ...response, description: texts.join(" ") }
}

/** A stream is described as lines of JSON too: their schema says what the data of its frames are. */
const asLines = (response: OpenApi.OpenApiSpecResponse): OpenApi.OpenApiSpecResponse => {
  const { content = {} } = response
  if (!Object.hasOwn(content, mediaTypes.sse)) return response
  const lines = { [mediaTypes.ndjson]: { schema: { $ref: "#/components/schemas/Frame" } } }
  return { description: "Frames of events.", content: { ...content, ...lines } }
}

const described = (each: OpenApi.OpenAPISpecOperation, needs: ReadonlyMap<string, Scope>) => {
  const name = each.operationId.split(".").at(-1) ?? each.operationId
  const scope = needs.get(name)
  const [summary, description] = Object.entries(endpoints).find(([known]) => known === name)?.[1] ?? [name, ""]
  return {
    ...each,
    summary,
    description: scope === undefined ? description : `${description} Needs the scope \`${scope}\`.`,
    parameters: each.parameters.map((parameter) => {
      const text = namedIn(parameters, `${name}.${parameter.name}`) ?? namedIn(parameters, parameter.name)
      return text === undefined ? parameter : { ...parameter, description: text }
    }),
    responses: Record.map(each.responses, (response) => asLines(explained(response)))
  }
}

/** Says in a schema what its fields mean. `place` is the name of what has the schema. */
const explain = (schema: unknown, place: string): void => {
  if (Array.isArray(schema)) return schema.forEach((each) => explain(each, place))
  if (!Predicate.isRecord(schema)) return
  const { additionalProperties, allOf, anyOf, items, oneOf, properties } = schema
  for (const each of [additionalProperties, allOf, anyOf, items, oneOf]) explain(each, place)
  if (!Predicate.isRecord(properties)) return
  for (const [name, field] of Object.entries(properties)) {
    if (!Predicate.isRecord(field)) continue
    const text = textOf(place, name)
    if (text !== undefined) field["description"] = text
    explain(field, placeIn(place, name))
  }
}

/** Says what the fields of bodies and answers mean, and gives each body an example. */
const explainFields = ({ components, paths }: OpenApi.OpenAPISpec): void => {
  for (const [name, schema] of Object.entries(components.schemas)) explain(schema, name)
  for (const { operationId, requestBody, responses } of Object.values(paths).flatMap((item) => Object.values(item))) {
    const name = operationId.split(".").at(-1) ?? operationId
    for (const { schema } of Object.values(requestBody?.content ?? {})) explain(schema, name)
    for (const { content } of Object.values(responses)) {
      for (const { schema } of Object.values(content ?? {})) explain(schema, placeOfAnswer(name))
    }
    for (const media of Object.values(requestBody?.content ?? {})) {
      if (Object.hasOwn(examples, name)) Object.assign(media, { example: examples[name] })
    }
  }
}

const license = { name: "MIT", identifier: "MIT" }

export const openApi = (): OpenApi.OpenAPISpec => {
  // `fromApi` caches its result, which is changed below.
  const derived = structuredClone(OpenApi.fromApi(Api))
  const { schemas, securitySchemes } = derived.components
  const frame = OpenApiJsonSchema.makeWithDefs(Frame, { defs: schemas, defsPath: "#/components/schemas/" })
  schemas["Frame"] = frame
  addEarlier(derived)
  tidy(derived, durableTypes)
  explainFields(derived)
  const needs = needed()
  return {
    ...derived,
    info: { ...derived.info, license },
    // A client's library takes the address of the document.
    servers: [{ url: "/", description: "The server that this document is from." }],
    paths: Record.map(derived.paths, (item) =>
      Object.fromEntries(Object.entries(item).map(([method, each]) => [method, described(each, needs)]))
    ),
    components: {
      schemas: Record.map(schemas, (schema, name) => {
        const text = namedIn(errors, name)
        return text === undefined ? schema : { ...schema, description: text }
      }),
      securitySchemes: Record.map(securitySchemes, (scheme) => ({
        ...scheme,
        description: "A token of the server: `daybook token` makes them, with a scope, a session and an end."
      }))
    }
  }
}
