/** The description of the API, read alone: words for everything that a caller can send and get. */
import * as HttpApi from "@effect/platform/HttpApi"
import { assert, it } from "@effect/vitest"
import { createConfig, lintFromString } from "@redocly/openapi-core"
import { Effect, Either, Predicate, Schema } from "effect"
import { Api } from "../../packages/api/src/index.ts"
import { openApi } from "../../packages/api/src/document/Document.ts"
import { examples, parameters } from "../../packages/api/src/document/Endpoints.ts"
import { keysOf, placeIn, placeOfAnswer, tables } from "../../packages/api/src/document/Fields.ts"
import { statuses } from "../../packages/api/src/wire/Failure.ts"
import { validatorOf } from "./support/Validator.ts"

const document = openApi()

const operations = Object.values(document.paths).flatMap((item) => Object.values(item))

it("HT-2: each endpoint has a summary and a description with its scope, and each parameter says what it is", () => {
  assert.isAbove(operations.length, 50)
  for (const { description = "", operationId, parameters, security, summary = "" } of operations) {
    assert.match(summary, /^[A-Z][^.]*[^.]$/, operationId)
    if (security.length > 0)
      assert.match(description, /^[A-Z].*\. Needs the scope `(?:read|prompt|admin)`\.$/, operationId)
    for (const { description = "", name } of parameters) assert.match(description, /\.$/, `${operationId} ${name}`)
  }
  const scopeOf = (id: string) =>
    /scope `(\w+)`/.exec(operations.find((each) => each.operationId === id)?.description ?? "")
  assert.deepStrictEqual(
    ["events.events", "work.prompt", "permissions.decide"].map((id) => scopeOf(id)?.[1]),
    ["read", "prompt", "admin"]
  )
})

it.effect("HT-503: a linter finds no fault in the document, and its examples fit their schemas", () =>
  Effect.promise(async () => {
    const rules = { "no-invalid-media-type-examples": "error", "no-unused-components": "error" } as const
    const config = await createConfig({ extends: ["recommended-strict"], rules })
    const problems = await lintFromString({ source: JSON.stringify(document), config })
    assert.deepStrictEqual(
      problems.map(({ location: [at], message, ruleId }) => `${ruleId} at ${at?.pointer}: ${message}`),
      []
    )
  })
)

it("HT-503: a validator compiles every schema of the document", () => {
  const { compile } = validatorOf(document)
  for (const name of Object.keys(document.components.schemas)) compile(`/components/schemas/${name}`)
  for (const [path, item] of Object.entries(document.paths)) {
    for (const [method, { parameters, requestBody, responses }] of Object.entries(item)) {
      const at = `/paths/${path.replaceAll("/", "~1")}/${method}`
      parameters.forEach((_, index) => compile(`${at}/parameters/${index}/schema`))
      for (const [where, content] of [
        ["requestBody", requestBody?.content],
        ...Object.entries(responses).map(([status, { content }]) => [`responses/${status}`, content] as const)
      ] as const) {
        for (const type of Object.keys(content ?? {}))
          compile(`${at}/${where}/content/${type.replaceAll("/", "~1")}/schema`)
      }
    }
  }
})

it("HT-503: no schema has an id or a tuple, a list has items, and each sentence is one of ours", () => {
  const texts: Array<string> = []
  const look = (value: unknown, isFields = false): void => {
    if (Array.isArray(value)) return value.forEach((each) => look(each))
    if (!Predicate.isRecord(value)) return
    const { $id, description, items, prefixItems, type } = value
    if (!isFields) {
      assert.deepStrictEqual([$id, prefixItems], [undefined, undefined])
      if (type === "array") assert.isTrue(Predicate.isRecord(items), JSON.stringify(value).slice(0, 200))
      if (typeof description === "string") texts.push(description)
    }
    for (const [key, each] of Object.entries(value)) if (key !== "example") look(each, key === "properties")
  }
  look(document)
  assert.isAbove(texts.length, 1_000)
  assert.deepStrictEqual(
    texts.filter((text) => !/^[A-Z`].*\.$/s.test(text)),
    []
  )
})

it("HT-503: numbers and switches of queries are numbers, and lists have commas between their items", () => {
  const queries = operations.flatMap(({ operationId, parameters }) =>
    parameters.flatMap(({ in: place, name, ...rest }) => (place === "query" ? [{ operationId, name, ...rest }] : []))
  )
  const of = (...names: ReadonlyArray<string>): ReadonlyArray<object> =>
    queries.filter(({ name }) => names.includes(name))
  for (const each of of("limit", "at", "incarnation")) assert.deepInclude(each, { schema: { type: "integer" } })
  for (const each of of("live", "follow", "exact"))
    assert.deepInclude(each, { schema: { type: "integer", enum: [0, 1] } })
  assert.lengthOf(of("type"), 2)
  for (const each of of("type")) assert.deepInclude(each, { style: "form", explode: false })
})

it("HT-2: no parameter is described that does not exist", () => {
  const known = new Set(
    operations.flatMap((each) =>
      each.parameters.flatMap(({ name }) => [name, `${each.operationId.split(".").at(-1)}.${name}`])
    )
  )
  assert.deepStrictEqual(
    Object.keys(parameters).filter((name) => !known.has(name)),
    []
  )
})

it("HT-2: each failed response says what each of its errors means, and so does the error's schema", () => {
  const named = new Set<string>()
  for (const { operationId, responses } of operations) {
    for (const [status, { description }] of Object.entries(responses)) {
      if (Number(status) < 400) continue
      const codes = [...description.matchAll(/(\w+): [A-Z][^:]*\./g)].map(([, code]) => code ?? "")
      assert.isNotEmpty(codes, `${operationId} ${status}: ${description}`)
      for (const code of codes) named.add(code)
    }
  }
  for (const code of named) {
    if (code === "HttpApiDecodeError") continue
    assert.strictEqual(String(new Map(Object.entries(statuses)).has(code)), "true", code)
    assert.match(document.components.schemas[code]?.description ?? "", /\.$/, code)
  }
  assert.isAbove(named.size, 40)
})

it("HT-2, HT-10: each operation describes the errors that a request meets before its endpoint", () => {
  const refersTo = (status: number, code: string) =>
    operations.filter(({ responses }) => {
      const text = JSON.stringify(responses[status]?.content?.["application/json"] ?? "")
      return text.includes(`"#/components/schemas/${code}"`)
    })
  const withBody = operations.filter(({ requestBody }) => requestBody !== undefined)
  for (const [status, code, expected] of [
    [400, "RequestAmbiguous", operations],
    [403, "SiteRefused", operations],
    [429, "TooManyRequests", operations],
    [400, "BodyUnreadable", withBody],
    [413, "BodyTooLarge", withBody]
  ] as const) {
    assert.deepStrictEqual(refersTo(status, code), expected, code)
    assert.property(document.components.schemas, code)
  }
})

it("HT-2, HT-44: streams are described in both forms, and the frames by a schema whose references resolve", () => {
  const stream = operations.find(({ operationId }) => operationId === "events.events")
  assert.hasAllKeys(stream?.responses[200]?.content ?? {}, ["text/event-stream", "application/x-ndjson"])
  const text = JSON.stringify(document)
  const missing = [...text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)].filter(
    ([, name]) => !Object.hasOwn(document.components.schemas, decodeURIComponent(name ?? ""))
  )
  assert.deepStrictEqual(missing, [])
  assert.include(JSON.stringify(document.components.schemas["Frame"]), "replay.complete")
})

/** Visits the fields of a schema, with the place that names them: a field, a schema with a name, or an endpoint. */
const visit = (schema: unknown, place: string, each: (place: string, name: string, field: object) => void): void => {
  if (Array.isArray(schema)) return schema.forEach((one) => visit(one, place, each))
  if (!Predicate.isRecord(schema)) return
  for (const [key, value] of Object.entries(schema)) {
    if (key !== "properties") {
      if (["additionalProperties", "allOf", "anyOf", "items", "oneOf"].includes(key)) visit(value, place, each)
      continue
    }
    for (const [name, field] of Object.entries(Predicate.isRecord(value) ? value : {})) {
      if (!Predicate.isRecord(field)) continue
      each(place, name, field)
      visit(field, placeIn(place, name), each)
    }
  }
}

const nameOf = (operationId: string) => operationId.split(".").at(-1) ?? operationId
const schemasOf = (content: object | undefined) => Object.values(content ?? {}).map(({ schema }) => schema)

const bodies = operations.flatMap(({ operationId, requestBody }) =>
  schemasOf(requestBody?.content).map((schema) => [nameOf(operationId), schema] as const)
)

const missingIn = (schema: unknown, place: string): ReadonlyArray<string> => {
  const missing: Array<string> = []
  visit(schema, place, (at, name, field) => {
    const text = "description" in field ? String(field.description) : ""
    // What the library writes itself has no full stop.
    if (!/^[A-Z`].*\.$/s.test(text)) missing.push(`${at}.${name}`)
  })
  return missing
}

it("HT-2: each field of a body says what it is, and each body has an example that fits it", () => {
  assert.isAbove(bodies.length, 15)
  assert.deepStrictEqual(
    bodies.flatMap(([name, schema]) => missingIn(schema, name)),
    []
  )
  const payloads = new Map<string, Schema.Schema.Any>()
  HttpApi.reflect(Api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint: { name }, payloads: found }) => {
      for (const { ast } of found.values()) payloads.set(name, Schema.make(ast))
    }
  })
  for (const { operationId, requestBody } of operations) {
    for (const media of Object.values(requestBody?.content ?? {})) {
      const name = nameOf(operationId)
      assert.property(media, "example", name)
      const payload = payloads.get(name)
      assert(payload !== undefined)
      const decoded = Schema.decodeUnknownEither(Schema.make<unknown>(payload.ast), { onExcessProperty: "error" })(
        examples[name]
      )
      assert.isTrue(Either.isRight(decoded), `${name}: ${String(decoded)}`)
    }
  }
  assert.sameMembers(
    Object.keys(examples),
    bodies.map(([name]) => name)
  )
})

const answers = operations.flatMap(({ operationId, responses }) =>
  Object.values(responses).flatMap(({ content }) =>
    schemasOf(content).map((schema) => [placeOfAnswer(nameOf(operationId)), schema] as const)
  )
)

const everywhere = [...Object.entries(document.components.schemas), ...bodies, ...answers]

it("HT-2: each field of every schema of the document says what it is", () => {
  let fields = 0
  for (const [place, schema] of everywhere) visit(schema, place, () => fields++)
  assert.isAbove(fields, 1_000)
  assert.deepStrictEqual([...new Set(everywhere.flatMap(([place, schema]) => missingIn(schema, place)))], [])
})

it("HT-2: no field is described that does not exist, and none twice", () => {
  const known = new Set<string>()
  for (const [place, schema] of everywhere) {
    visit(schema, place, (at, name) => keysOf(at, name).forEach((key) => known.add(key)))
  }
  const keys = tables.flatMap((table) => Object.keys(table))
  assert.deepStrictEqual(
    keys.filter((key) => !known.has(key)),
    []
  )
  assert.deepStrictEqual(
    keys.filter((key, index) => keys.indexOf(key) !== index),
    []
  )
})
