/** Which requests the server of the live page answers, and what every answer says to a browser. */
import { connect } from "node:net"
import { assert, it } from "@effect/vitest"
import { Effect, FastCheck as fc } from "effect"
import { type AccessToken, fresh, matches } from "../../packages/server/src/http/AccessToken.ts"
import { refusal } from "../../packages/server/src/http/LocalServer.ts"
import { fileLog } from "../support/Database.ts"
import { ask } from "./support/Http.ts"
import { serving, token } from "./support/Served.ts"

const paths = ["/", "/page.css", "/page.js", "/icon.svg", "/events", "/missing"]

/** The status of a request whose head is written as it is. */
const raw = (port: number, head: string) =>
  Effect.async<string>((resume) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(head))
    let text = ""
    socket.setEncoding("utf8").on("data", (part: string) => {
      text += part
      if (!text.includes("\r\n")) return
      socket.destroy()
      resume(Effect.succeed(text.split(" ")[1] ?? ""))
    })
    socket.once("error", (error) => resume(Effect.die(error)))
  })

it.scopedLive("SL-217: without the token, or with another one or two, nothing is answered", () =>
  serving(({ at, port }) =>
    Effect.gen(function* () {
      for (const path of paths) {
        const bare = `http://127.0.0.1:${port}${path}`
        const others = ["", "?token=", `?token=${token.slice(1)}`, `?token=${token}0`, `?Token=${token}`]
        for (const query of [...others, `?token=${token}&token=${token}`, `?token=0&token=${token}`]) {
          const { body, status } = yield* ask(`${bare}${query}`)
          assert.deepStrictEqual([status, body.includes("no token")], [401, true], `${path}${query}`)
        }
        const { status } = yield* ask(at(path), { method: "HEAD" })
        assert.strictEqual(status, path === "/missing" ? 404 : 200)
      }
    })
  ).pipe(Effect.provide(fileLog))
)

it.effect("SL-217: a token has 128 random bits, and only the whole token matches it", () =>
  Effect.gen(function* () {
    const tokens = yield* Effect.replicateEffect(fresh, 50)
    assert.strictEqual(new Set(tokens).size, 50)
    for (const token of tokens) assert.strictEqual(Buffer.from(token, "base64url").length, 16)
    const [one] = tokens as [AccessToken]
    assert.isTrue(matches(one, one))
    fc.assert(fc.property(fc.string(), (text) => !matches(one, text) && !matches(one, one + text.padEnd(1))))
  })
)

it.scopedLive(
  "SL-218: only this machine's own names in Host, no foreign Origin, and only GET and HEAD are answered",
  () =>
    serving(({ at, port }) =>
      Effect.gen(function* () {
        const status = (headers: Record<string, string>, method = "GET") =>
          Effect.map(ask(at("/"), { headers, method }), (answer) => answer.status)
        for (const host of [`127.0.0.1:${port}`, "127.0.0.1", "localhost", "LOCALHOST:8080", "[::1]:9"]) {
          assert.strictEqual(yield* status({ host }), 200, host)
          assert.strictEqual(yield* status({ host, origin: `http://${host}` }), 200, host)
        }
        for (const host of [
          "example.com",
          "127.0.0.1.example.com",
          "localhost.",
          "0.0.0.0",
          "127.0.0.1:x",
          "a@127.0.0.1"
        ]) {
          assert.strictEqual(yield* status({ host }), 403, host)
        }
        const own = `127.0.0.1:${port}`
        for (const origin of [
          "http://example.com",
          `https://${own}`,
          "http://127.0.0.1:1",
          "null",
          "",
          `http://${own}/`
        ]) {
          assert.strictEqual(yield* status({ host: own, origin }), 403, origin)
        }
        assert.strictEqual(yield* raw(port, `GET /?token=${token} HTTP/1.0\r\n\r\n`), "403")
        for (const method of ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"]) {
          const answer = yield* ask(at("/"), { method })
          assert.deepStrictEqual([answer.status, answer.headers.allow], [405, "GET, HEAD"], method)
        }
        const head = yield* ask(at("/"), { method: "HEAD" })
        assert.deepStrictEqual([head.status, head.body], [200, ""])
      })
    ).pipe(Effect.provide(fileLog))
)

it("SL-218: a request is judged by Host, Origin and method before its token", () => {
  const good = { method: "GET", host: "localhost", origin: undefined, tokens: [token] }
  assert.isUndefined(refusal(good, token))
  const statuses = [
    { ...good, tokens: [] },
    { ...good, tokens: [], method: "POST" },
    { ...good, tokens: [], method: "POST", origin: "http://a" },
    { ...good, tokens: [], method: "POST", origin: "http://a", host: "a" }
  ].map((asked) => refusal(asked, token)?.status)
  assert.deepStrictEqual(statuses, [401, 405, 403, 403])
})

it.scopedLive("SL-219: every answer, a refusal too, is not stored, leaks no address, and has the strict policy", () =>
  serving(({ at, port }) =>
    Effect.gen(function* () {
      const asked = [
        ...paths.map((path) => ask(at(path), { method: "HEAD" })),
        ask(`http://127.0.0.1:${port}/`),
        ask(at("/"), { method: "POST" }),
        ask(at("/"), { headers: { host: "example.com" } }),
        ask(at("/events", { after: "x" }))
      ]
      for (const { headers } of yield* Effect.all(asked)) {
        assert.strictEqual(headers["cache-control"], "no-store")
        assert.strictEqual(headers["referrer-policy"], "no-referrer")
        assert.strictEqual(headers["x-content-type-options"], "nosniff")
        assert.strictEqual(headers["cross-origin-resource-policy"], "same-origin")
        const policy = String(headers["content-security-policy"])
        assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/)
        assert.include(policy, "frame-ancestors 'none'")
        assert.include(policy, "require-trusted-types-for 'script'; trusted-types 'none'")
        assert.notMatch(policy, /unsafe|https?:|\*|data:/)
      }
      const { body } = yield* ask(at("/"))
      assert.notMatch(body, /<style|\sstyle=|\son\w+=|<script(?![^>]* src="page\.js)|https?:/)
      assert.strictEqual((yield* ask(at("/page.js"))).headers["content-type"], "text/javascript; charset=utf-8")
    })
  ).pipe(Effect.provide(fileLog))
)
