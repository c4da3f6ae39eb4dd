import type { OpenAPISpecOperation } from "@effect/platform/OpenApi"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Exit, Schema, Scope } from "effect"
import { openApi } from "../../../packages/api/src/document/Document.ts"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { foreignPart, originOf } from "../../../packages/server/src/http/Site.ts"
import { newSession, runtime, say } from "../../support/Harness.ts"
import * as ScriptedModel from "../../support/ScriptedModel.ts"
import { get } from "./support/Raw.ts"
import * as ServedApi from "./support/ServedApi.ts"
import { answer, request, Served, token } from "./support/ServedApi.ts"

const Operations = Schema.Record({ key: Schema.String, value: Schema.Struct({ operationId: Schema.String }) })
const decodeDocument = Schema.decodeUnknown(
  Schema.Struct({
    openapi: Schema.String.pipe(Schema.pattern(/^3\.1\./)),
    paths: Schema.Record({ key: Schema.String, value: Operations })
  })
)

layer(ServedApi.layer())("a served API", (it) => {
  it.effect("HT-2: the documents need no token, and the page names every operation of the document", () =>
    Effect.gen(function* () {
      const bare = { headers: { authorization: "" } }
      const { body, status } = yield* answer("/openapi.json", bare)
      assert.strictEqual(status, 200)
      const document = yield* decodeDocument(body)
      const page = yield* request("/reference", bare)
      assert.include(page.headers.get("content-security-policy"), "default-src 'none'; style-src 'sha256-")
      const html = yield* Effect.promise(() => page.text())
      const operations = Object.values(document.paths).flatMap((item) => Object.values(item))
      assert.isAbove(operations.length, 40)
      for (const { operationId } of operations) assert.include(html, `<h3 id="${operationId}">`)
      // Behind the path of a proxy too.
      assert.include(html, '<a href="openapi.json">')
      assert.notMatch(html, /<script|\son\w+=|\sstyle=/)
    })
  )

  it.effect("HT-10: an unknown endpoint has a code too", () =>
    Effect.map(answer("/nothing"), ({ body, status }) => {
      assert.strictEqual(status, 404)
      assert.deepInclude(body, { _tag: "EndpointNotFound" })
    })
  )

  it.effect("HT-24: another name in Host, and a page of another origin, are refused before the token is read", () =>
    Effect.gen(function* () {
      const { url } = yield* Served
      const { host, port } = new URL(url)
      const status = (headers: Record<string, string>) =>
        Effect.map(
          get(url, "/sessions", { authorization: `Bearer ${token}`, ...headers }),
          ({ body, status }) => [status, /"part":"(\w+)"/.exec(body)?.[1]] as const
        )
      const refused = (part: string) => [403, part] as const
      for (const given of [host, `localhost:${port}`, "127.0.0.1", "[::1]:1"]) {
        assert.deepEqual(yield* status({ host: given }), [200, undefined], given)
        assert.deepEqual(yield* status({ host: given, origin: `http://${given}` }), [200, undefined], given)
      }
      for (const given of [
        "evil.example",
        `${host}.evil.example`,
        `evil.example:${port}`,
        "",
        "127.0.0.1@evil.example"
      ]) {
        assert.deepEqual(yield* status({ host: given }), refused("host"), given)
      }
      for (const origin of ["null", "http://evil.example", `https://${host}`, `http://${host}0`]) {
        assert.deepEqual(yield* status({ host, origin }), refused("origin"), origin)
      }
    })
  )

  it.effect("HT-24: no response permits another origin, and none is stored, framed or guessed", () =>
    Effect.gen(function* () {
      const { url } = yield* Served
      const { host } = new URL(url)
      for (const path of ["/health", "/sessions", "/nothing", "/openapi.json", "/reference", "/head"]) {
        const { headers } = yield* get(url, path, { host, authorization: `Bearer ${token}` })
        assert.match(headers["cache-control"] ?? "", /no-store/)
        assert.include(headers["content-security-policy"] ?? "", "default-src 'none'")
        assert.deepInclude(headers, { "x-content-type-options": "nosniff", "x-frame-options": "DENY" })
        assert.deepEqual(
          Object.keys(headers).filter((name) => name.startsWith("access-control")),
          []
        )
      }
    })
  )
})

describe("a site", () => {
  it("HT-24: a server for other machines answers under its address, its names, and nothing else", () => {
    const site = {
      host: "192.0.2.7",
      names: ["daybook.example", "lab.example:8443"],
      scheme: "https",
      origins: []
    } as const
    const part = (host: string, origin?: string) => foreignPart(site, { host, origin })
    for (const host of ["192.0.2.7", "192.0.2.7:4310", "Daybook.Example:1", "lab.example:8443", "localhost"]) {
      assert.strictEqual(part(host, `https://${host}`), undefined, host)
      assert.strictEqual(part(host, `http://${host}`), "origin", host)
    }
    for (const host of ["192.0.2.8", "lab.example", "lab.example:1", "x.daybook.example"])
      assert.strictEqual(part(host), "host")
    const everywhere = { host: "0.0.0.0", names: [], scheme: "any", origins: [] } as const
    assert.strictEqual(foreignPart(everywhere, { host: "192.0.2.9:1", origin: undefined }), undefined)
    assert.strictEqual(foreignPart(everywhere, { host: "rebound.example", origin: undefined }), "host")
  })
})

it("HT-505: an origin is read as browsers send it, and what is not one origin is refused", () => {
  for (const [text, origin] of [
    ["https://App.example", "https://app.example"],
    ["https://app.example:443", "https://app.example"],
    ["http://localhost:5173", "http://localhost:5173"],
    ["chrome-extension://abcdef", "chrome-extension://abcdef"]
  ] as const) {
    assert.strictEqual(originOf(text), origin)
  }
  for (const text of ["*", "null", "", "app.example", "https://app.example/", "https://a b", "https://me@app.example"])
    assert.strictEqual(originOf(text), undefined, text)
})

layer(ServedApi.layer({}, {}, { origins: ["https://app.example"] }))("a server with another origin", (it) => {
  const origin = "https://app.example"
  const ask = (path: string, more: Record<string, string>, method = "GET") =>
    Effect.flatMap(Served, ({ url }) =>
      Effect.promise(() => fetch(`${url}${path}`, { method, headers: { authorization: `Bearer ${token}`, ...more } }))
    )

  it.effect("HT-505: pages of the origin read responses, refusals and streams; others are refused as before", () =>
    Effect.gen(function* () {
      const { id } = yield* newSession()
      for (const [path, status] of [
        ["/sessions", 200],
        ["/openapi.json", 200],
        ["/nothing", 404],
        ["/sessions/nope", 400],
        [`/sessions/${id}/events?follow=0`, 200]
      ] as const) {
        const response = yield* ask(path, { origin })
        assert.strictEqual(response.status, status)
        assert.strictEqual(response.headers.get("access-control-allow-origin"), origin, path)
        assert.strictEqual(response.headers.get("vary"), "origin")
        assert.isNull(response.headers.get("access-control-allow-credentials"))
        yield* Effect.promise(() => response.text())
      }
      assert.strictEqual((yield* ask("/sessions", { origin, authorization: "Bearer wrong" })).status, 401)
      for (const other of ["https://evil.example", "http://app.example", "https://app.example:1", "null"]) {
        const response = yield* ask("/sessions", { origin: other })
        assert.strictEqual(response.status, 403)
        assert.isNull(response.headers.get("access-control-allow-origin"), other)
      }
      assert.isNull((yield* ask("/sessions", {})).headers.get("access-control-allow-origin"))
    })
  )

  it.effect("HT-505: a preflight needs no token, and permits the methods and headers of the API", () =>
    Effect.gen(function* () {
      const preflight = { origin, authorization: "", "access-control-request-method": "PUT" }
      const response = yield* ask("/sessions/ses_a/title", preflight, "OPTIONS")
      assert.strictEqual(response.status, 204)
      const permits = (name: string) => response.headers.get(`access-control-allow-${name}`)?.split(", ") ?? []
      assert.deepEqual(permits("origin"), [origin])
      const methods = new Set(Object.values(openApi().paths).flatMap((item) => Object.keys(item)))
      assert.includeMembers(
        permits("methods"),
        [...methods].map((name) => name.toUpperCase())
      )
      const names = new Set(
        Object.values(openApi().paths).flatMap((item) =>
          Object.values(item).flatMap(({ parameters }: OpenAPISpecOperation) =>
            parameters.flatMap((each) => (each.in === "header" ? [each.name] : []))
          )
        )
      )
      assert.includeMembers(permits("headers"), ["authorization", "content-type", "b3", "traceparent", ...names])
      assert.deepEqual(permits("private-network"), [])
      const local = { ...preflight, "access-control-request-private-network": "true" }
      const fromAfar = yield* ask("/sessions", local, "OPTIONS")
      assert.strictEqual(fromAfar.headers.get("access-control-allow-private-network"), "true")
      const refused = yield* ask("/sessions", { ...preflight, origin: "https://evil.example" }, "OPTIONS")
      assert.strictEqual(refused.status, 403)
      assert.isNull(refused.headers.get("access-control-allow-origin"))
    })
  )
})

/** A server whose scope the test closes. */
const stoppable = Effect.gen(function* () {
  const scope = yield* Scope.make()
  yield* Effect.addFinalizer((exit) => Scope.close(scope, exit))
  const served = yield* Scope.extend(ServedApi.serve(), scope)
  return { served, stop: Scope.close(scope, Exit.void) }
})

describe("the end of a server", () => {
  it.scopedLive("HT-23: an address that other machines reach needs a certificate or a proxy", () =>
    Effect.gen(function* () {
      const refused = yield* Effect.flip(ServedApi.serve({ host: "0.0.0.0" }))
      assert.deepInclude(refused, { _tag: "BindingRefused", host: "0.0.0.0" })
      const { url } = yield* ServedApi.serve({ host: "0.0.0.0", behindProxy: true })
      const { port } = new URL(url)
      const { status } = yield* get(`http://127.0.0.1:${port}`, "/health", { host: "127.0.0.1" })
      assert.strictEqual(status, 200)
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("HT-52: at the end, streams get their cursor, waiting requests return, and work goes on", () =>
    Effect.gen(function* () {
      const { served, stop } = yield* stoppable
      const { id } = yield* newSession()
      const at = Effect.provideService(Served, served)
      yield* say(id, "hello", { resume: false })
      const stream = yield* at(request(`/sessions/${id}/events`, { headers: { accept: "application/x-ndjson" } }))
      const resumed = yield* Effect.fork(at(answer(`/sessions/${id}/resume`, { method: "POST" })))
      yield* (yield* ScriptedModel.ScriptedModel).request
      yield* stop
      const frames = (yield* Effect.promise(() => stream.text())).trim().split("\n")
      const end: unknown = JSON.parse(frames.at(-1) ?? "")
      assert.deepInclude(end, { frame: "end", reason: "draining" })
      assert.match(JSON.stringify(end), /"cursor":"d1\./)
      assert.deepInclude((yield* resumed).body, { settled: false })
      assert.include(yield* (yield* Sessions).active, id)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(Effect.tryPromise(() => fetch(`${served.url}/health`)))))
    }).pipe(Effect.provide(runtime()))
  )
})
