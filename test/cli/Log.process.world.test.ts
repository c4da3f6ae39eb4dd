/** What a server logs on stderr, and what is exported to a collector on the loopback. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Queue, type Scope } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { createServer, type IncomingHttpHeaders } from "node:http"
import { join } from "node:path"
import { database, servedNode } from "../cluster/support/ServedNode.ts"
import { lacks } from "../support/Parts.ts"
import { waitingFor } from "../support/Waiting.ts"
import { build } from "./support/Bundle.ts"
import { ask } from "./support/Client.ts"
import { held } from "./support/Held.ts"
import { jsonLines, place, type Place } from "./support/Process.ts"

beforeAll(() => void build())

const configure = (here: Place, text: string) => {
  const folder = join(here.root, ".config", "daybook")
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "config.yaml"), text)
}

interface Export {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** A collector that takes everything, until the scope closes. */
const collector: Effect.Effect<{ readonly url: string; readonly taken: Queue.Dequeue<Export> }, never, Scope.Scope> =
  Effect.gen(function* () {
    const taken = yield* Queue.unbounded<Export>()
    const server = createServer((request, response) => {
      const parts: Array<Buffer> = []
      request.on("data", (part: Buffer) => parts.push(part))
      request.on("end", () => {
        taken.unsafeOffer({ path: request.url ?? "", headers: request.headers, text: Buffer.concat(parts).toString() })
        response.end("{}")
      })
    })
    yield* Effect.acquireRelease(
      Effect.async<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
      () =>
        Effect.sync(() => {
          server.closeAllConnections()
          server.close()
        })
    )
    const address = server.address()
    return { url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`, taken }
  })

describe("the log of serve", () => {
  it.scopedLive(
    "CL-127: each line says when, how bad, what and why, as JSON or as text, from the wanted level on",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        const secret = "sk-very-secret-value"
        configure(here, `mcp: { broken: { command: "/not/there/${secret}" } }`)
        const env = { DAYBOOK_ROOT: join(here.root, "ctx"), OPENAI_API_KEY: secret }
        const serve = Effect.fnUntraced(function* (...words: ReadonlyArray<string>) {
          const server = yield* here.start(["serve", "--agent", "build", ...words], { env })
          yield* server.until("stdout", (text) => text.endsWith("ready\n"))
          yield* server.signal("SIGTERM")
          return (yield* server.ended).stderr
        })
        const isModelNote = (line: string) => line.startsWith("the offline model") || line.includes("model")
        const json = (yield* serve("--log-format", "json")).split("\n").filter((line) => line.startsWith("{"))
        const broken = jsonLines(json.join("\n")).find(({ message }) => String(message).includes("broken"))
        assert.match(String(broken?.["time"]), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
        assert.strictEqual(broken?.["level"], "warning")
        assert.notInclude(json.join("\n"), secret)
        const text = yield* serve()
        assert.match(text, /^\d{4}-\d\d-\d\dT\S+Z warning [^\n]*broken/m)
        assert.notInclude(text, secret)
        const quiet = yield* serve("--log-level", "error")
        assert.notInclude(quiet, "broken")
        assert.isTrue(
          quiet.split("\n").every((line) => line === "" || isModelNote(line)),
          quiet
        )
        const refused = yield* here.run(["serve", "--agent", "build", "--log-level", "loud"], { env })
        assert.strictEqual(refused.code, 2)
        assert.include(refused.stderr, "--log-level: expected debug, info, warning, error or none")
      })
  )
})

describe("the log of serve by default", () => {
  it.scopedLive("CL-540: has the start, the listeners and the stop, and each request over HTTP", () =>
    Effect.gen(function* () {
      const here = yield* place
      const env = { DAYBOOK_ROOT: join(here.root, "ctx") }
      const server = yield* here.start(["serve", "--agent", "build", "--http", "127.0.0.1:0", "--log-format", "json"], {
        env
      })
      const shown = yield* server.until("stdout", (text) => text.endsWith("ready\n"))
      const url = /HTTP listens at (\S+)/.exec(shown)?.[1] ?? ""
      const response = yield* Effect.promise((signal) => fetch(`${url}/sessions?search=private`, { signal }))
      assert.strictEqual(response.status, 401)
      yield* Effect.promise(() => response.text())
      yield* server.until("stderr", (text) => text.includes("GET /sessions 401"))
      yield* server.signal("SIGTERM")
      const { code, stderr } = yield* server.ended
      assert.strictEqual(code, 0)
      const lines = jsonLines(
        stderr
          .split("\n")
          .filter((line) => line.startsWith("{"))
          .join("\n")
      )
      assert.isTrue(lines.every(({ level }) => level === "info"))
      const said = lines.map(({ message }) => String(message))
      assert.match(said[0] ?? "", /^daybook \S+ starts$/)
      assert.deepStrictEqual(said.slice(1), [
        `agent build listens at ${join(here.root, "ctx", "agent", "build.sock")}`,
        `HTTP listens at ${url}`,
        "ready",
        "GET /sessions 401",
        "stopping: SIGTERM",
        "stopped"
      ])
      assert.notInclude(stderr, "private")
    })
  )

  it.scopedLive("CL-540, EX-17: has each run that fails as a warning, with its session and cause, and no secret", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const secret = "sk-very-secret-value"
      const server = yield* here.start(["serve", "--agent", "build", "--log-format", "json"], {
        env: { ...env, OPENAI_API_KEY: secret }
      })
      yield* server.until("stdout", (text) => text.endsWith("ready\n"))
      const socket = join(here.root, "data", "ctx", "agent", "build.sock")
      const asked = yield* Effect.fork(ask(socket, { op: "send", id: "m1", input: "hello" }))
      yield* (yield* model.next).refuse(401, `the key ${secret} is not valid`)
      assert.strictEqual((yield* asked).at(-1)?.["status"], "error")
      const text = yield* server.until("stderr", (text) => text.includes("the work of a session failed"))
      const [failed] = jsonLines(text.split("\n").filter((line) => line.includes('"warning"'))[0] ?? "")
      assert.strictEqual(failed?.["message"], "the work of a session failed")
      assert.match(String(failed?.["session"]), /^ses_/)
      assert.include(String(failed?.["cause"]), "ProviderFailed")
      assert.include(String(failed?.["cause"]), "is not valid")
      assert.notInclude(text, secret)
    })
  )
})

describe("export over OTLP", () => {
  it.scopedLive("CL-128: a run's spans, metrics and logs reach the collector, with service and headers", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const { taken, url } = yield* collector
      const run = yield* here.start(["prompt", "Hi"], {
        env: {
          ...env,
          OTEL_EXPORTER_OTLP_ENDPOINT: url,
          OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
          OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=a%20b",
          OTEL_SERVICE_NAME: "book"
        }
      })
      const turn = yield* model.next
      yield* turn.text("Hello.")
      yield* turn.finish()
      const ended = yield* run.ended
      assert.deepStrictEqual([ended.code, ended.stdout], [0, "Hello.\n"])
      const all = Array.from(yield* waitingFor("an export")(Queue.takeBetween(taken, 2, 100)))
      const of = (path: string) => all.filter((each) => each.path === path)
      const traces = of("/v1/traces")
      assert.isAbove(traces.length, 0)
      for (const name of ["Sessions.prompt", "SessionRunner.turn", "EventLog.append"]) {
        assert.isTrue(
          traces.some(({ text }) => text.includes(`"name":"${name}"`)),
          name
        )
      }
      assert.isTrue(of("/v1/metrics").some(({ text }) => text.includes("daybook_turns_total")))
      for (const { headers, text } of all) {
        assert.strictEqual(headers["x-tenant"], "a b")
        assert.include(text, '{"key":"service.name","value":{"stringValue":"book"}}')
      }
    })
  )

  it.scopedLive("CL-128: the log of a server reaches the collector with level and time, and without secrets", () =>
    Effect.gen(function* () {
      const here = yield* place
      const { taken, url } = yield* collector
      const secret = "sk-very-secret-value"
      configure(here, `mcp: { broken: { command: "/not/there/${secret}" } }`)
      const server = yield* here.start(["serve", "--agent", "build"], {
        env: {
          DAYBOOK_ROOT: join(here.root, "ctx"),
          OPENAI_API_KEY: secret,
          OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: `${url}/v1/logs`,
          OTEL_EXPORTER_OTLP_PROTOCOL: "http/json"
        }
      })
      yield* server.until("stdout", (text) => text.endsWith("ready\n"))
      yield* server.signal("SIGTERM")
      assert.strictEqual((yield* server.ended).code, 0)
      const all = Array.from(yield* waitingFor("an export")(Queue.takeBetween(taken, 1, 100)))
      // Only the log has an endpoint.
      assert.deepStrictEqual([...new Set(all.map(({ path }) => path))], ["/v1/logs"])
      const text = all.map((each) => each.text).join("\n")
      assert.match(
        text,
        /"severityText":"WARN","timeUnixNano":"\d{19}"[^\n]*"body":\{"stringValue":"MCP server \\"broken/
      )
      assert.include(text, "[secret]")
      assert.notInclude(text, secret)
    })
  )

  it.scopedLive.skipIf(lacks("postgres"))("HT-797: what a node exports has its address", () =>
    Effect.gen(function* () {
      const { taken, url } = yield* collector
      const node = yield* servedNode(yield* database, [], {
        OTEL_EXPORTER_OTLP_ENDPOINT: url,
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json"
      })
      yield* node.process.signal("SIGTERM")
      yield* node.process.ended
      for (const { text } of yield* waitingFor("an export")(Queue.takeBetween(taken, 1, 100))) {
        assert.include(text, `{"key":"service.instance.id","value":{"stringValue":"${node.address}"}}`)
      }
    })
  )

  it.scopedLive("CL-184, CL-128: a collector that is not there, or is turned off, changes nothing of a run", () =>
    Effect.gen(function* () {
      const here = yield* place
      const { taken, url } = yield* collector
      const off = yield* here.run(["prompt", "Hi"], {
        env: { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_SDK_DISABLED: "true" }
      })
      assert.strictEqual(off.code, 0)
      assert.strictEqual(yield* Queue.size(taken), 0)
      const away = yield* here.run(["prompt", "Hi"], { env: { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" } })
      assert.deepStrictEqual([away.code, away.stdout], [0, off.stdout])
      const wrong = yield* here.run(["prompt", "Hi"], { env: { OTEL_EXPORTER_OTLP_ENDPOINT: "nonsense" } })
      assert.strictEqual(wrong.code, 2)
      assert.match(wrong.stderr, /daybook: OTEL_EXPORTER_OTLP_ENDPOINT: expected an http or https address\n$/)
    })
  )
})
