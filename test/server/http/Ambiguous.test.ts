/** Requests that a proxy before the server could understand differently, and bodies that are none. */
import type { ServerResponse } from "node:http"
import { connect } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Queue } from "effect"
import { begin, session } from "../../contracts/Samples.ts"
import { newSession } from "../../support/Harness.ts"
import * as Opened from "./support/Opened.ts"
import * as Raw from "./support/Raw.ts"
import * as ServedApi from "./support/ServedApi.ts"
import { answer, request, Served, token } from "./support/ServedApi.ts"

const host = "host: 127.0.0.1\r\n"
const bearer = `authorization: Bearer ${token}\r\n`
const close = "connection: close\r\n"

/** Completes when nothing of the server waits for the end of a response. */
const released = (response: ServerResponse) =>
  Effect.sync(() => assert.isTrue(response.destroyed && response.listenerCount("drain") === 0))

/** The status of a request for sessions with these lines in place of the usual ones. */
const asked = (lines: string, first = "GET /sessions HTTP/1.1") =>
  Effect.flatMap(Served, ({ url }) => Raw.raw(url, `${first}\r\n${lines}${close}\r\n`))

layer(ServedApi.layer())("requests that are not what they seem", (it) => {
  it.effect("HT-15: headers that decide come once, and the target is a path", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* asked(host + bearer)).status, 200)
      for (const lines of [
        `${host}${bearer}authorization: Bearer other\r\n`,
        `${host}authorization: Bearer other\r\n${bearer}`,
        `${host}host: evil.example\r\n${bearer}`,
        `${host}${bearer}origin: http://127.0.0.1\r\norigin: http://evil.example\r\n`,
        `${host}${bearer}content-type: application/json\r\nContent-Type: text/plain\r\n`
      ]) {
        const { body, status } = yield* asked(lines)
        assert.strictEqual(status, 400, lines)
        assert.include(body, "RequestAmbiguous")
      }
      for (const target of ["http://evil.example/sessions", "http://127.0.0.1/sessions", "127.0.0.1:80", "sessions"]) {
        assert.strictEqual((yield* asked(host + bearer, `GET ${target} HTTP/1.1`)).status, 400, target)
      }
      for (const target of ["/health;x", "/health#x", "/health?a#x", "/sessions;/../health"]) {
        const { body, status } = yield* asked(host + bearer, `GET ${target} HTTP/1.1`)
        assert.strictEqual(status, 400, target)
        assert.include(body, "RequestAmbiguous")
      }
      const chunked = `${host}${bearer}content-type: application/json\r\ntransfer-encoding: chunked\r\n`
      const { url } = yield* Served
      const old = yield* Raw.raw(url, `POST /sessions HTTP/1.0\r\n${chunked}\r\n2\r\n{}\r\n0\r\n\r\n`)
      assert.strictEqual(old.status, 400)
      assert.include(old.body, "RequestAmbiguous")
    })
  )

  it.effect("HT-15: what makes a request ambiguous is found behind any number of other headers", () =>
    Effect.gen(function* () {
      const others = "a:\r\n".repeat(3_000)
      assert.strictEqual((yield* asked(host + others + bearer)).status, 200)
      const { body, status } = yield* asked(`${host}${bearer}${others}host: evil.example\r\n`)
      assert.strictEqual(status, 400)
      assert.include(body, "RequestAmbiguous")
      assert.strictEqual((yield* asked(`${host}${bearer}${others}origin: http://evil.example\r\n`)).status, 403)
    })
  )

  it.effect("HT-20: the token follows the word Bearer, and no other", () =>
    Effect.gen(function* () {
      const status = (authorization: string) =>
        Effect.map(request("/sessions", { headers: { authorization } }), (response) => response.status)
      assert.strictEqual(yield* status(`bearer ${token}`), 200)
      for (const other of [`Bearex ${token}`, `Digest ${token}`, token, `Bearer  ${token}`, `Bearer ${token}x`]) {
        assert.strictEqual(yield* status(other), 401, other)
      }
    })
  )

  it.effect("HT-3: ids with encoded slashes, wrong encodings and odd numbers are refused, and nothing fails", () =>
    Effect.gen(function* () {
      for (const path of [
        "/sessions/ses_a%2f..%2fother",
        "/sessions/ses_a/messages/msg_a%2f..",
        "/sessions/ses_%00",
        "/sessions?limit=%zz",
        "/sessions?limit=1&limit=2"
      ]) {
        assert.strictEqual((yield* answer(path)).status, 400, path)
      }
      for (const path of ["/sessions/ses_%zz", "/sessions/ses_%ff%fe", "/health/../sessions"]) {
        const { url } = yield* Served
        const { status } = yield* Raw.get(url, path, { host: "127.0.0.1", authorization: `Bearer ${token}` })
        assert.strictEqual(status, 404, path)
      }
    })
  )

  it.effect("HT-501: a body that is not JSON is refused as such, whatever it says it is", () =>
    Effect.gen(function* () {
      const sent = (body: string, type = "application/json") =>
        answer("/sessions", { method: "POST", body, headers: { "content-type": type } })
      for (const [body, type] of [
        ["{"],
        ["[".repeat(100_000)],
        ["--x--", "multipart/form-data; boundary=x"]
      ] as const) {
        const found = yield* sent(body, type)
        assert.strictEqual(found.status, 400)
        assert.deepInclude(found.body, { _tag: "BodyUnreadable" })
      }
      assert.deepInclude((yield* sent("{}", "application/x-www-form-urlencoded")).body, {
        _tag: "BodyUnreadable",
        message: "the body is said to be a form: send the header `content-type: application/json`"
      })
      assert.strictEqual((yield* sent("{}", "text/plain")).status, 400)
    })
  )

  it.effect("HT-501: a body that is nested too deeply, or holds too many values, is refused, and nothing fails", () =>
    Effect.gen(function* () {
      const { id } = yield* newSession()
      const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth)
      const objects = (depth: number) => '{"a":'.repeat(depth) + "1" + "}".repeat(depth)
      const output = (schema: string) => `{"prompt":{"text":"x","output":{"schema":${schema}}},"resume":false}`
      const sent = (path: string, body: string) => answer(path, { method: "POST", body })
      for (const body of [nested(1_000), nested(5_000), nested(100_000), objects(5_000), output(objects(3_000))]) {
        for (const path of ["/sessions", `/sessions/${id}/prompts`, `/sessions/${id}/ask`, `/sessions/${id}/undo`]) {
          const found = yield* sent(path, body)
          assert.deepInclude(found.body, { message: "the body is nested more than 200 levels deep" }, path)
          assert.strictEqual(found.status, 400)
        }
      }
      const many = yield* sent("/sessions", `[${"1,".repeat(60_000)}1]`)
      assert.deepInclude(many.body, { _tag: "BodyUnreadable", details: "more than 50000 values" })
      assert.strictEqual((yield* answer(`/sessions?house=${nested(7_000)}`)).status, 400)
      assert.strictEqual(
        (yield* sent(`/sessions/${id}/prompts`, output(`{"type":"object","a":${objects(80)}}`))).status,
        200
      )
    })
  )

  it.scoped("HT-26: HEAD of a stream ends with its headers", () =>
    Effect.gen(function* () {
      const id = session()
      yield* begin(id)
      const found = yield* Effect.map(Served, ({ url }) => url).pipe(
        Effect.flatMap((url) =>
          Raw.get(url, `/sessions/${id}/events`, { host: "127.0.0.1", authorization: `Bearer ${token}` }, "HEAD")
        )
      )
      assert.deepStrictEqual([found.status, found.body], [200, ""])
    })
  )

  it.scoped("HT-26: a client that pipelines more than 32 requests is disconnected, and 32 are answered", () =>
    Effect.gen(function* () {
      const { url } = yield* Served
      const ask = `GET /openapi.json HTTP/1.1\r\n${host}\r\n`
      /** Sends requests at once; the number of answers, and whether the server ended the connection. */
      const piped = (count: number) =>
        Effect.async<{ readonly answers: number; readonly isCut: boolean }>((resume) => {
          const mark = "HTTP/1.1 200 OK"
          let [answers, last] = [0, ""]
          const { hostname, port } = new URL(url)
          const socket = connect(Number(port), hostname, () => socket.write(ask.repeat(count)))
          const done = (isCut: boolean) => resume(Effect.succeed({ answers, isCut }))
          socket.setEncoding("latin1").on("data", (part: string) => {
            const text = `${last}${part}`
            answers += text.split(mark).length - 1
            last = text.slice(1 - mark.length)
            if (answers === count) done(false)
          })
          socket.on("error", () => {}).once("close", () => done(true))
          return Effect.sync(() => socket.destroy())
        })
      assert.deepStrictEqual(yield* piped(32), { answers: 32, isCut: false })
      assert.isTrue((yield* piped(1_000)).isCut)
      assert.strictEqual((yield* answer("/sessions")).status, 200)
    })
  )

  it.scoped("HT-26: a stream that waits behind another answer ends with its connection", () =>
    Effect.gen(function* () {
      const [{ url }, id] = [yield* Served, session()]
      yield* begin(id)
      const path = `/sessions/${id}/events`
      const opened = yield* Opened.responses(path)
      const ask = `GET ${path} HTTP/1.1\r\n${host}${bearer}\r\n`
      const { hostname, port } = new URL(url)
      const socket = connect(Number(port), hostname, () => socket.write(ask.repeat(3)))
      socket.on("error", () => {})
      const responses = yield* Effect.replicateEffect(Queue.take(opened), 3)
      const closed = yield* Effect.forEach(responses, (response) => Effect.fork(Opened.closed(response)))
      yield* Effect.yieldNow()
      socket.resetAndDestroy()
      yield* Fiber.joinAll(closed)
      for (const response of responses) yield* released(response)
    })
  )
})
