/** The server itself. Spec: HT-2, HT-12 in specs/http.md. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"

/** The server answers. */
export const Health = Schema.Struct({ status: Schema.Literal("ok", "draining"), version: Schema.String })
export type Health = typeof Health.Type

/** State of the server; needs no token. */
export const ServerApi = HttpApiGroup.make("server")
  .annotate(OpenApi.Description, "State of the server.")
  .add(HttpApiEndpoint.get("health", "/health").addSuccess(Health))
