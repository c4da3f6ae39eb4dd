/** The bytes of an answer on their way from the socket: in order, with the server waiting for the reader, compressed or not. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as EventLoop from "../../packages/log/src/support/EventLoop.ts"
import { type Answered, type Piece, sender } from "../../packages/models/src/wire/Fetch.ts"

const serving = (answer: (response: ServerResponse, request: IncomingMessage) => void) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.async<ReturnType<typeof createServer>>((resume) => {
        const server = createServer((request, response) => {
          request.resume()
          answer(response, request)
        }).listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) =>
        Effect.sync(() => {
          server.closeAllConnections()
          server.close()
        })
    ),
    // A listening server has an address of this form.
    (server) => new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  )

const asked = (url: URL, signal?: AbortSignal) =>
  Effect.promise(() => sender(undefined)(url, { method: "POST", body: "{}", ...(signal && { signal }) }))

const nextOf = ({ body }: Answered) =>
  Effect.async<Piece>((resume) => body.next((piece) => resume(Effect.succeed(piece))))

/** The pieces to the end. Before each the event loop runs so often. */
const allOf = Effect.fnUntraced(function* (answered: Answered, turns = 0) {
  const pieces: Array<Uint8Array> = []
  for (;;) {
    for (let n = 0; n < turns; n++) yield* EventLoop.turn
    const piece = yield* nextOf(answered)
    if (piece._tag !== "Bytes") return { pieces, last: piece }
    pieces.push(piece.bytes)
  }
})

describe("the body of an answer", () => {
  const total = 8 * 1024 * 1024

  it.scopedLive("MD-800: a server waits while its reader does, and no byte is lost", () =>
    Effect.gen(function* () {
      const sent = Buffer.alloc(total, "0123456789abcdef")
      const url = yield* serving((response) => response.end(sent))
      const { last, pieces } = yield* allOf(yield* asked(url), 20)
      assert.strictEqual(last._tag, "End")
      assert.isTrue(Buffer.concat(pieces).equals(sent))
      // What may wait, and one read of the socket.
      assert.isAtMost(Math.max(...pieces.map(({ length }) => length)), 3 * 65_536)
    })
  )

  it.scopedLive("MD-800: what arrived together is one piece, and a body that breaks off says so after it", () =>
    Effect.gen(function* () {
      const url = yield* serving((response) => {
        response.write("one ")
        response.write("two", () => response.destroy())
      })
      const { last, pieces } = yield* allOf(yield* asked(url), 20)
      assert.strictEqual(Buffer.concat(pieces).toString(), "one two")
      assert.strictEqual(last._tag, "Broken")
    })
  )

  it.scopedLive("MD-802: a request names the length of its text in bytes", () =>
    Effect.gen(function* () {
      let length: string | undefined
      const url = yield* serving((response, { headers }) => {
        length = headers["content-length"]
        response.end()
      })
      yield* Effect.promise(() => sender(undefined)(url, { method: "POST", body: "größer" }))
      assert.strictEqual(length, "8")
    })
  )

  it.scopedLive("MD-802: the text of a request is not kept while its answer comes", () =>
    Effect.gen(function* () {
      setFlagsFromString("--expose-gc")
      const gc: () => void = runInNewContext("gc")
      // Buffers that one collection finds unused are freed behind it.
      const collect = Effect.zipRight(Effect.zipRight(Effect.sync(gc), EventLoop.turn), Effect.sync(gc))
      const url = yield* serving((response, request) => request.on("end", () => response.writeHead(200).write("one")))
      const megabytes = 64
      const send = sender(undefined)
      yield* collect
      const before = process.memoryUsage()
      const body = (n: number) => `${n} ${"x".repeat(2 ** 20)}`
      const answers = yield* Effect.forEach(Array.from({ length: megabytes }).keys(), (n) =>
        Effect.promise(() => send(url, { method: "POST", body: body(n) }))
      )
      yield* collect
      const after = process.memoryUsage()
      assert.lengthOf(answers, megabytes)
      assert.isBelow(after.heapUsed + after.external - before.heapUsed - before.external, (megabytes / 4) * 2 ** 20)
    })
  )

  it.scopedLive("MD-18: an interruption ends the request before its headers", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const url = yield* serving(() => controller.abort(new Error("no longer wanted")))
      const error = yield* Effect.flip(
        Effect.tryPromise({
          try: () => sender(undefined)(url, { method: "POST", body: "{}", signal: controller.signal }),
          catch: String
        })
      )
      assert.include(error, "no longer wanted")
    })
  )

  const packed = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync }
  for (const [encoding, pack] of Object.entries(packed)) {
    it.scopedLive(`MD-801: a body that comes compressed with ${encoding} is read`, () =>
      Effect.gen(function* () {
        const url = yield* serving((response) =>
          response.writeHead(200, { "content-encoding": encoding }).end(pack("data: größer\n\n"))
        )
        const { last, pieces } = yield* allOf(yield* asked(url))
        assert.strictEqual(last._tag, "End")
        assert.strictEqual(Buffer.concat(pieces).toString(), "data: größer\n\n")
      })
    )
  }

  it.scopedLive("MD-801: a compressed body that is damaged breaks off", () =>
    Effect.gen(function* () {
      const url = yield* serving((response) =>
        response.writeHead(200, { "content-encoding": "gzip" }).end("not compressed")
      )
      assert.strictEqual((yield* allOf(yield* asked(url))).last._tag, "Broken")
    })
  )
})
