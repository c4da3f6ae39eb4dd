/** The description of the API, read alone: words for everything that a caller can send and get. */
import { assert, it } from "@effect/vitest"
import { openApi } from "../../packages/api/src/document/Document.ts"
import { parameters } from "../../packages/api/src/document/Endpoints.ts"
import { statuses } from "../../packages/api/src/wire/Failure.ts"

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
