import { assert, describe, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { HttpRefused, safeFetch, sameOrigin } from "../../packages/core/src/http/SameOrigin.ts"
import { maxRedirects } from "../../packages/core/src/support/Limits.ts"
import { fine, origin, redirect } from "./support/Origins.ts"

const statuses = [301, 302, 303, 307, 308] as const
const key = "sk-test-0123456789abcdef"

const post = (
  url: string,
  body: string | ReadableStream = '{"prompt":"secret words"}'
): RequestInit & { readonly url: string } => ({
  url,
  method: "POST",
  headers: { "x-api-key": key, authorization: `Bearer ${key}`, "content-type": "application/json" },
  body
})

const refusal = ({ url, ...init }: RequestInit & { readonly url: string }) =>
  Effect.map(Effect.flip(Effect.tryPromise({ try: () => safeFetch(url, init), catch: (error) => error })), (error) => {
    assert.instanceOf(error, HttpRefused)
    return error.message
  })

describe("a redirect to another origin", () => {
  for (const status of statuses) {
    it.scopedLive(`LM-1: ${status} is not followed, nothing is sent there, and the error names both origins`, () =>
      Effect.gen(function* () {
        const other = yield* origin(fine)
        const own = yield* origin(redirect(status, `${other.url}/collect?token=hidden`))
        const message = yield* refusal(post(`${own.url}/v1/messages`))
        assert.strictEqual(
          message,
          `${own.url} answered with a redirect to ${other.url}, which is another origin: it was not followed`
        )
        assert.lengthOf(other.asked, 0)
      })
    )
  }

  it.scopedLive("LM-1: another spelling of the host, another port, scheme or authority is another origin", () =>
    Effect.gen(function* () {
      const other = yield* origin(fine)
      const { port } = other
      const locations = [
        `http://localhost:${port}/`,
        `http://127.0.0.2:${port}/`,
        `http://[::1]:${port}/`,
        `//127.0.0.1:${port}/network-path`,
        `\\\\127.0.0.1:${port}\\x`,
        `http://own.example@127.0.0.1:${port}/`,
        `HTTP://127.0.0.1:${port}`,
        "file:///etc/passwd",
        "data:text/plain,x",
        "http://[bad",
        `http://${"a".repeat(300)}:70000/`
      ]
      for (const location of locations) {
        const own = yield* origin(redirect(307, location))
        assert.include(yield* refusal(post(own.url)), own.url, location)
      }
      // The same port under another name is another origin as well, and so is a blob address with ours inside.
      const own = yield* origin((asked, response) => redirect(307, asked.headers["x-to"] as string)(asked, response))
      for (const to of [`http://localhost:${own.port}/`, `https://127.0.0.1:${own.port}/`, `blob:${own.url}/1`]) {
        const request = post(own.url)
        yield* refusal({ ...request, headers: { ...request.headers, "x-to": to } })
      }
      assert.lengthOf(own.asked, 3)
      assert.lengthOf(other.asked, 0)
    })
  )

  it.scopedLive("LM-1: it is refused at the end of a chain within the origin too", () =>
    Effect.gen(function* () {
      const other = yield* origin(fine)
      const own = yield* origin((asked, response) =>
        redirect(307, asked.path === "/3" ? `${other.url}/` : `/${Number(asked.path.slice(1)) + 1}`)(asked, response)
      )
      yield* refusal(post(`${own.url}/1`))
      assert.deepStrictEqual(own.asked.map(Struct.get("path")), ["/1", "/2", "/3"])
      assert.lengthOf(other.asked, 0)
    })
  )

  it.effect("LM-1: from https to http of the same host is another origin", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const fetch = sameOrigin(async (input) => {
        seen.push(String(input))
        return new Response(null, { status: 308, headers: { location: "http://api.example/v1" } })
      })
      const error = yield* Effect.flip(Effect.tryPromise({ try: () => fetch("https://api.example/v1"), catch: String }))
      assert.include(error, "https://api.example answered with a redirect to http://api.example,")
      assert.deepStrictEqual(seen, ["https://api.example/v1"])
    })
  )

  it.scopedLive("LM-4: no user, password or query of an address is in an error", () =>
    Effect.gen(function* () {
      const own = yield* origin(redirect(302, `http://me:pa55word@127.0.0.1:1/?token=hidden`))
      assert.notMatch(yield* refusal(post(`${own.url}/?key=hidden`)), /pa55word|hidden/)
      const same = yield* origin((asked, response) =>
        redirect(302, `http://me:pa55word@${asked.headers.host}/`)(asked, response)
      )
      const message = yield* refusal(post(same.url))
      assert.include(message, "with a user name or password")
      assert.notInclude(message, "pa55word")
      const url = own.url.replace("http://", "http://me:pa55word@")
      const error = yield* Effect.flip(Effect.tryPromise({ try: () => safeFetch(url), catch: String }))
      assert.include(error, `the address at ${own.url} has a user name or password`)
      assert.notInclude(error, "pa55word")
    })
  )
})

describe("a redirect within the origin", () => {
  for (const status of statuses) {
    it.scopedLive(`LM-2: ${status} is followed, relative or absolute, as the fetch standard has it`, () =>
      Effect.gen(function* () {
        const own = yield* origin((asked, response) => {
          if (asked.path === "/a/b") return redirect(status, "../c?x=1#part")(asked, response)
          if (asked.path === "/c?x=1") return redirect(status, `http://${asked.headers.host}/d`)(asked, response)
          return fine(asked, response)
        })
        const { url, ...init } = post(`${own.url}/a/b`)
        const text = yield* Effect.promise(async () => (await safeFetch(url, init)).text())
        assert.strictEqual(text, "fine")
        const last = own.asked[2]
        assert.strictEqual(last?.path, "/d")
        assert.strictEqual(last?.headers["x-api-key"], key)
        const again = status >= 307
        assert.strictEqual(last?.method, again ? "POST" : "GET")
        assert.strictEqual(last?.body, again ? init.body : "")
        assert.strictEqual(last?.headers["content-type"], again ? "application/json" : undefined)
      })
    )
  }

  it.scopedLive("LM-2: a body that was a stream is not sent again", () =>
    Effect.gen(function* () {
      const own = yield* origin(redirect(307, "/again"))
      const body = new Blob(["words"]).stream()
      const request: RequestInit & { duplex: "half"; url: string } = { ...post(own.url, body), duplex: "half" }
      assert.include(yield* refusal(request), "cannot be sent again")
      assert.lengthOf(own.asked, 1)
    })
  )

  it.scopedLive("LM-3: a chain without an end is left after so many redirects", () =>
    Effect.gen(function* () {
      const own = yield* origin((asked, response) => redirect(302, `${asked.path}x`)(asked, response))
      assert.include(yield* refusal(post(own.url)), `more than ${maxRedirects} times`)
      assert.lengthOf(own.asked, maxRedirects + 1)
    })
  )

  it.scopedLive("LM-2: an answer that names no place to go is the answer", () =>
    Effect.gen(function* () {
      const own = yield* origin((_, response) => void response.writeHead(304).end())
      assert.strictEqual((yield* Effect.promise(() => safeFetch(own.url))).status, 304)
    })
  )
})
