import { createServer, request as ask } from "node:http"
import { connect as dial, type AddressInfo } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, TestClock } from "effect"
import { Models } from "@daybook/models"
import { classifyError } from "../../packages/core/src/model/ProviderError.ts"
import { untilAsleep } from "../support/Waiting.ts"
import { hello } from "./support/Answers.ts"
import { answer, connect, textOf } from "./support/Client.ts"
import { serve } from "./support/Server.ts"

describe("a rejected request", () => {
  it.scoped("MD-160: an error whose body never ends is reported after ten seconds, with what came of it", () =>
    Effect.gen(function* () {
      const { model, server } = yield* connect(
        "openai-compatible",
        { id: "m" },
        { status: 500, headers: { "content-type": "text/plain" }, chunks: ["out of memory"], ending: "silence" }
      )
      const asked = yield* Effect.fork(Effect.flip(answer(model, { prompt: "go" })))
      yield* server.arrived
      yield* untilAsleep(10_000)
      yield* TestClock.adjust("10 seconds")
      const { message, retryable, statusCode } = classifyError(yield* Fiber.join(asked))
      assert.deepStrictEqual([statusCode, retryable], [500, true])
      assert.include(message, "out of memory")
      yield* server.abandoned
    })
  )
})

/** A proxy that knows one host, and notes what it is asked for. */
const proxyTo = Effect.fnUntraced(function* (host: string, port: number, otherwise = 502) {
  const seen: Array<string> = []
  const server = createServer((request, response) => {
    seen.push(request.url ?? "")
    const { headers, method, url = "" } = request
    const onward = ask({ port, method, headers, path: new URL(url).pathname }, (answered) => {
      response.writeHead(answered.statusCode ?? 500, answered.headers)
      answered.pipe(response)
    })
    request.pipe(onward)
  })
  server.on("connect", ({ url = "" }, socket) => {
    seen.push(url)
    if (!url.startsWith(host)) return void socket.end(`HTTP/1.1 ${otherwise} Refused\r\n\r\n`)
    const onward = dial(port, "127.0.0.1", () => socket.write("HTTP/1.1 200 OK\r\n\r\n"))
    onward.pipe(socket).pipe(onward)
    for (const one of [socket, onward]) one.on("error", () => one.destroy())
  })
  yield* Effect.acquireRelease(
    Effect.async<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () => Effect.sync(() => (server.closeAllConnections(), server.close()))
  )
  // A listening server has an address of this form.
  const address = server.address() as AddressInfo
  return { seen, url: `http://127.0.0.1:${address.port}` }
})

/** Sets variables of this process for the scope; the usual ones of a proxy are absent otherwise. */
const variables = (values: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"].flatMap((name) => [name, name.toLowerCase()])
      const before = names.map((name) => [name, process.env[name]] as const)
      for (const name of names) delete process.env[name]
      Object.assign(process.env, values)
      return before
    }),
    (before) =>
      Effect.sync(() => {
        for (const [name, value] of before) {
          if (value === undefined) delete process.env[name]
          else process.env[name] = value
        }
      })
  )

describe("proxies", () => {
  const host = "models.invalid"
  const asking = Effect.gen(function* () {
    const resolver = yield* Models.make({
      providers: {
        mine: { api: "openai-compatible", baseUrl: `http://${host}/v1`, models: { m: { contextTokens: 9 } } }
      }
    })
    const { model } = yield* Effect.orDie(resolver.resolve({ providerID: "mine", id: "m" }))
    return yield* answer(model, { prompt: "go" })
  })

  for (const name of ["HTTP_PROXY", "http_proxy", "ALL_PROXY"]) {
    it.scopedLive(`MD-97: requests go through the proxy of ${name}`, () =>
      Effect.gen(function* () {
        const server = yield* serve(hello["openai-compatible"])
        const { seen, url } = yield* proxyTo(host, Number(new URL(server.url).port))
        yield* variables({ [name]: url })
        assert.strictEqual(textOf(yield* asking), "Hello")
        assert.lengthOf(seen, 1)
        assert.include(seen[0], host)
      })
    )
  }

  it.scopedLive.each([
    [407, "the provider: the proxy answered HTTP 407; does its address hold the user and the password?", false],
    [403, "the provider: the proxy answered HTTP 403", false],
    [502, `${host}: the proxy answered HTTP 502`, true]
  ] as const)("MD-793: the refusal of a proxy is named: %i", ([status, message, retryable]) =>
    Effect.gen(function* () {
      const { url } = yield* proxyTo("another.invalid", 1, status)
      yield* variables({ HTTP_PROXY: url })
      assert.deepInclude(classifyError(yield* Effect.flip(asking)), { message, retryable })
    })
  )

  it.scopedLive("MD-97: a host of NO_PROXY is asked without the proxy", () =>
    Effect.gen(function* () {
      const server = yield* serve(hello["openai-compatible"])
      const { seen, url } = yield* proxyTo(host, Number(new URL(server.url).port))
      yield* variables({ HTTP_PROXY: url, NO_PROXY: host })
      // No name server knows the host.
      assert.strictEqual((yield* Effect.flip(asking))._tag, "HttpRequestError")
      assert.deepStrictEqual(seen, [])
    })
  )
})
