/** Clients that guess, flood, dawdle and smuggle: they are refused within bounds, and others are answered. */
import { assert, it, layer } from "@effect/vitest"
import { Cause, Duration, Effect, Layer, Logger, Stream, Struct } from "effect"
import { newSession, runtime } from "../../support/Harness.ts"
import { issue } from "../../../packages/server/src/http/Tokens.ts"
import * as Clients from "../../../packages/server/src/http/Clients.ts"
import { frames } from "./support/Frames.ts"
import { get, raw } from "./support/Raw.ts"
import * as ServedApi from "./support/ServedApi.ts"
import { answer, post, request, Served, token } from "./support/ServedApi.ts"

const limits = { body: 4_096, wrongTokens: 3, requests: 4 }
const timeouts = { headers: Duration.millis(300), request: Duration.millis(600) }

/** Others are answered as before. */
const unaffected = Effect.map(answer("/sessions"), ({ status }) => assert.strictEqual(status, 200))

const asserted = (url: string, bytes: string, statuses: ReadonlyArray<number>) =>
  Effect.map(raw(url, bytes), ({ status }) => assert.include(statuses, status, bytes.slice(0, 80)))

layer(ServedApi.layer({}, {}, { limits, timeouts }))("hostile HTTP", (it) => {
  it.effect("HT-26: requests that two readers would split differently are refused", () =>
    Effect.gen(function* () {
      const { url } = yield* Served
      const head = `POST /sessions HTTP/1.1\r\nhost: 127.0.0.1\r\n`
      const rest = "\r\n0\r\n\r\nGET /sessions HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
      for (const lines of [
        "content-length: 5\r\ntransfer-encoding: chunked\r\n",
        "content-length: 5\r\ncontent-length: 6\r\n",
        "transfer-encoding: xchunked\r\n",
        "transfer-encoding: chunked, identity\r\n",
        "content-length: +5\r\n",
        "content-length : 5\r\n",
        " folded: yes\r\n",
        "host: evil.example\r\nhost : x\r\n",
        "a\0b: c\r\n"
      ]) {
        yield* asserted(url, `${head}${lines}${rest}`, [400])
      }
      yield* asserted(url, `GET /sessions HTTP/1.1\r\n\r\n`, [400])
      yield* asserted(
        url,
        `GET http://evil.example/ HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n`,
        [400]
      )
      yield* unaffected
    })
  )

  it.effect("HT-26: headers and bodies above the bound are not read", () =>
    Effect.gen(function* () {
      const { url } = yield* Served
      const host = "127.0.0.1"
      assert.strictEqual((yield* get(url, "/sessions", { host, big: "x".repeat(20_000) })).status, 431)
      const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`h${n}`, "x"]))
      assert.strictEqual((yield* get(url, "/sessions", { host, ...many })).status, 431)
      const known = yield* post("/sessions", { title: "x".repeat(5_000) })
      assert.deepInclude(known, { status: 413 })
      assert.deepInclude(known.body, { _tag: "BodyTooLarge", most: 4_096 })
      const chunk = `1000\r\n${"x".repeat(4_096)}\r\n`
      const unknown = `POST /sessions HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n${chunk}${chunk}0\r\n\r\n`
      // The connection may be cut while the client still sends. It ends, also if the client would keep it.
      yield* asserted(url, unknown, [0, 413])
      yield* asserted(url, unknown.replace("connection: close\r\n", ""), [0, 413])
      yield* unaffected
    })
  )

  it.effect("HT-26: headers and bodies that come too slowly end the connection", () =>
    Effect.gen(function* () {
      const { url } = yield* Served
      yield* asserted(url, "GET /sessions HTTP/1.1\r\nhost: 127", [408])
      const head = `POST /sessions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\n`
      yield* asserted(url, `${head}content-type: application/json\r\ncontent-length: 100\r\n\r\n{`, [0, 408])
      yield* unaffected
    })
  )

  it.effect("HT-28: who guesses tokens is slowed, and a valid token of the same address is not", () =>
    Effect.gen(function* () {
      const guess = request("/sessions", { headers: { authorization: "Bearer guess" } })
      const responses = yield* Effect.replicateEffect(guess, 5)
      assert.deepEqual(responses.map(Struct.get("status")), [401, 401, 401, 429, 429])
      assert.strictEqual(responses.at(-1)?.headers.get("retry-after"), "60")
      yield* unaffected
    })
  )

  it.scoped("HT-26: a token has a bounded number of open requests, and other tokens have their own", () =>
    Effect.gen(function* () {
      const { id } = yield* newSession()
      for (let n = 0; n < 4; n++) {
        const pull = yield* Stream.toPull(frames(`/sessions/${id}/events`))
        yield* pull
      }
      // The word before the token may be written in any case: it is the same token.
      for (const bearer of ["Bearer", "BEARER"]) {
        const refused = yield* request(`/sessions/${id}`, { headers: { authorization: `${bearer} ${token}` } })
        assert.deepEqual([refused.status, refused.headers.get("retry-after")], [429, "1"], bearer)
        assert.deepInclude(yield* Effect.promise(() => refused.json()), { _tag: "TooManyRequests" })
      }
      const other = { authorization: `Bearer ${issue(token, { scope: "read" })}` }
      assert.strictEqual((yield* answer(`/sessions/${id}`, { headers: other })).status, 200)
    })
  )
})

it("HT-28: addresses that guess are forgotten after others, and a minute later the count begins again", () => {
  const clients = Clients.make({ ...Clients.defaultLimits, wrongTokens: 1 }, false)
  assert.isUndefined(clients.wrongToken("a", 0))
  assert.strictEqual(clients.wrongToken("a", 15_000), 45)
  assert.isUndefined(clients.wrongToken("b", 15_000))
  assert.isUndefined(clients.wrongToken("a", 60_000))
  assert.strictEqual(clients.wrongToken("a", 60_001), 60)
  for (let n = 0; n < 5_000; n++) clients.wrongToken(`other ${n}`, 60_002)
  assert.isUndefined(clients.wrongToken("a", 60_003))
})

it("HT-28: a clock that goes back does not make the minute longer", () => {
  const clients = Clients.make({ ...Clients.defaultLimits, wrongTokens: 1 }, false)
  assert.isUndefined(clients.wrongToken("a", 600_000))
  assert.isUndefined(clients.wrongToken("a", 0))
  assert.strictEqual(clients.wrongToken("a", 15_000), 45)
})

it("HT-26: another machine has a bounded number of connections", () => {
  const clients = Clients.make({ ...Clients.defaultLimits, connections: 2 }, false)
  const [first, second] = [clients.connection("192.0.2.1"), clients.connection("::ffff:192.0.2.1")]
  assert.isDefined(first)
  assert.isUndefined(clients.connection("192.0.2.1"))
  assert.isDefined(clients.connection("192.0.2.2"))
  second?.()
  assert.isDefined(clients.connection("192.0.2.1"))
  for (let n = 0; n < 10; n++) assert.isDefined(clients.connection("127.0.0.1"))
})

it.scopedLive("HT-11: a failure of the server itself is 500 without details, and the log has them", () => {
  const logged: Array<string> = []
  const logger = Logger.make(({ cause }) => void logged.push(Cause.pretty(cause)))
  return Effect.gen(function* () {
    const progress = Effect.succeed({ position: 0, head: 0 })
    const search = { search: () => Effect.die(new Error("a secret path")), prompts: () => Effect.die("secret") }
    const service = { ...search, update: () => progress, rebuild: () => progress, progress }
    const served = yield* ServedApi.serve({ search: service })
    const { body, status } = yield* Effect.provideService(answer("/search?query=x"), Served, served)
    assert.strictEqual(status, 500)
    assert.deepEqual(body, { _tag: "InternalError", message: "the server failed; its log says how" })
    assert.include(logged.join(), "a secret path")
    assert.notInclude(logged.join(), token)
  }).pipe(Effect.provide(Layer.merge(runtime(), Logger.replace(Logger.defaultLogger, logger))))
})
