/**
 * Adds to the document the errors that a request meets before its endpoint: no definition of an endpoint has them. Spec: HT-2, HT-10
 * in specs/http.md.
 */
import type { OpenAPISpec, OpenAPISpecOperation } from "@effect/platform/OpenApi"
import * as OpenApiJsonSchema from "@effect/platform/OpenApiJsonSchema"
import type { JsonSchema } from "@effect/platform/OpenApiJsonSchema"
import { Schema } from "effect"
import * as Access from "../wire/Access.ts"
import { type Code, failures, statuses } from "../wire/Failure.ts"

const errors = failures(
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

const [media, place] = ["application/json", "#/components/schemas/"] as const

/** The names of the errors of a response. */
export const codesOf = (schema: JsonSchema): ReadonlyArray<string> => {
  if ("anyOf" in schema) return schema.anyOf.flatMap((each) => ("$ref" in each ? codesOf(each) : []))
  return "$ref" in schema ? [schema.$ref.replace(place, "")] : []
}

/** Adds an error to the response with its status. */
const add = ({ responses }: OpenAPISpecOperation, code: Code): void => {
  const { content, description = "" } = responses[statuses[code]] ?? {}
  const known = content?.[media]?.schema
  const codes = new Set([...(known === undefined ? [] : codesOf(known)), code])
  const anyOf = [...codes].map((each) => ({ $ref: place + each }))
  const [only, ...more] = anyOf
  const schema = only !== undefined && more.length === 0 ? only : { anyOf }
  responses[statuses[code]] = { description, content: { ...content, [media]: { schema } } }
}

/** Adds them to each operation, and their schemas to the components. */
export const addEarlier = ({ components, paths }: OpenAPISpec): void => {
  OpenApiJsonSchema.makeWithDefs(errors, { defs: components.schemas, defsPath: place })
  for (const operation of Object.values(paths).flatMap((item) => Object.values(item))) {
    for (const code of operation.requestBody === undefined ? ofAll : [...ofAll, ...ofBodies]) add(operation, code)
  }
}
