/** The inspector of the bundled command, as a process serves it. */
import { assert, beforeAll, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { policy } from "../../packages/inspector/src/Inspector.ts"
import { build } from "../cli/support/Bundle.ts"
import { place } from "../cli/support/Process.ts"

beforeAll(() => void build())

const Ready = Schema.parseJson(Schema.Struct({ http: Schema.Struct({ url: Schema.String, inspector: Schema.String }) }))

it.scopedLive("IP-1, IP-2, IP-3: the command serves the page and its files with their policy, without a token", () =>
  Effect.gen(function* () {
    const here = yield* place
    const server = yield* here.start(["serve", "--json", "--http", "127.0.0.1:0"])
    const { http } = yield* Schema.decodeUnknown(Ready)(yield* server.until("stdout", (text) => text.includes("\n")))
    const get = (path: string) =>
      Effect.promise(async (signal) => {
        const response = await fetch(http.url + path, { signal })
        return { status: response.status, headers: response.headers, text: await response.text() }
      })
    const page = yield* get("/")
    assert.strictEqual(page.status, 200)
    assert.strictEqual(page.headers.get("content-security-policy"), policy)
    const files = Array.from(page.text.matchAll(/(?:href|src)="([^"]+)"/g), ([, path]) => path ?? "")
    assert.deepEqual(files, ["inspector/icon.svg", "inspector/page.css", "inspector/page.js"])
    const types = ["image/svg+xml", "text/css; charset=utf-8", "text/javascript; charset=utf-8"]
    for (const [index, path] of files.entries()) {
      const file = yield* get(`/${path}`)
      assert.strictEqual(file.headers.get("content-type"), types[index])
      assert.isAbove(file.text.length, 100)
      assert.notInclude(file.text, "sourceMappingURL")
    }
    assert.strictEqual((yield* get("/sessions")).status, 401)
    yield* server.signal("SIGTERM")
    assert.deepEqual((yield* server.ended).code, 0)
  })
)
