import { createServer } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { maxBodyBytes } from "../../packages/core/src/support/Limits.ts"
import { boundedFetch } from "../../packages/mcp/src/Transports.ts"
import { origin, redirect } from "../http/support/Origins.ts"
import { makeMcp, obedient, wrong } from "./support/Servers.ts"

/** Serves these pieces as one body. */
const serving = (type: string, pieces: () => Iterable<string>, status = 200) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.async<{ readonly port: number; readonly close: () => void }>((resume) => {
        const server = createServer((_, response) => {
          response.writeHead(status, { "content-type": type })
          for (const piece of pieces()) response.write(piece)
          response.end()
        })
        server.listen(0, "127.0.0.1", () => {
          const address = server.address()
          const port = address !== null && typeof address === "object" ? address.port : 0
          resume(Effect.succeed({ port, close: () => (server.closeAllConnections(), server.close()) }))
        })
      }),
      ({ close }) => Effect.sync(close)
    ),
    ({ port }) => new URL(`http://127.0.0.1:${port}/`)
  )

const lengthOf = (url: URL) =>
  Effect.tryPromise(async () => {
    let length = 0
    for await (const chunk of (await boundedFetch(url)).body ?? []) length += chunk.length
    return length
  })

const messageLimit = maxBodyBytes.mcp
const megabyte = "x".repeat(1024 * 1024)

describe("a server that misbehaves", () => {
  it.scoped("MC-12: of a list without an end, a thousand tools are offered, and the rest is named", () =>
    Effect.gen(function* () {
      const { mcp, offered } = yield* makeMcp({ many: wrong("endless") })
      yield* mcp.ready
      const [status] = yield* mcp.status
      assert.strictEqual(status?.tools, 1_000)
      assert.include(status?.details, "all tools after the first 1000")
      assert.lengthOf(
        (yield* offered).filter((name) => name.startsWith("many_")),
        1_000
      )
    })
  )

  it.scoped("MC-4: words on its standard output that are no message are passed over", () =>
    Effect.gen(function* () {
      const { mcp, said } = yield* makeMcp({ own: wrong("noisy") })
      yield* mcp.ready
      assert.strictEqual(yield* said("own_echo"), "echo: {}")
    })
  )

  it.scoped("MC-4: a message that is too long ends the connection, and the call says so", () =>
    Effect.gen(function* () {
      const { fail, mcp, until } = yield* makeMcp({ own: obedient })
      yield* mcp.ready
      const error = yield* fail("own_vast", {})
      assert.strictEqual(error.type, "tool.execution")
      assert.include(error.message, "it closed the connection before it answered")
      yield* until("own", ({ state }) => state === "failed")
    })
  )

  it.scoped("MC-4: over HTTP a body is ended when it is too long", () =>
    Effect.gen(function* () {
      const pieces = (count: number) => () => Array.from({ length: count }, () => megabyte)
      const short = yield* serving("application/json", pieces(9))
      assert.strictEqual(yield* lengthOf(short), 9 * megabyte.length)
      for (const status of [200, 302, 500]) {
        const long = yield* serving("application/json", pieces(11), status)
        assert.include(
          String((yield* Effect.flip(lengthOf(long))).error),
          `more than ${messageLimit} bytes`,
          `${status}`
        )
      }
    })
  )

  it.scoped("LM-1: headers and requests do not follow a redirect to another origin, and the status names both", () =>
    Effect.gen(function* () {
      const other = yield* origin((_, response) => void response.end("{}"))
      const own = yield* origin((asked, response) => redirect(Number(asked.path.slice(1)), other.url)(asked, response))
      const headers = { authorization: "Bearer sk-secret-0123456789" }
      const { mcp } = yield* makeMcp({
        see: { url: `${own.url}/303`, headers },
        moved: { url: `${own.url}/302`, headers },
        kept: { url: `${own.url}/307`, headers }
      })
      yield* mcp.ready
      for (const { details, state } of yield* mcp.status) {
        assert.strictEqual(state, "failed")
        assert.include(details, `${own.url} answered with a redirect to ${other.url}`)
        assert.notInclude(details, "secret")
      }
      assert.lengthOf(other.asked, 0)
    })
  )

  it.scoped("MC-4: an event stream may be as long as it likes, none of its events", () =>
    Effect.gen(function* () {
      const events = (count: number, each: number) =>
        function* () {
          for (let event = 0; event < count; event++) {
            for (let piece = 0; piece < each; piece++) yield `data: ${megabyte}\r\n`
            yield "\r\n"
          }
        }
      const many = yield* serving("text/event-stream", events(12, 1))
      assert.isAbove(yield* lengthOf(many), messageLimit)
      const long = yield* serving("Text/Event-Stream; charset=utf-8", events(1, 11))
      assert.include(String((yield* Effect.flip(lengthOf(long))).error), `more than ${messageLimit} bytes`)
    })
  )
})
