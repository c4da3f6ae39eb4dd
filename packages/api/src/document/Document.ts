/**
 * The OpenAPI document: what `@effect/platform` derives from the endpoints, with words for each endpoint, parameter, field
 * and error. They are not annotations of the endpoints, so that clients do not carry them. Pure. Spec: HT-2 in specs/http.md.
 *
 * @module @daybook/api/document/Document
 */
import * as HttpApi from "@effect/platform/HttpApi"
import * as OpenApi from "@effect/platform/OpenApi"
import * as OpenApiJsonSchema from "@effect/platform/OpenApiJsonSchema"
import { Predicate, Record } from "effect"
import { durableTypes } from "@daybook/log/events/SessionEvents"
import { Api } from "../Api.ts"
import { Administering, Following, Prompting, Reading, type Scope } from "../wire/Access.ts"
import { Frame, mediaTypes } from "../wire/EventFrames.ts"
import { addEarlier, codesOf } from "./Earlier.ts"
import { endpoints, parameters } from "./Endpoints.ts"
import { errors } from "./Errors.ts"
import { examples } from "./Examples.ts"
import { placeIn, placeOfAnswer, textOf } from "./Fields.ts"
import { tidy } from "./Tidy.ts"

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

/** The response with the meaning of its errors. */
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

/** The document, described. */
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
