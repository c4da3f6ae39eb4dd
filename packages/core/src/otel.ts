/**
 * Sends spans of every public operation and the runtime's metrics to the given OpenTelemetry processors and readers.
 * The `@opentelemetry/*` packages are optional peer dependencies; no other module of `@daybook/core` imports them.
 * Spec: specs/architecture.md, Observability.
 */
import * as NodeSdk from "@effect/opentelemetry/NodeSdk"
import type { MetricReader } from "@opentelemetry/sdk-metrics"
import type { SpanProcessor } from "@opentelemetry/sdk-trace-base"
import { Layer } from "effect"

export interface Options {
  /** Default: `daybook`. */
  readonly serviceName?: string
  readonly spanProcessor?: SpanProcessor | ReadonlyArray<SpanProcessor>
  readonly metricReader?: MetricReader | ReadonlyArray<MetricReader>
}

/**
 * The tracer and the metrics exporter. Provide it below `Daybook.layer`: sessions are drained in the context in which
 * the runtime was built, not in the caller's.
 *
 * @example
 * ```ts
 * import { Runtime } from "@daybook/core"
 * import * as Telemetry from "@daybook/core/otel"
 * import { BatchSpanProcessor, ConsoleSpanExporter } from "@opentelemetry/sdk-trace-base"
 * import { Layer } from "effect"
 *
 * export const runtime = Runtime.layer({ filename: "daybook.sqlite" }).pipe(
 *   Layer.provideMerge(Telemetry.layer({ spanProcessor: new BatchSpanProcessor(new ConsoleSpanExporter()) }))
 * )
 * ```
 */
export const layer = ({ metricReader, serviceName = "daybook", spanProcessor }: Options): Layer.Layer<never> =>
  Layer.discard(NodeSdk.layer(() => ({ resource: { serviceName }, spanProcessor, metricReader })))
