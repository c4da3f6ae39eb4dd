/** What setup asks and keeps. Method: a pseudo-terminal, and a model server on the loopback that lists its models. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync, statSync, writeFileSync } from "node:fs"
import { createServer, type IncomingHttpHeaders } from "node:http"
import { join } from "node:path"
import { build } from "./support/Bundle.ts"
import { place, type Place, type Running } from "./support/Process.ts"

beforeAll(() => void build())

const key = "sk-test'1#=2"

/** A server that lists two models to those who have the key. */
const listing = Effect.acquireRelease(
  Effect.async<{ readonly url: string; readonly asked: Array<IncomingHttpHeaders>; readonly close: () => void }>(
    (resume) => {
      const asked: Array<IncomingHttpHeaders> = []
      const server = createServer(({ headers, url = "" }, response) => {
        asked.push(headers)
        if (url !== "/v1/models") return void response.writeHead(404).end()
        if (headers.authorization !== `Bearer ${key}`) return void response.writeHead(401).end("{}")
        response.setHeader("content-type", "application/json")
        response.end(JSON.stringify({ data: [{ id: "small" }, { id: "large" }] }))
      }).listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" ? address?.port : undefined
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}/v1`, asked, close: () => void server.close().unref() }))
      })
    }
  ),
  ({ close }) => Effect.sync(close)
)

const kept = (here: Place) => join(here.root, "data", "daybook", "keys.env")
const envOf = (here: Place) => ({ XDG_DATA_HOME: join(here.root, "data"), SHELL: "/bin/sh" })

/** Answers questions in order: each answer is typed when its question is there. */
const answering = (running: Running, answers: ReadonlyArray<readonly [question: string, answer: string]>) =>
  Effect.gen(function* () {
    const times = new Map<string, number>()
    for (const [question, answer] of answers) {
      const asked = (times.get(question) ?? 0) + 1
      times.set(question, asked)
      yield* running.until("stdout", (text) => text.split(question).length > asked)
      yield* running.type(`${answer}\r`)
    }
    return yield* running.ended
  })

describe("setup", () => {
  it.scopedLive("CL-780: it keeps an address, its key and a model, and a later command uses them", () =>
    Effect.gen(function* () {
      const here = yield* place
      const { asked, url } = yield* listing
      const env = envOf(here)
      const running = yield* here.startAlone(["setup"], { env, terminal: { columns: 200, rows: 60 } })
      const { code, stdout } = yield* answering(running, [
        ["Enter skips: ", url],
        ["Enter for none: ", "wrong"],
        ["Keep it all the same? [y/N] ", "n"],
        ["Enter for none: ", key],
        ["Enter for 1: ", "2"]
      ])
      assert.strictEqual(code, 0)
      assert.include(stdout, "it lists 2 models")
      assert.include(stdout, "the default model is openai-compatible/large")
      assert.notInclude(stdout, key)
      assert.strictEqual(statSync(kept(here)).mode & 0o777, 0o600)
      assert.isAtLeast(asked.length, 2)
      const listed = yield* here.run(["models"], { env })
      assert.match(listed.stdout, /openai-compatible\/large .*default/)
    })
  )

  it.scopedLive("CL-780: an address without a path is completed, and a wrong one can be given again", () =>
    Effect.gen(function* () {
      const here = yield* place
      const { url } = yield* listing
      const env = envOf(here)
      const running = yield* here.startAlone(["setup"], { env, terminal: { columns: 200, rows: 60 } })
      const { stdout } = yield* answering(running, [
        ["Enter skips: ", `${url}/wrong`],
        ["Enter for none: ", key],
        ["Keep it all the same? [y/N] ", "n"],
        // As a browser shows it.
        ["Enter skips: ", url.replace(/^http:\/\/|\/v1$/g, "")],
        ["Enter for none: ", key],
        ["Enter for 1: ", ""]
      ])
      assert.include(stdout, "Ready: daybook opens a screen here")
      assert.match(stdout, /\/v1\/wrong\/models answered HTTP 404/)
      assert.include(readFileSync(kept(here), "utf8"), `DAYBOOK_BASE_URL="${url}"`)
    })
  )

  it.scopedLive("CL-780: Enter skips every step, and nothing is written", () =>
    Effect.gen(function* () {
      const here = yield* place
      const running = yield* here.startAlone(["setup"], { env: envOf(here), terminal: { columns: 200, rows: 60 } })
      const { code, stdout } = yield* answering(running, [["Enter skips: ", ""]])
      assert.include(stdout, "No model server was set up: the offline model answers")
      assert.notInclude(stdout, "Ready")
      assert.strictEqual(code, 0)
      assert.throws(() => statSync(kept(here)))
    })
  )

  it.scopedLive("CL-783: without a terminal the key comes from stdin, and is never printed", () =>
    Effect.gen(function* () {
      const here = yield* place
      const { url } = yield* listing
      const env = envOf(here)
      const refused = yield* here.run(["setup"], { env })
      assert.match(refused.stderr, /^daybook: setup asks at a terminal; elsewhere use --provider and --model, or set /)
      assert.strictEqual(refused.code, 2)
      const { code, stderr } = yield* here.run(["setup", "--provider", url], { env, input: `${key}\n` })
      assert.strictEqual(code, 0)
      assert.notInclude(stderr, key)
      assert.include(readFileSync(kept(here), "utf8"), `DAYBOOK_API_KEY="${key}"`)
      const unknown = yield* here.run(["setup", "--provider", "antropic"], { env, input: key })
      assert.match(unknown.stderr, /there is no model server "antropic"; did you mean anthropic\?/)
      const own = yield* here.run(["setup", "--provider", "ollama"], { env, input: "" })
      assert.match(own.stderr, /there is no model server "ollama"; for a server of your own, give its address/)
    })
  )

  it.scopedLive("CL-783: a server of one's own needs no key", () =>
    Effect.gen(function* () {
      const here = yield* place
      const env = envOf(here)
      const own = yield* here.run(["setup", "--provider", "http://127.0.0.1:1/v1"], { env, input: "" })
      assert.strictEqual(own.code, 0)
      assert.include(readFileSync(kept(here), "utf8"), 'DAYBOOK_BASE_URL="http://127.0.0.1:1/v1"')
      const known = yield* here.run(["setup", "--provider", "mistral"], { env, input: "" })
      assert.match(known.stderr, /no key was given/)
    })
  )

  it.scopedLive("CL-783: a folder that cannot be made is named in one sentence", () =>
    Effect.gen(function* () {
      const here = yield* place
      const { url } = yield* listing
      writeFileSync(join(here.root, "data"), "a file")
      const { code, stderr } = yield* here.run(["setup", "--provider", url], { env: envOf(here), input: key })
      assert.deepStrictEqual([code, stderr], [1, `daybook: ${kept(here)} cannot be written (ENOTDIR)\n`])
    })
  )

  it.scopedLive("CL-782: the environment takes precedence over what is kept, and other names have no effect", () =>
    Effect.gen(function* () {
      const here = yield* place
      const { asked, url } = yield* listing
      const env = envOf(here)
      yield* here.run(["setup", "--provider", url], { env, input: "kept-key" })
      const before = asked.length
      yield* here.run(["models"], { env: { ...env, DAYBOOK_API_KEY: key } })
      assert.strictEqual(asked.at(-1)?.authorization, `Bearer ${key}`)
      yield* here.run(["models"], { env })
      assert.isAbove(asked.length, before + 1)
      assert.strictEqual(asked.at(-1)?.authorization, "Bearer kept-key")
    })
  )
})
