/** Serves a runtime with a scripted model over HTTP on a free port. */
import { createServer } from "node:http"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServer from "@effect/platform/HttpServer"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Layer } from "effect"
import type * as Daybook from "../../../../packages/embedded/src/Daybook.ts"
import * as HttpApp from "../../../../packages/server/src/api/HttpApp.ts"
import { AccessToken } from "../../../../packages/server/src/http/AccessToken.ts"
import { runtime } from "../../../support/Harness.ts"
import type * as ScriptedModel from "../../../support/ScriptedModel.ts"

/** The server's own token. */
export const token = AccessToken.make("test-token-of-the-server")

/** Where the server listens. */
export class Served extends Context.Tag("test/Served")<Served, { readonly url: string }>() {}

const served = Layer.effect(
  Served,
  HttpServer.addressWith((address) =>
    Effect.succeed({ url: `http://127.0.0.1:${address._tag === "TcpAddress" ? address.port : 0}` })
  )
)

/** The runtime, its API, and the address. */
export const layer = (options: Partial<Daybook.Options> = {}, model: Parameters<typeof ScriptedModel.layer>[0] = {}) =>
  HttpApiBuilder.serve().pipe(
    Layer.provideMerge(served),
    Layer.provideMerge(HttpApp.layer({ token, version: "test" })),
    Layer.provideMerge(runtime(options, model)),
    Layer.provide(NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: 0 }))
  )

/** A request with the server's token, unless another one is given. */
export const request = (path: string, { headers, ...init }: RequestInit = {}) =>
  Effect.flatMap(Served, ({ url }) =>
    Effect.promise((signal) =>
      fetch(`${url}${path}`, {
        signal,
        ...init,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers }
      })
    )
  )

/** The status and the JSON body of a response. */
export const answer = (path: string, init?: RequestInit) =>
  Effect.flatMap(request(path, init), (response) =>
    Effect.map(
      Effect.promise((): Promise<unknown> => response.json()),
      (body) => ({ status: response.status, body })
    )
  )

/** A POST with a body. */
export const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  answer(path, { method: "POST", body: JSON.stringify(body), headers })
