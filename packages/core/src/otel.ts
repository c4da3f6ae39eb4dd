/**
 * Telemetry through OpenTelemetry, for hosts that have it: the span of every public operation, and the runtime's
 * metrics, go where the given processors and readers send them. The `@opentelemetry/*` packages are optional peers of
 * the host's choice; nothing else in `@daybook/core` imports them. Spec: specs/architecture.md, Observability.
 */
import { NodeSdk } from "@effect/opentelemetry"
import type { MetricReader } from "@opentelemetry/sdk-metrics"
import type { SpanProcessor } from "@opentelemetry/sdk-trace-base"
import { Layer } from "effect"

export interface Options {
  /** `daybook` by default. */
  readonly serviceName?: string
  readonly spanProcessor?: SpanProcessor | ReadonlyArray<SpanProcessor>
  readonly metricReader?: MetricReader | ReadonlyArray<MetricReader>
}

/**
 * The tracer and the metrics exporter. Put it under `Daybook.layer`, since sessions are drained in the context that
 * the runtime was built in, not in that of a caller.
 *
 * @example
 * ```ts
 * Daybook.layer({ filename }).pipe(
 *   Layer.provideMerge(layer({ spanProcessor: new BatchSpanProcessor(new OTLPTraceExporter()) }))
 * )
 * ```
 */
export const layer = ({ metricReader, serviceName = "daybook", spanProcessor }: Options): Layer.Layer<never> =>
  Layer.discard(NodeSdk.layer(() => ({ resource: { serviceName }, spanProcessor, metricReader })))
