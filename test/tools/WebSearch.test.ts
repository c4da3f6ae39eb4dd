/** The tool `search` against a server on the loopback that speaks each provider's wire format. */
import { createServer, type IncomingMessage } from "node:http"
import { text } from "node:stream/consumers"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { type SearchProvider, withFetch } from "../../packages/tools/src/BuiltinTools.ts"
import { makeWorkbench, type Options, textOf } from "./Workbench.ts"

interface Received {
  readonly method: string
  readonly url: URL
  readonly headers: IncomingMessage["headers"]
  readonly body: string
}

/** A provider that gives one answer, until the scope closes, and what it received. */
const answering = (body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}) =>
  Effect.gen(function* () {
    const received: Array<Received> = []
    const server = createServer(async (request, response) => {
      const url = new URL(request.url ?? "/", "http://provider")
      received.push({ method: request.method ?? "", url, headers: request.headers, body: await text(request) })
      const written = typeof body === "string" ? body : JSON.stringify(body)
      response.writeHead(status, { "content-type": "application/json", ...headers }).end(written)
    })
    yield* Effect.acquireRelease(
      Effect.async<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
      () => Effect.sync(() => (server.close(), server.closeAllConnections()))
    )
    const address = server.address()
    assert(typeof address === "object" && address !== null)
    return { received, url: `http://127.0.0.1:${address.port}` }
  })

const bench = (search: SearchProvider, options: Options = {}) =>
  makeWorkbench({ tools: withFetch({ search }), ...options })

const apiKey = Redacted.make("the-key")

describe("search", () => {
  it.scoped("TO-790: Brave is asked with its token, and its web results are returned", () =>
    Effect.gen(function* () {
      const described = { title: "Effect", url: "https://effect.website/", description: "Effect is\n a library" }
      const bare = { type: "search_result", title: "Docs", url: "https://effect.website/docs", age: "2 days ago" }
      const { received, url } = yield* answering({
        type: "search",
        query: { original: "effect" },
        web: { type: "search", results: [described, bare] }
      })
      const tools = yield* bench({ provider: "brave", apiKey, url: `${url}/res/v1/web/search` })
      assert.strictEqual(
        textOf(yield* tools.succeed("search", { query: "effect ts", count: 5 })),
        "1. Effect\nhttps://effect.website/\nEffect is a library\n\n2. Docs\nhttps://effect.website/docs"
      )
      const [{ headers, method, url: asked } = assert.fail("nothing was asked")] = received
      assert.deepStrictEqual([method, asked.pathname], ["GET", "/res/v1/web/search"])
      assert.deepStrictEqual([asked.searchParams.get("q"), asked.searchParams.get("count")], ["effect ts", "5"])
      assert.strictEqual(headers["x-subscription-token"], "the-key")
    })
  )

  it.scoped("TO-790: Tavily is asked with a bearer key in JSON, and no more results than asked for are returned", () =>
    Effect.gen(function* () {
      const result = (n: number) => ({
        title: `Page ${n}`,
        url: `https://x.org/${n}`,
        content: `text ${n}`,
        score: 0.9
      })
      const results = [1, 2, 3].map(result)
      const { received, url } = yield* answering({ query: "q", answer: null, images: [], results, response_time: 0.5 })
      const tools = yield* bench({ provider: "tavily", apiKey, url: `${url}/search` })
      assert.strictEqual(
        textOf(yield* tools.succeed("search", { query: "q", count: 2 })),
        "1. Page 1\nhttps://x.org/1\ntext 1\n\n2. Page 2\nhttps://x.org/2\ntext 2"
      )
      const [{ body, headers, method } = assert.fail("nothing was asked")] = received
      assert.deepStrictEqual([method, headers.authorization], ["POST", "Bearer the-key"])
      assert.deepStrictEqual(JSON.parse(body), { query: "q", max_results: 2 })
    })
  )

  it.scoped("TO-790: SearXNG is asked for JSON below its address", () =>
    Effect.gen(function* () {
      const results = [{ url: "https://x.org/", title: "X", content: "about x", engine: "brave", positions: [1] }]
      const { received, url } = yield* answering({ query: "x", number_of_results: 0, results, suggestions: [] })
      const tools = yield* bench({ provider: "searxng", url: `${url}/searx/` })
      assert.strictEqual(textOf(yield* tools.succeed("search", { query: "x" })), "1. X\nhttps://x.org/\nabout x")
      assert.strictEqual(received[0]?.url.href, "http://provider/searx/search?q=x&format=json")
    })
  )

  it.scoped("TO-790: without a provider there is no such tool", () =>
    Effect.gen(function* () {
      const tools = yield* makeWorkbench({ tools: withFetch() })
      assert.match((yield* tools.fail("search", { query: "x" })).type, /^tool\.unknown/)
    })
  )

  it.scoped("TO-791: results that are no pages are left out, and a search without results says so", () =>
    Effect.gen(function* () {
      const results = [{ title: "no address" }, { url: "javascript:alert(1)" }, "text", null]
      const { url } = yield* answering({ results })
      const tools = yield* bench({ provider: "searxng", url })
      assert.strictEqual(textOf(yield* tools.succeed("search", { query: "x" })), "Nothing was found.")
    })
  )

  it.scoped.each([
    ["searxng", 403, "its settings must list json under search.formats"],
    ["brave", 401, "is the key right?"],
    ["tavily", 429, "answered HTTP 429: "]
  ] as const)(
    "TO-791: %s that answers %d is a failure that says what to do, without the key",
    ([provider, status, says]) =>
      Effect.gen(function* () {
        const { url } = yield* answering({ error: "not now" }, status)
        const tools = yield* bench(provider === "searxng" ? { provider, url } : { provider, apiKey, url })
        const { message } = yield* tools.fail("search", { query: "x" })
        for (const part of [says, "not now"]) assert.include(message, part)
        assert.notInclude(message, "the-key")
      })
  )

  it.scoped("TO-791: an answer in another form is a failure with its beginning", () =>
    Effect.gen(function* () {
      const { url } = yield* answering("<html>a login page</html>")
      const tools = yield* bench({ provider: "searxng", url })
      assert.include((yield* tools.fail("search", { query: "x" })).message, "none of searxng: <html>a login page")
    })
  )

  it.scoped("TO-792: a search needs permission before anything is sent, and a key", () =>
    Effect.gen(function* () {
      const { received, url } = yield* answering({ results: [] })
      const tools = yield* bench({ provider: "searxng", url }, { rules: [] })
      const { message, type } = yield* tools.fail("search", { query: "who is x" })
      assert.strictEqual(type, "permission.denied")
      assert.include(message, '"search" on "who is x"')
      assert.deepStrictEqual(
        tools.asked.map(({ always, resources }) => [resources, always]),
        [[["who is x"], ["*"]]]
      )
      const keyless = yield* bench({ provider: "brave", apiKey: Redacted.make(""), url })
      assert.include((yield* keyless.fail("search", { query: "x" })).message, "brave has no key")
      assert.deepStrictEqual(received, [])
    })
  )

  it.scoped("TO-792: a redirect elsewhere does not take the key along", () =>
    Effect.gen(function* () {
      const away = yield* answering({ results: [] })
      const { url } = yield* answering({}, 302, { location: `${away.url}/` })
      const tools = yield* bench({ provider: "brave", apiKey, url })
      assert.include((yield* tools.fail("search", { query: "x" })).message, "which is another")
      assert.deepStrictEqual(away.received, [])
    })
  )
})
