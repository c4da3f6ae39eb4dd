/** Exports spans, metrics and logs over OTLP, configured by OpenTelemetry's standard variables. Spec: CL-128. */
import * as OtlpLogger from "@effect/opentelemetry/OtlpLogger"
import * as OtlpMetrics from "@effect/opentelemetry/OtlpMetrics"
import * as OtlpSerialization from "@effect/opentelemetry/OtlpSerialization"
import * as OtlpTracer from "@effect/opentelemetry/OtlpTracer"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { Effect, Layer, Logger } from "effect"
import { safeFetch } from "@daybook/core/http/SameOrigin"
import * as TelemetryOptions from "../config/TelemetryOptions.ts"
import { cleaned, secretsOf } from "../terminal/Logs.ts"
import { UsageError } from "../support/Errors.ts"

/** How long the shutdown waits for unsent data. */
const shutdownTimeout = "2 seconds" as const

/** Removes secrets and control characters from exported logs. */
const logger = (options: Parameters<typeof OtlpLogger.make>[0]) =>
  Logger.addScoped(Effect.map(OtlpLogger.make(options), Logger.mapInputOptions(cleaned(secretsOf(process.env)))))

const serialization = {
  "http/json": OtlpSerialization.layerJson,
  "http/protobuf": OtlpSerialization.layerProtobuf
} as const

const made = ({ exporters, resource: service }: TelemetryOptions.Options, node: string | undefined) => {
  const { logs, metrics, traces } = exporters
  const resource = node === undefined ? service : { ...service, attributes: { "service.instance.id": node } }
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

/** Exports as long as it is provided; sends the rest at the end. A node's address is `service.instance.id`. */
export const layer = (node: string | undefined) =>
  Layer.unwrapEffect(
    Effect.map(
      Effect.mapError(TelemetryOptions.read(process.env), (message) => new UsageError({ message })),
      (options) => (options === undefined ? Layer.empty : made(options, node))
    )
  )
