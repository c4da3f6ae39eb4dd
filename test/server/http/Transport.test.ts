/** What stands between a client and the server: TLS, or a proxy. */
import { readFileSync } from "node:fs"
import { get as secureGet } from "node:https"
import { connect, type Socket } from "node:net"
import { assert, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Queue } from "effect"
import { begin, session } from "../../contracts/Samples.ts"
import { runtime, temporaryFolder } from "../../support/Harness.ts"
import { lacks } from "../../support/Parts.ts"
import * as Certificate from "./support/Certificate.ts"
import * as Opened from "./support/Opened.ts"
import { get, raw } from "./support/Raw.ts"
import * as ServedApi from "./support/ServedApi.ts"
import { Served, token } from "./support/ServedApi.ts"

const authorization = `Bearer ${token}`

/** A GET by a client that trusts this certificate; fails with the code of the connection's error. */
const secured = (url: string, ca: string | undefined) =>
  Effect.async<{ readonly status: number | undefined; readonly body: string }, string>((resume) => {
    const request = secureGet(url, { ca, agent: false, headers: { authorization } }, (response) => {
      let body = ""
      response.setEncoding("utf8").on("data", (part: string) => (body += part))
      response.once("end", () => resume(Effect.succeed({ status: response.statusCode, body })))
    })
    request.once("error", (cause) => resume(Effect.fail("code" in cause ? String(cause.code) : cause.message)))
    return Effect.sync(() => request.destroy())
  })

it.scopedLive.skipIf(lacks("openssl"))(
  "HT-23: with a certificate, a server at every address is reached over TLS alone, streams included",
  () =>
    Effect.gen(function* () {
      const files = Certificate.make(yield* temporaryFolder)
      const [cert, key] = [readFileSync(files.cert, "utf8"), readFileSync(files.key, "utf8")]
      const { url } = yield* ServedApi.serve({ host: "0.0.0.0", certificate: { cert, key } })
      const { port, protocol } = new URL(url)
      assert.strictEqual(protocol, "https:")
      const id = session()
      yield* begin(id, 3)
      const at = `https://127.0.0.1:${port}`
      const { body, status } = yield* secured(`${at}/sessions/${id}/events?follow=0`, cert)
      assert.strictEqual(status, 200)
      assert.strictEqual(body.match(/^event: (?:event|replay\.complete|end)$/gm)?.length, 6)
      assert.strictEqual(yield* Effect.flip(secured(`${at}/sessions`, undefined)), "DEPTH_ZERO_SELF_SIGNED_CERT")
      const plain = yield* raw(`http://127.0.0.1:${port}`, "GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
      assert.deepEqual([plain.status, plain.body], [0, ""])
    }).pipe(Effect.provide(runtime()))
)

it.scopedLive.skipIf(lacks("openssl"))(
  "HT-23: a certificate that does not fit its key is refused when the server begins",
  () =>
    Effect.gen(function* () {
      const [one, other] = [Certificate.make(yield* temporaryFolder), Certificate.make(yield* temporaryFolder)]
      const certificate = { cert: readFileSync(one.cert, "utf8"), key: readFileSync(other.key, "utf8") }
      const refused = yield* Effect.flip(ServedApi.serve({ certificate }))
      assert.deepInclude(refused, { _tag: "PortUnusable", reason: "other" })
    }).pipe(Effect.provide(runtime()))
)

it.scopedLive(
  "HT-26: a client that reads nothing of its responses is disconnected, and one that reads slowly is not",
  () =>
    Effect.gen(function* () {
      const { url } = yield* ServedApi.serve({ timeouts: { unread: Duration.seconds(1) } })
      const { hostname, port } = new URL(url)
      /** More than the buffers of the kernel take. */
      const asks = "GET /openapi.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".repeat(32)
      const opened = yield* Opened.responses("/openapi.json")
      const open = Effect.acquireRelease(
        Effect.async<Socket>((resume) => {
          const socket = connect(Number(port), hostname, () => {
            socket.write(asks)
            resume(Effect.succeed(socket))
          })
          socket.on("error", () => {})
        }),
        (socket) => Effect.sync(() => socket.destroy())
      )
      /** The last of the responses, and its end. Nothing is read yet. */
      const begun = Effect.fnUntraced(function* (socket: Socket) {
        socket.pause()
        const last = (yield* Effect.replicateEffect(Queue.take(opened), 32)).at(-1)
        const ended = yield* Effect.fork(last === undefined ? Effect.void : Opened.closed(last))
        return { last, ended }
      })
      const idle = yield* begun(yield* open)
      yield* Fiber.join(idle.ended)
      assert.isFalse(idle.last?.writableFinished)
      const socket = yield* open
      const reader = yield* begun(socket)
      socket.resume()
      yield* Fiber.join(reader.ended)
      assert.isTrue(reader.last?.writableFinished)
    }).pipe(Effect.provide(runtime()))
)

it.scopedLive.skipIf(lacks("openssl"))("HT-26: a handshake that comes too slowly ends the connection", () =>
  Effect.gen(function* () {
    const files = Certificate.make(yield* temporaryFolder)
    const certificate = { cert: readFileSync(files.cert, "utf8"), key: readFileSync(files.key, "utf8") }
    const { url } = yield* ServedApi.serve({ certificate, timeouts: { headers: Duration.millis(300) } })
    // The start of a handshake record.
    assert.strictEqual((yield* raw(url, "\u0016\u0003\u0001")).status, 0)
    assert.strictEqual((yield* secured(`${url}/health`, certificate.cert)).status, 200)
  }).pipe(Effect.provide(runtime()))
)

/** The statuses of requests with a wrong token, as a proxy forwards them. */
const guesses = (...forwarded: ReadonlyArray<string>) =>
  Effect.flatMap(Served, ({ url }) =>
    Effect.forEach(forwarded, (address) =>
      Effect.map(
        get(url, "/sessions", {
          host: "127.0.0.1",
          authorization: "Bearer guess",
          ...(address === "" ? {} : { "x-forwarded-for": address })
        }),
        ({ status }) => status
      )
    )
  )

const limits = { wrongTokens: 1 }

it.scopedLive("HT-28: behind a proxy, a client has the address that the proxy saw, not one that it claims", () =>
  Effect.gen(function* () {
    assert.deepEqual(yield* guesses("192.0.2.1", "192.0.2.2", "192.0.2.1"), [401, 401, 429])
    assert.deepEqual(yield* guesses("192.0.2.9, 192.0.2.1", "192.0.2.1, 192.0.2.9"), [429, 401])
    assert.deepEqual(yield* guesses("", "", ","), [401, 429, 429])
  }).pipe(Effect.provide(ServedApi.layer({}, {}, { behindProxy: true, limits })))
)

it.scopedLive("HT-28: without a proxy, a client cannot choose its address", () =>
  Effect.gen(function* () {
    assert.deepEqual(yield* guesses("192.0.2.1", "192.0.2.2", ""), [401, 429, 429])
  }).pipe(Effect.provide(ServedApi.layer({}, {}, { limits })))
)

it.scopedLive("HT-24: behind a proxy, pages of the server's names may be of http and https, and no others", () =>
  Effect.gen(function* () {
    const { url } = yield* Served
    const status = (origin: string) =>
      Effect.map(get(url, "/sessions", { host: "daybook.example", authorization, origin }), ({ status }) => status)
    assert.strictEqual(yield* status("https://daybook.example"), 200)
    assert.strictEqual(yield* status("http://daybook.example"), 200)
    assert.strictEqual(yield* status("https://other.example"), 403)
    const other = yield* get(url, "/sessions", { host: "other.example", authorization })
    assert.strictEqual(other.status, 403)
    const claimed = { host: "other.example", "x-forwarded-host": "daybook.example", authorization }
    assert.strictEqual((yield* get(url, "/sessions", claimed)).status, 403)
  }).pipe(Effect.provide(ServedApi.layer({}, {}, { behindProxy: true, names: ["daybook.example"] })))
)
