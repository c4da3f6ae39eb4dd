/** What an operator asks a server: its health, its metrics and its log. */
import { join } from "node:path"
import { assert, it, layer } from "@effect/vitest"
import { Effect, HashMap, Logger, Metric, Option, Queue, TestClock } from "effect"
import { say, scene } from "../../support/Harness.ts"
import * as Metrics from "../../../packages/log/src/support/Metrics.ts"
import { issue } from "../../../packages/server/src/http/Tokens.ts"
import { lacks } from "../../support/Parts.ts"
import { smallDisk } from "../../support/SmallDisk.ts"
import { says } from "../../support/ScriptedModel.ts"
import * as ServedApi from "./support/ServedApi.ts"
import { answer, request, token } from "./support/ServedApi.ts"

it.scoped.skipIf(lacks("admin"))(
  "HT-540, LG-540: a server whose database cannot be written is not healthy, until it can be written again",
  () =>
    Effect.gen(function* () {
      const { fill, folder, free } = Option.getOrThrow(yield* smallDisk(4))
      yield* Effect.gen(function* () {
        assert.deepInclude((yield* answer("/health")).body, { status: "ok", version: "test" })
        yield* fill
        yield* TestClock.adjust("1 second")
        const full = yield* answer("/health", { headers: { authorization: "" } })
        assert.strictEqual(full.status, 503)
        assert.deepInclude(full.body, { _tag: "LogUnavailable", reason: "disk-full" })
        yield* free
        yield* TestClock.adjust("1 second")
        assert.strictEqual((yield* answer("/health")).status, 200)
      }).pipe(Effect.provide(ServedApi.layer({ filename: join(folder, "daybook.db") })))
    })
)

layer(ServedApi.layer())("the metrics of a server", (it) => {
  it.effect("HT-780: its health says how late its event loop is", () =>
    Effect.gen(function* () {
      yield* Metric.set(Metrics.loopLagAt("0.5"), 201.4)
      assert.deepStrictEqual((yield* answer("/health")).body, { status: "ok", version: "test", lagMs: 201 })
    })
  )

  it.effect("HT-541: are those of its work, as Prometheus reads them, for any token of the whole server", () =>
    Effect.gen(function* () {
      const { id, model } = yield* scene()
      yield* model.answer(says("hello"))
      yield* say(id, "hi")
      const read = (authorization: string) => request("/metrics", { headers: { authorization } })
      assert.strictEqual((yield* read("")).status, 401)
      assert.strictEqual((yield* read(`Bearer ${issue(token, { scope: "read", sessionID: id })}`)).status, 403)
      const response = yield* read(`Bearer ${issue(token, { scope: "read" })}`)
      assert.strictEqual(response.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8")
      const text = yield* Effect.promise(() => response.text())
      const line =
        /^(?:# HELP [a-zA-Z_:][\w:]* [^\n]*|# TYPE [a-zA-Z_:][\w:]* (?:counter|gauge|histogram|summary)|[a-zA-Z_:][\w:]*(?:\{[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*"(?:,[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*")*\})? (?:[-+]?Inf|NaN|-?\d+(?:\.\d+)?(?:e[-+]?\d+)?))$/
      for (const each of text.trimEnd().split("\n")) assert.match(each, line)
      const types = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)
      assert.strictEqual(new Set(types).size, types.length)
      assert.match(text, /^daybook_events_appended_total [1-9]/m)
      assert.match(text, /^daybook_append_batch_size_bucket\{le="\+Inf"\} [1-9]/m)
      assert.match(text, /^daybook_http_requests_total\{status="401"\} [1-9]/m)
      assert.include(text, 'daybook_info{version="test"} 1')
    })
  )
})

it.scopedLive(
  "HT-542: each request is logged when it ends, with method, path, status, time and client, without its query",
  () =>
    Effect.gen(function* () {
      const lines = yield* Queue.unbounded<{ readonly message: string; readonly noted: Record<string, unknown> }>()
      const logger = Logger.make<unknown, void>(({ annotations, logLevel, message }) => {
        if (logLevel.label !== "INFO") return
        lines.unsafeOffer({ message: String(message), noted: Object.fromEntries(HashMap.toEntries(annotations)) })
      })
      yield* Effect.gen(function* () {
        yield* answer("/sessions?search=private")
        const { message, noted } = yield* Queue.take(lines)
        assert.strictEqual(message, "GET /sessions 200")
        assert.strictEqual(noted["client"], "127.0.0.1")
        assert.isNumber(noted["ms"])
        yield* answer("/sessions", { headers: { authorization: "Bearer wrong" } })
        assert.strictEqual((yield* Queue.take(lines)).message, "GET /sessions 401")
      }).pipe(
        Effect.provide(ServedApi.layer({}, {}, { accessLog: true })),
        Effect.provide(Logger.replace(Logger.defaultLogger, logger))
      )
    })
)
