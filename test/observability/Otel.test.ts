import { assert, it } from "@effect/vitest"
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  PeriodicExportingMetricReader
} from "@opentelemetry/sdk-metrics"
import { InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base"
import { Effect, Layer } from "effect"
import { layer as otel } from "../../packages/core/src/otel.ts"
import { answerTo, runtime, scene } from "../support/Harness.ts"
import { callParts, calls } from "../support/ScriptedModel.ts"

it.live("OB-1: an OpenTelemetry host sees the spans of a turn and what it counted", () =>
  Effect.gen(function* () {
    const spans = new InMemorySpanExporter()
    const metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
    const metricReader = new PeriodicExportingMetricReader({ exporter: metrics, exportIntervalMillis: 3_600_000 })
    const turn = Effect.gen(function* () {
      const { id, model } = yield* scene()
      yield* model.answer(calls(callParts("c1", "read", { path: "nothing-here" })))
      yield* answerTo(id, "look", "There is nothing.")
      yield* Effect.promise(() => metricReader.forceFlush())
      const names = spans.getFinishedSpans().map(({ name }) => name)
      for (const name of [
        "Sessions.prompt",
        "SessionInput.admit",
        "EventLog.append",
        "SessionExecution.drain",
        "SessionRunner.activity",
        "SessionRunner.turn",
        "SessionRunner.tool"
      ]) {
        assert.include(names, name)
      }
      const counted = metrics
        .getMetrics()
        .flatMap(({ scopeMetrics }) =>
          scopeMetrics.flatMap((scope) => scope.metrics.map(({ descriptor }) => descriptor.name))
        )
      for (const name of [
        "daybook_events_appended_total",
        "daybook_turns_total",
        "daybook_tool_duration_ms",
        "daybook_tokens_total"
      ]) {
        assert.include(counted, name)
      }
    })
    yield* Effect.provide(
      turn,
      runtime().pipe(Layer.provideMerge(otel({ spanProcessor: new SimpleSpanProcessor(spans), metricReader })))
    )
  })
)
