import { InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { layer as otel } from "../../packages/core/src/otel.ts"
import * as ServedApi from "../server/http/support/ServedApi.ts"
import { post } from "../server/http/support/ServedApi.ts"

it.live("OB-1: with a tracer, a request has a span in the client's trace, around that of its verb", () =>
  Effect.gen(function* () {
    const spans = new InMemorySpanExporter()
    const traceId = "0af7651916cd43dd8448eb211c80319c"
    const asked = Effect.gen(function* () {
      yield* post("/sessions", { id: "ses_traced", location: { directory: "/" } })
      const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` }
      yield* post("/sessions/ses_traced/prompts", { prompt: { text: "hello" }, resume: false }, headers)
      const found = spans.getFinishedSpans().filter((span) => span.spanContext().traceId === traceId)
      const request = found.find(({ name }) => name === "http.server POST")
      assert.deepInclude(request?.attributes, {
        "http.request.method": "POST",
        "url.path": "/sessions/ses_traced/prompts",
        "http.response.status_code": 200
      })
      const verb = found.find(({ name }) => name === "Sessions.prompt")
      assert.strictEqual(verb?.parentSpanContext?.spanId, request?.spanContext().spanId)
    })
    const traced = otel({ spanProcessor: new SimpleSpanProcessor(spans) })
    yield* Effect.provide(asked, Layer.provideMerge(ServedApi.layer(), traced))
  })
)
