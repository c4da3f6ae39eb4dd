import type { OpenAPISpec } from "@effect/platform/OpenApi"
import { assert, layer } from "@effect/vitest"
import { Effect, Schema, Struct } from "effect"
import { openApi } from "../../../packages/api/src/document/Document.ts"
import { examples } from "../../../packages/api/src/document/Endpoints.ts"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { issue } from "../../../packages/server/src/http/Tokens.ts"
import { validatorOf } from "../../api/support/Validator.ts"
import { newSession, say } from "../../support/Harness.ts"
import { finish, says, ScriptedModel, streams, textParts } from "../../support/ScriptedModel.ts"
import * as ServedApi from "./support/ServedApi.ts"
import { answer, post, request, token } from "./support/ServedApi.ts"

const Head = Schema.Struct({ cursor: Schema.String })

/** The text of a stream up to its first event. */
const firstEvent = (path: string) =>
  Effect.flatMap(request(path, { headers: { accept: "application/x-ndjson" } }), ({ body }) =>
    Effect.promise(async () => {
      const [reader, decoder] = [body?.getReader(), new TextDecoder()]
      let text = ""
      while (!text.includes('"frame":"event"') || !text.endsWith("\n"))
        text += decoder.decode((await reader?.read())?.value)
      await reader?.cancel()
      return text
    })
  )

layer(ServedApi.layer())("the API over TCP", (it) => {
  it.effect("HT-1: a verb has the result of the facade's verb", () =>
    Effect.gen(function* () {
      const session = yield* newSession()
      yield* (yield* Sessions).rename(session.id, "over HTTP")
      const found = yield* answer(`/sessions/${session.id}`)
      assert.deepEqual(found, { status: 200, body: { ...(yield* (yield* Sessions).get(session.id)) } })
    })
  )

  it.effect("HT-620: what an answer lacks is in the answers of ask, wait and the session", () =>
    Effect.gen(function* () {
      const { id } = yield* newSession()
      yield* (yield* ScriptedModel).answer(streams(...textParts("t", "Half of it"), finish("length")))
      const message = "The answer was cut off at the model's output limit, after 5 tokens."
      const error = { type: "answer.cut", message }
      const asked = yield* post(`/sessions/${id}/ask`, { id: "msg_cut", prompt: { text: "go" } })
      assert.deepInclude(asked.body, { text: "Half of it", error })
      const found = yield* answer(`/sessions/${id}`)
      assert.deepNestedInclude(found.body, { "activity.state": "completed", "activity.error": error })
      const waited = yield* answer(`/sessions/${id}/wait`)
      assert.deepNestedInclude(waited.body, { settled: true, "session.activity.error": error })
    })
  )

  it.effect("HT-3: an invalid id is 400 (S7.8) and names the field", () =>
    Effect.gen(function* () {
      const { body, status } = yield* answer("/sessions/nope")
      assert.strictEqual(status, 400)
      assert.include(JSON.stringify(body), '"path":["sessionID"]')
      // The longest id has 100 characters. A router could find no endpoint for a longer one.
      for (const length of [97, 5_000]) {
        const found = yield* answer(`/sessions/ses_${"a".repeat(length)}`)
        assert.strictEqual(found.status, 400)
        assert.include(JSON.stringify(found.body), '"path":["sessionID"]')
      }
    })
  )

  it.effect("HT-3: a field of a body that its schema does not have is refused by name, in each endpoint", () =>
    Effect.gen(function* () {
      const { id } = yield* newSession()
      const before = yield* (yield* Sessions).get(id)
      const bodies = Object.entries(openApi().paths).flatMap(([path, item]) =>
        Object.entries(item).flatMap(([method, { operationId, requestBody }]) =>
          requestBody === undefined ? [] : [{ path, method, name: operationId.split(".").at(-1) ?? "" }]
        )
      )
      assert.lengthOf(bodies, Object.keys(examples).length)
      for (const { method, name, path } of bodies) {
        const at = path
          .replace("{sessionID}", id)
          .replace("{messageID}", "msg_a")
          .replace(/\{\w+\}/g, "a")
        const body = JSON.stringify(Object.assign({}, examples[name], { misspelt: 1 }))
        const found = yield* answer(at, { method: method.toUpperCase(), body })
        assert.strictEqual(found.status, 400, name)
        assert.include(JSON.stringify(found.body), '"misspelt"', name)
      }
      assert.deepStrictEqual(yield* (yield* Sessions).get(id), before)
    })
  )

  it.effect("HT-3: a parameter of a query that an endpoint does not have is refused by name, in each endpoint", () =>
    Effect.gen(function* () {
      const { id } = yield* newSession()
      const operations = Object.entries(openApi().paths).flatMap(([path, item]) =>
        Object.entries(item).map(([method, { operationId }]) => ({ path, method, operationId }))
      )
      assert.isAbove(operations.length, 55)
      for (const { method, operationId, path } of operations) {
        const at = path
          .replace("{sessionID}", id)
          .replace("{messageID}", "msg_a")
          .replace(/\{\w+\}/g, "a")
        const example = examples[operationId.split(".").at(-1) ?? ""]
        const body = example === undefined ? {} : { body: JSON.stringify(example) }
        const found = yield* answer(`${at}?afer=41`, { method: method.toUpperCase(), ...body })
        assert.strictEqual(found.status, 400, operationId)
        assert.deepInclude(found.body, { _tag: "HttpApiDecodeError" }, operationId)
        assert.include(JSON.stringify(found.body), '"afer"', operationId)
      }
      assert.strictEqual((yield* (yield* Sessions).get(id)).id, id)
      assert.strictEqual((yield* answer(`/sessions/${id}?`)).status, 200)
      const guessed = yield* answer("/sessions/active?afer=41", { headers: { authorization: "Bearer wrong" } })
      assert.strictEqual(guessed.status, 401)
    })
  )

  it.effect("HT-503: what the server answers fits the document", () =>
    Effect.gen(function* () {
      const document: OpenAPISpec = openApi()
      const { faults } = validatorOf(document)
      const { id: sessionID } = yield* newSession()
      const sessions = yield* Sessions
      const { id: messageID } = yield* say(sessionID, "hello", { resume: false })
      yield* (yield* ScriptedModel).answer(says("I am here."))
      yield* sessions.resume(sessionID)
      yield* say(sessionID, "later", { resume: false })
      const seen = new Map<number, number>()
      for (const [path, { get }] of Object.entries(document.paths)) {
        if (get === undefined || !Object.hasOwn(get.responses[200]?.content ?? {}, "application/json")) continue
        const absent = path.includes("sessionID") ? ["ses_none", "nope"] : []
        for (const session of [sessionID, ...absent]) {
          const at = path
            .replace("{sessionID}", session)
            .replace("{messageID}", messageID)
            .replace(/\{\w+\}/g, "a")
          const { body, status } = yield* answer(path === "/search" ? `${at}?query=here` : at)
          seen.set(status, (seen.get(status) ?? 0) + 1)
          const pointer = `/paths/${path.replaceAll("/", "~1")}/get/responses/${status}/content/application~1json/schema`
          assert.deepStrictEqual(faults(pointer, body), [], `${at} ${status}`)
        }
      }
      assert.isAbove(seen.get(200) ?? 0, 20)
      assert.isAbove(seen.get(404) ?? 0, 15)
      assert.isAbove(seen.get(400) ?? 0, 15)
    })
  )

  it.effect("HT-502: a path answers a method that it does not have with the methods that it has", () =>
    Effect.gen(function* () {
      const { id } = yield* newSession()
      for (const [method, path, allow] of [
        ["PUT", "/sessions", ["POST", "GET", "HEAD"]],
        ["GET", `/sessions/${id}/compact`, ["POST"]],
        ["PATCH", `/sessions/${id}/title`, ["PUT"]],
        ["OPTIONS", "/stats?exact=1", ["GET", "HEAD"]],
        ["POST", "/openapi.json", ["GET", "HEAD"]]
      ] as const) {
        const response = yield* request(path, { method })
        assert.strictEqual(response.status, 405, path)
        assert.strictEqual(response.headers.get("allow"), allow.join(", "))
        assert.deepInclude(yield* Effect.promise(() => response.json()), { _tag: "MethodNotAllowed", allow })
      }
    })
  )

  it.effect("HT-3: the message names each wrong field and what it expects, without the schema of the whole", () =>
    Effect.gen(function* () {
      const { id } = yield* newSession()
      const refused = (payload: unknown) =>
        Effect.map(post(`/sessions/${id}/prompts`, payload), ({ body, status }) => {
          assert.strictEqual(status, 400)
          return body
        })
      assert.deepEqual(yield* refused({ prompt: { text: 5 }, delivery: "now" }), {
        _tag: "HttpApiDecodeError",
        issues: [{ _tag: "Type", path: ["prompt", "text"], message: "Expected string, actual 5" }],
        message: '"prompt.text": Expected string, actual 5'
      })
      assert.deepInclude(yield* refused({ prompt: { text: "x" }, delivery: "now" }), {
        message: '"delivery": Expected "steer" or "queue", actual "now"'
      })
      assert.deepInclude(yield* refused({ prompt: { text: "x", files: "a" } }), {
        message: '"prompt.files": Expected an array, actual "a"'
      })
      assert.deepInclude(yield* refused([1]), { message: "the body: Expected an object, actual [1]" })
      const found = yield* answer("/sessions?limit=many")
      assert.deepInclude(found.body, { message: '"limit": Unable to decode "many" into a number' })
    })
  )

  it.effect("HT-1: the call of a question may have a long id, as some providers make it", () =>
    Effect.gen(function* () {
      const { id } = yield* newSession()
      const callID = `call_${"a|b".repeat(200)}`
      const path = `/sessions/${id}/questions/msg_a/${encodeURIComponent(callID)}/answer`
      const { body, status } = yield* post(path, { answers: [] })
      assert.strictEqual(status, 409)
      assert.deepInclude(body, { _tag: "QuestionClosed", callID })
    })
  )

  it.effect("HT-10: a number that is that of no event is refused as it was given", () =>
    Effect.gen(function* () {
      const { id } = yield* newSession()
      for (const [at, given] of [
        ["0.5", 0.5],
        ["-1", -1],
        ["NaN", "NaN"],
        ["Infinity", "Infinity"]
      ] as const) {
        const { body, status } = yield* answer(`/sessions/${id}/request?at=${at}`)
        assert.strictEqual(status, 404, at)
        assert.deepInclude(body, { _tag: "NothingShown", at: given })
      }
    })
  )

  it.effect("HT-10: an error has its status, its fields, its code and its message", () =>
    Effect.map(answer("/sessions/ses_unknown"), (found) =>
      assert.deepEqual(found, {
        status: 404,
        body: { _tag: "SessionNotFound", sessionID: "ses_unknown", message: "there is no session ses_unknown" }
      })
    )
  )

  it.effect("HT-12: a repeated idempotency key admits one prompt", () =>
    Effect.gen(function* () {
      const { id } = yield* newSession()
      const send = (text: string) =>
        post(
          `/sessions/${id}/prompts`,
          { prompt: { text }, resume: false },
          { "idempotency-key": "a key, with ünicode" }
        )
      const first = yield* send("hi")
      assert.deepEqual(yield* send("hi"), first)
      assert.strictEqual((yield* send("other")).status, 409)
      assert.lengthOf(yield* (yield* Sessions).inbox(id), 1)
    })
  )

  it.effect("HT-20: without a token, or with a wrong one, nothing is answered", () =>
    Effect.gen(function* () {
      for (const authorization of ["", "Bearer wrong", `Bearer ${token}x`, `Basic ${token}`]) {
        const { body, status } = yield* answer("/sessions", { headers: { authorization } })
        assert.deepInclude(body, { _tag: "Unauthorized" })
        assert.strictEqual(status, 401)
      }
      assert.strictEqual((yield* answer("/health", { headers: { authorization: "" } })).status, 200)
    })
  )

  it.effect("HT-20: a refusal says which token is needed, as RFC 6750 has it", () =>
    Effect.gen(function* () {
      const needed = (path: string, headers: Record<string, string>) =>
        Effect.map(request(path, { method: "DELETE", headers }), (response) => response.headers.get("www-authenticate"))
      const { url } = yield* ServedApi.Served
      const without = yield* Effect.promise(() => fetch(`${url}/sessions`))
      assert.strictEqual(without.headers.get("www-authenticate"), 'Bearer realm="daybook"')
      assert.strictEqual(
        yield* needed("/sessions/ses_a", { authorization: "Bearer wrong" }),
        'Bearer realm="daybook", error="invalid_token"'
      )
      assert.strictEqual(
        yield* needed("/sessions/ses_a", { authorization: `Bearer ${issue(token, { scope: "read" })}` }),
        'Bearer realm="daybook", error="insufficient_scope", scope="admin"'
      )
    })
  )

  it.effect("HT-21: a token reaches only its scope and its session", () =>
    Effect.gen(function* () {
      const [own, other] = [yield* newSession(), yield* newSession()]
      const bearer = (given: string) => ({ authorization: `Bearer ${given}` })
      const reader = bearer(issue(token, { scope: "read", sessionID: own.id }))
      const statuses = yield* Effect.forEach(
        [
          request(`/sessions/${own.id}`, { headers: reader }),
          request(`/sessions/${other.id}`, { headers: reader }),
          request("/sessions", { headers: reader }),
          request(`/sessions/${own.id}`, { method: "DELETE", headers: reader }),
          request(`/sessions/${own.id}`, { headers: bearer(issue(token, { scope: "read", expires: -1 })) })
        ],
        Effect.map(({ status }) => status)
      )
      assert.deepEqual(statuses, [200, 403, 403, 403, 401])
    })
  )

  it.effect("HT-22: a token has one text: another one with the same bytes is refused", () =>
    Effect.gen(function* () {
      const issued = issue(token, { scope: "read" })
      const bytes = (text: string) => Buffer.from(text.split(".")[2] ?? "", "base64url").toString("hex")
      const signs = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"]
      const others = [`${issued}=`, `${issued}!`, ...signs.map((sign) => issued.slice(0, -1) + sign)].filter(
        (text) => text !== issued && bytes(text) === bytes(issued)
      )
      assert.isAtLeast(others.length, 3)
      const status = (text: string) =>
        Effect.map(answer("/sessions", { headers: { authorization: `Bearer ${text}` } }), ({ status }) => status)
      assert.strictEqual(yield* status(issued), 200)
      for (const other of others) assert.strictEqual(yield* status(other), 401, other)
    })
  )

  it.effect("HT-45: a replay that is not followed ends after its seam, with the cursor to go on from", () =>
    Effect.gen(function* () {
      const { id } = yield* newSession()
      const admit = (text: string) =>
        Effect.flatMap(Sessions, (sessions) => sessions.prompt({ sessionID: id, prompt: { text }, resume: false }))
      const frames = (after: string) =>
        Effect.flatMap(
          request(`/sessions/${id}/events?follow=0&after=${after}`, { headers: { accept: "application/x-ndjson" } }),
          (response) =>
            Effect.map(
              Effect.promise(() => response.text()),
              (text) =>
                text
                  .trim()
                  .split("\n")
                  .map((line): Record<string, unknown> => JSON.parse(line))
            )
        )
      yield* admit("one")
      const first = yield* frames("-1")
      assert.deepEqual(first.map(Struct.get("frame")), ["event", "event", "replay.complete", "end"])
      yield* admit("two")
      const second = yield* frames(String(first.at(-1)?.["cursor"]))
      assert.include(JSON.stringify(second[0]), '"two"')
      assert.notInclude(JSON.stringify(second), '"one"')
    })
  )

  it.effect("HT-53: a reader that begins at the head gets only new events, of a session and of the feed", () =>
    Effect.gen(function* () {
      const { id } = yield* newSession()
      const heads = yield* Effect.forEach([`/sessions/${id}/head`, "/head"], (path) =>
        Effect.flatMap(answer(path), ({ body }) => Schema.decodeUnknown(Head)(body))
      )
      const [own, all] = heads.map(({ cursor }) => cursor)
      yield* Effect.flatMap(Sessions, (sessions) =>
        sessions.prompt({ sessionID: id, prompt: { text: "new" }, resume: false })
      )
      for (const path of [`/sessions/${id}/events?after=${own}`, `/events?after=${all}`]) {
        const text = yield* firstEvent(path)
        assert.include(text, '"new"')
        assert.notInclude(text, "session.created")
      }
    })
  )

  it.effect("HT-42: the cursor of another database is refused", () =>
    Effect.gen(function* () {
      const { id } = yield* newSession()
      const { body, status } = yield* answer(`/sessions/${id}/events?after=d1.00000000.1.0`)
      assert.strictEqual(status, 400)
      assert.deepInclude(body, { _tag: "ForeignCursor", reason: "database" })
    })
  )
})
