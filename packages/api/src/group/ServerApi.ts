/** The server itself. Spec: HT-2, HT-12 in specs/http.md. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { LogUnavailable } from "@daybook/log/log/EventLog"
import { Reading } from "../wire/Access.ts"
import { failures } from "../wire/Failure.ts"

/** The server answers. */
export const Health = Schema.Struct({ status: Schema.Literal("ok", "draining"), version: Schema.String })
export type Health = typeof Health.Type

/** The metrics of the server, in the text format of Prometheus. */
const MetricsText = HttpApiSchema.Text({ contentType: "text/plain; version=0.0.4; charset=utf-8" })

/** State of the server; its health needs no token. */
export const ServerApi = HttpApiGroup.make("server")
  .annotate(OpenApi.Description, "State of the server.")
  .add(HttpApiEndpoint.get("health", "/health").addSuccess(Health).addError(failures(LogUnavailable)))
  .add(HttpApiEndpoint.get("serverMetrics", "/metrics").addSuccess(MetricsText).middleware(Reading))
