/** `daybook serve --http` and `daybook token` as processes. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { chmodSync, existsSync, readFileSync, rmSync, statSync } from "node:fs"
import { get } from "node:https"
import { join } from "node:path"
import { lacks } from "../support/Parts.ts"
import * as Certificate from "../server/http/support/Certificate.ts"
import { build } from "./support/Bundle.ts"
import { held } from "./support/Held.ts"
import type { Options, Place } from "./support/Process.ts"

beforeAll(() => void build())

const Ready = Schema.parseJson(
  Schema.Struct({
    type: Schema.Literal("ready"),
    sockets: Schema.Array(Schema.Struct({ path: Schema.String })),
    http: Schema.Struct({ url: Schema.String, inspector: Schema.String })
  })
)

/** Starts a server on a free port; its process, and what it says when it is ready. */
const serving = Effect.fnUntraced(function* (here: Place, words: ReadonlyArray<string>, options: Options) {
  const server = yield* here.start(["serve", "--json", "--show-token", "--http", "127.0.0.1:0", ...words], options)
  const text = yield* server.until("stdout", (text) => text.includes("\n"))
  return { server, ready: yield* Schema.decodeUnknown(Ready)(text) }
})

const tokenFile = (here: Place) => join(here.root, ".local", "share", "daybook", "http-token")

const status = (url: string, token: string, init: RequestInit = {}) =>
  Effect.promise((signal) =>
    fetch(url, { signal, ...init, headers: { authorization: `Bearer ${token}` } }).then((response) => response.status)
  )

describe("serve --http", () => {
  it.scopedLive("CL-300: alone, it serves the sessions and keeps no files", () =>
    Effect.gen(function* () {
      const { env, here } = yield* held
      const { ready, server } = yield* serving(here, [], { env })
      const [address, token = ""] = ready.http.inspector.split("#token=")
      assert.strictEqual(address, `${ready.http.url}/`)
      assert.strictEqual(yield* status(`${ready.http.url}/sessions`, token), 200)
      assert.deepEqual(ready.sockets, [])
      yield* server.signal("SIGTERM")
      const { code, stderr } = yield* server.ended
      assert.strictEqual(code, 0)
      assert.notMatch(stderr, / (?:warning|error) /)
      assert.isFalse(existsSync(join(here.root, "data", "ctx")))
    })
  )

  it.scopedLive("CL-541: it prints its token only at a terminal, or if it is asked for it", () =>
    Effect.gen(function* () {
      const { env, here } = yield* held
      const shown = Effect.fnUntraced(function* (words: ReadonlyArray<string>, options: Options = {}) {
        const server = yield* here.start(["serve", "--http", "127.0.0.1:0", ...words], { env, ...options })
        const ready = words.includes("--json") ? /"type":"ready".*\n/ : /ready\r?\n/
        yield* server.until("stdout", (text) => ready.test(text))
        yield* server.signal("SIGTERM")
        const { stderr, stdout } = yield* server.ended
        return stdout + stderr
      })
      const plain = yield* shown([])
      const token = readFileSync(tokenFile(here), "utf8").trim()
      assert.notInclude(plain + (yield* shown(["--json"])), token)
      assert.include(plain, "\nopen http://127.0.0.1:")
      assert.include(yield* shown(["--show-token"]), `/#token=${token}`)
      assert.include(yield* shown(["--json", "--show-token"]), `/#token=${token}`)
      assert.include(yield* shown([], { terminal: { columns: 200, rows: 20 } }), `/#token=${token}`)
    })
  )

  it.scopedLive("CL-300: with an agent, it serves the socket and the sessions", () =>
    Effect.gen(function* () {
      const { env, here } = yield* held
      const { ready } = yield* serving(here, ["--agent", "build"], { env })
      assert.isTrue(existsSync(ready.sockets[0]?.path ?? ""))
      assert.strictEqual(yield* status(`${ready.http.url}/sessions`, "wrong"), 401)
    })
  )

  it.scopedLive.skipIf(lacks("openssl"))(
    "CL-300, HT-23: with a certificate, it serves over TLS alone, also at an address of other machines",
    () =>
      Effect.gen(function* () {
        const { env, here } = yield* held
        const { cert, key } = Certificate.make(here.root)
        const words = ["serve", "--json", "--show-token", "--http", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key]
        const server = yield* here.start(words, { env })
        const { http } = yield* Schema.decodeUnknown(Ready)(
          yield* server.until("stdout", (text) => text.includes("\n"))
        )
        const { port, protocol } = new URL(http.url)
        assert.strictEqual(protocol, "https:")
        const found = yield* Effect.async<number | undefined, Error>((resume) => {
          const authorization = `Bearer ${http.inspector.split("#token=")[1] ?? ""}`
          const options = { ca: readFileSync(cert), headers: { authorization } }
          get(`https://127.0.0.1:${port}/sessions`, options, (response) => {
            response.resume()
            resume(Effect.succeed(response.statusCode))
          }).once("error", (cause) => resume(Effect.fail(cause)))
        })
        assert.strictEqual(found, 200)
        const plain = yield* Effect.promise(() =>
          fetch(`http://127.0.0.1:${port}/health`).then(
            () => "answered",
            () => "refused"
          )
        )
        assert.strictEqual(plain, "refused")
        yield* server.signal("SIGTERM")
        assert.strictEqual((yield* server.ended).code, 0)
        const missing = yield* here.run([...words.slice(0, -1), join(here.root, "nowhere")], { env })
        assert.deepStrictEqual([missing.code, missing.stdout], [1, ""])
        assert.include(missing.stderr, "nowhere")
      })
  )

  it.scopedLive("CL-301: options of HTTP that do not fit are refused before anything is made", () =>
    Effect.gen(function* () {
      const { env, here } = yield* held
      for (const [words, says] of [
        [["--http", "4310"], "an address with a port"],
        [["--http", "127.0.0.1:65536"], "an address with a port"],
        [["--http", "127.0.0.1:0", "--tls-cert", "x"], "--tls-cert and --tls-key come together"],
        [["--agent", "build", "--behind-proxy"], "need --http"],
        [["--agent", "build", "--show-token"], "need --http"],
        [["--agent", "build", "--http-origin", "https://app.example"], "need --http"],
        [["--http", "127.0.0.1:0", "--http-origin", "*"], "--http-origin: expected an origin"],
        [["--agent", "build", "--http-root", "."], "need --http"]
      ] as const) {
        const ended = yield* here.run(["serve", ...words], { env })
        assert.deepEqual([ended.code, ended.stdout], [2, ""])
        assert.include(ended.stderr, says)
        assert.isFalse(existsSync(join(here.root, "data")))
      }
      const open = yield* here.run(["serve", "--http", "0.0.0.0:0"], { env })
      assert.strictEqual(open.code, 2)
      assert.include(open.stderr, "--behind-proxy")
    })
  )

  it.scopedLive("CL-301: a host of another machine, and a certificate that is not there, are told in words", () =>
    Effect.gen(function* () {
      const { env, here } = yield* held
      const local = ["serve", "--http", "127.0.0.1:0", "--tls-cert", "/nowhere", "--tls-key", "/nowhere"]
      const unread = yield* here.run(local, { env })
      assert.match(unread.stderr, /\ndaybook: \/nowhere: it cannot be read \(ENOENT\)\n$/)
      // The address is reserved for documentation.
      const away = yield* here.run(["serve", "--http", "192.0.2.1:4310", "--behind-proxy"], { env })
      assert.match(away.stderr, /\ndaybook: cannot listen at port 4310: its host is no address of this machine\n$/)
    })
  )
})

/** The answer to a request with a token. */
const called = (url: string, token: string, method: "GET" | "POST", body?: unknown) =>
  Effect.promise(async (signal) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await fetch(url, { signal, method, headers, ...sent })
    const text = await response.text()
    return { status: response.status, body: text === "" ? undefined : (JSON.parse(text) as unknown) }
  })

const Waiting = Schema.Tuple(Schema.Struct({ messageID: Schema.String, callID: Schema.String }))

describe("a question of a model", () => {
  it.scopedLive("CL-480: without a terminal models get the tool question, and a client of HTTP answers it", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const { ready } = yield* serving(here, [], { env })
      const [url, token = ""] = ready.http.inspector.split("/#token=")
      const at = `${url}/sessions/ses_asks`
      yield* called(`${url}/sessions`, token, "POST", { id: "ses_asks", location: { directory: here.cwd } })
      yield* called(`${at}/prompts`, token, "POST", { prompt: { text: "Which one?" } })
      const asking = yield* model.next
      assert.include(asking.body.tools?.map((tool) => tool.function.name) ?? [], "question")
      yield* asking.toolCall("q1", "question", { questions: [{ question: "Which database?" }] })
      yield* asking.finish("tool_calls")
      const events = yield* here.start(["events", "ses_asks", "--json", "--follow"], { env })
      yield* events.until("stdout", (text) => text.includes("session.next.tool.called"))
      const open = yield* called(`${at}/questions`, token, "GET")
      const [{ callID, messageID }] = yield* Schema.decodeUnknown(Waiting)(open.body)
      const answers = ["PostgreSQL"]
      const given = yield* called(`${at}/questions/${messageID}/${callID}/answer`, token, "POST", { answers })
      assert.strictEqual(given.status, 204)
      assert.include(JSON.stringify((yield* model.next).body.messages), "PostgreSQL")
    })
  )
})

describe("a server that was killed", () => {
  it.scopedLive("HT-58: the next one settles its run, and runs the prompt that waited behind it", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const first = yield* serving(here, [], { env })
      const [url, token = ""] = first.ready.http.inspector.split("/#token=")
      const post = (path: string, body: unknown) => called(`${url}${path}`, token, "POST", body)
      yield* post("/sessions", { id: "ses_left", location: { directory: here.cwd } })
      yield* post("/sessions/ses_left/prompts", { prompt: { text: "the first" } })
      yield* model.next
      yield* post("/sessions/ses_left/prompts", { prompt: { text: "the second" }, delivery: "queue" })
      yield* first.server.signal("SIGKILL")
      yield* first.server.ended
      yield* serving(here, [], { env })
      const { body, finish, text } = yield* model.next
      assert.include(JSON.stringify(body.messages), "the second")
      yield* text("done")
      yield* finish()
      const done = yield* here.start(["events", "ses_left", "--json", "--follow"], { env })
      const outcomes = (text: string) => [...text.matchAll(/"outcome":"(\w+)"/g)].map(([, outcome]) => outcome)
      const shown = yield* done.until("stdout", (text) => outcomes(text).length === 2)
      assert.deepStrictEqual(outcomes(shown), ["interrupted", "completed"])
    })
  )
})

describe("token", () => {
  it.scopedLive("CL-302: a token has the scope that was asked for, and no more", () =>
    Effect.gen(function* () {
      const { env, here } = yield* held
      const { ready } = yield* serving(here, [], { env })
      const token = (yield* here.run(["token"], { env })).stdout.trim()
      assert.strictEqual(yield* status(`${ready.http.url}/sessions`, token), 200)
      const remove = { method: "DELETE" }
      assert.strictEqual(yield* status(`${ready.http.url}/sessions/ses_1`, token, remove), 403)
      const admin = (yield* here.run(["token", "--scope", "admin", "--expires", "1h"], { env })).stdout.trim()
      assert.strictEqual(yield* status(`${ready.http.url}/sessions/ses_1`, admin, remove), 404)
      const one = (yield* here.run(["token", "--session", "ses_2"], { env })).stdout.trim()
      assert.strictEqual(yield* status(`${ready.http.url}/sessions/ses_1`, one), 403)
    })
  )

  it.scopedLive("CL-302: a token ends after its time, by default after 30 days, or never", () =>
    Effect.gen(function* () {
      const { env, here } = yield* held
      const days = Effect.fnUntraced(function* (...words: ReadonlyArray<string>) {
        const { expires } = JSON.parse((yield* here.run(["token", "--json", ...words], { env })).stdout)
        return expires === undefined ? "never" : Math.round((expires - Date.now()) / 86_400_000)
      })
      assert.deepEqual(
        [yield* days(), yield* days("--expires", "2d"), yield* days("--expires", "never")],
        [30, 2, "never"]
      )
    })
  )

  it.scopedLive("HT-22: the server's token is generated once, and only its owner may read it", () =>
    Effect.gen(function* () {
      const { env, here } = yield* held
      const [first, second] = yield* Effect.all([here.run(["token"], { env }), here.run(["token"], { env })], {
        concurrency: 2
      })
      assert.deepEqual([first.code, second.code], [0, 0])
      const path = tokenFile(here)
      const secret = readFileSync(path, "utf8")
      assert.strictEqual(statSync(path).mode & 0o777, 0o600)
      const { ready } = yield* serving(here, [], { env })
      assert.strictEqual(readFileSync(path, "utf8"), secret)
      for (const { stdout } of [first, second]) {
        assert.strictEqual(yield* status(`${ready.http.url}/sessions`, stdout.trim()), 200)
      }
      chmodSync(path, 0o644)
      const refused = yield* here.run(["token"], { env })
      assert.deepEqual([refused.code, refused.stdout], [1, ""])
      assert.include(refused.stderr, "others may read it")
    })
  )

  it.scopedLive("HT-22: without the server's own token, the next server accepts no token made from it", () =>
    Effect.gen(function* () {
      const { env, here } = yield* held
      const first = yield* serving(here, [], { env })
      const token = (yield* here.run(["token", "--scope", "admin"], { env })).stdout.trim()
      assert.strictEqual(yield* status(`${first.ready.http.url}/sessions`, token), 200)
      yield* first.server.signal("SIGTERM")
      assert.strictEqual((yield* first.server.ended).code, 0)
      rmSync(tokenFile(here))
      const { ready } = yield* serving(here, [], { env })
      assert.strictEqual(yield* status(`${ready.http.url}/sessions`, token), 401)
      const fresh = (yield* here.run(["token"], { env })).stdout.trim()
      assert.strictEqual(yield* status(`${ready.http.url}/sessions`, fresh), 200)
    })
  )
})
