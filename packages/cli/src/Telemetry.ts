/**
 * Spans, metrics and logs over OTLP, as the standard variables of OpenTelemetry say. Loaded only where an endpoint is
 * named. Spec: CL-128 in specs/cli.md.
 */
import { OtlpLogger, OtlpMetrics, OtlpSerialization, OtlpTracer } from "@effect/opentelemetry"
import { safeFetch } from "@daybook/core"
import { FetchHttpClient } from "@effect/platform"
import { Effect, Layer, Logger } from "effect"
import { UsageError } from "./Errors.ts"
import { cleaned, secretsOf } from "./render/LogLine.ts"
import * as TelemetryOptions from "./TelemetryOptions.ts"

/** An end waits so long for what was not sent yet. */
const shutdownTimeout = "2 seconds" as const

/** Secrets and control characters stay here. */
const logger = (options: Parameters<typeof OtlpLogger.make>[0]) =>
  Logger.addScoped(Effect.map(OtlpLogger.make(options), Logger.mapInputOptions(cleaned(secretsOf(process.env)))))

const serialization = {
  "http/json": OtlpSerialization.layerJson,
  "http/protobuf": OtlpSerialization.layerProtobuf
} as const

const made = ({ exporters, resource }: TelemetryOptions.Options) => {
  const { logs, metrics, traces } = exporters
  const common = { resource, shutdownTimeout } as const
  return Layer.mergeAll(
    traces === undefined
      ? Layer.empty
      : Layer.provide(OtlpTracer.layer({ ...traces, ...common }), serialization[traces.protocol]),
    metrics === undefined
      ? Layer.empty
      : Layer.provide(OtlpMetrics.layer({ ...metrics, ...common }), serialization[metrics.protocol]),
    logs === undefined ? Layer.empty : Layer.provide(logger({ ...logs, ...common }), serialization[logs.protocol])
  ).pipe(Layer.provide(FetchHttpClient.layer), Layer.provide(Layer.succeed(FetchHttpClient.Fetch, safeFetch)))
}

/** Exports for as long as it is provided; the last of it is sent at the end. */
export const layer = Layer.unwrapEffect(
  Effect.map(
    Effect.mapError(TelemetryOptions.read(process.env), (message) => new UsageError({ message })),
    (options) => (options === undefined ? Layer.empty : made(options))
  )
)
