/** The tool `fetch` against a server on the loopback, which the tests that read it allow. */
import { createServer, type ServerResponse } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { isPrivate } from "../../packages/tools/src/Fetch.ts"
import { withFetch } from "../../packages/tools/src/BuiltinTools.ts"
import { makeWorkbench, type Options, textOf } from "./Workbench.ts"

type Answers = Readonly<Record<string, (response: ServerResponse) => void>>

/** A server, until the scope closes; its address without a slash. */
const serving = (answers: Answers) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.async<{ readonly url: string; readonly close: () => void }>((resume) => {
        const server = createServer(({ url = "" }, response) => {
          const answer = answers[url]
          if (answer === undefined)
            return void response.writeHead(404, { "content-type": "text/plain" }).end("not here")
          answer(response)
        }).listen(0, "127.0.0.1", () => {
          const address = server.address()
          const port = typeof address === "object" && address !== null ? address.port : 0
          const close = () => {
            server.close()
            server.closeAllConnections()
          }
          resume(Effect.succeed({ url: `http://127.0.0.1:${port}`, close }))
        })
      }),
      ({ close }) => Effect.sync(close)
    ),
    ({ url }) => url
  )

const send = (type: string, body: string | Uint8Array) => (response: ServerResponse) =>
  void response.writeHead(200, { "content-type": type }).end(body)

const bench = (options: Options = {}) => makeWorkbench({ tools: withFetch({ privateAddresses: true }), ...options })

const page = `<html><head><title>The  page</title><style>p { color: red }</style></head>
<body><nav><a href="/">Home</a></nav><h1>Title</h1><p>It is <b>bold</b> and <a href="https://x.org">linked</a>.</p>
<ul><li>one</li><li>two</li></ul><script>alert("no")</script><pre><code>a &lt; b</code></pre></body></html>`

describe("fetch", () => {
  it.scoped("TO-780: a page is Markdown with its title, without scripts and navigation; raw it is as it was", () =>
    Effect.gen(function* () {
      const url = yield* serving({ "/": send("text/html; charset=utf-8", page) })
      const tools = yield* bench()
      const text = textOf(yield* tools.succeed("fetch", { url }))
      assert.include(text, "The page")
      assert.include(text, "# Title\n\nIt is **bold** and [linked](https://x.org).")
      assert.include(text, "```\na < b\n```")
      for (const absent of ["alert", "color", "Home"]) assert.notInclude(text, absent)
      assert.include(textOf(yield* tools.succeed("fetch", { url, raw: true })), "<nav>")
    })
  )

  it.scoped("TO-780: other texts come as they are, in their encoding; what is no text is refused with its type", () =>
    Effect.gen(function* () {
      const url = yield* serving({
        "/a.json": send("application/json", '{"a": 1}'),
        "/latin": send("text/plain; charset=iso-8859-1", Buffer.from("é", "latin1")),
        "/picture": send("image/png", new Uint8Array(10))
      })
      const tools = yield* bench()
      assert.include(textOf(yield* tools.succeed("fetch", { url: `${url}/a.json` })), '{"a": 1}')
      assert.include(textOf(yield* tools.succeed("fetch", { url: `${url}/latin` })), "é")
      assert.include((yield* tools.fail("fetch", { url: `${url}/picture` })).message, "image/png, which is no text")
    })
  )

  it.scoped("TO-781: a redirect within the origin is followed, one elsewhere is not", () =>
    Effect.gen(function* () {
      const to = (location: string) => (response: ServerResponse) => void response.writeHead(302, { location }).end()
      const url = yield* serving({
        "/moved": to("/here"),
        "/here": send("text/plain", "here it is"),
        "/away": to("https://example.org/")
      })
      const tools = yield* bench()
      assert.include(textOf(yield* tools.succeed("fetch", { url: `${url}/moved` })), "here it is")
      assert.include(
        (yield* tools.fail("fetch", { url: `${url}/away` })).message,
        "https://example.org, which is another"
      )
    })
  )

  it.scoped(
    "TO-781: an error of the server is a failure with its beginning, and so is an answer that is too large",
    () =>
      Effect.gen(function* () {
        const url = yield* serving({ "/large": send("text/plain", "x".repeat(6 * 1024 * 1024)) })
        const tools = yield* bench()
        assert.match((yield* tools.fail("fetch", { url: `${url}/none` })).message, /answered HTTP 404: not here/)
        assert.include((yield* tools.fail("fetch", { url: `${url}/large` })).message, "has more than 5242880 bytes")
      })
  )

  it.scoped("TO-782: private addresses are refused, as numbers and by name, before anything is sent", () =>
    Effect.gen(function* () {
      let asked = 0
      const url = yield* serving({ "/": (response) => void ((asked += 1), response.end()) })
      const tools = yield* makeWorkbench({ tools: withFetch() })
      const { port } = new URL(url)
      for (const host of ["127.0.0.1", "localhost", "[::1]", "2130706433", "0", "[::ffff:127.0.0.1]"]) {
        const { message } = yield* tools.fail("fetch", { url: `http://${host}:${port}/` })
        assert.match(message, /this machine or of a private network/, host)
      }
      assert.strictEqual(asked, 0)
    })
  )

  it("TO-782: private and special networks are known, public addresses are not", () => {
    for (const address of [
      "10.1.2.3",
      "169.254.169.254",
      "172.31.0.1",
      "192.168.1.1",
      "100.64.0.1",
      "fd00::1",
      "fe80::1"
    ])
      assert.isTrue(isPrivate(address), address)
    for (const address of ["::ffff:10.0.0.1", "64:ff9b::a00:1", "239.1.1.1", "::"])
      assert.isTrue(isPrivate(address), address)
    for (const address of ["1.1.1.1", "93.184.216.34", "2606:4700::1111"]) assert.isFalse(isPrivate(address), address)
  })

  it.scoped("TO-783: each address needs permission, and an answer for always is for its origin", () =>
    Effect.gen(function* () {
      const url = yield* serving({ "/": send("text/plain", "x") })
      const tools = yield* bench({ rules: [] })
      const { message, type } = yield* tools.fail("fetch", { url: `${url}/` })
      assert.strictEqual(type, "permission.denied")
      assert.include(message, `"fetch" on "${url}/"`)
      assert.deepStrictEqual(
        tools.asked.map(({ always, resources }) => [resources, always]),
        [[[`${url}/`], [`${url}/*`]]]
      )
      assert.include((yield* tools.fail("fetch", { url: "http://me:secret@example.org/" })).message, "is not read")
      assert.include((yield* tools.fail("fetch", { url: "file:///etc/passwd" })).message, "is no address with https://")
    })
  )
})
