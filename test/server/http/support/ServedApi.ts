/** Serves a runtime with a scripted model over HTTP on a free port. */
import { Context, Effect, Layer } from "effect"
import type * as Daybook from "../../../../packages/embedded/src/Daybook.ts"
import * as HttpServing from "../../../../packages/server/src/http/HttpServing.ts"
import { AccessToken } from "../../../../packages/server/src/http/AccessToken.ts"
import { runtime } from "../../../support/Harness.ts"
import type * as ScriptedModel from "../../../support/ScriptedModel.ts"

/** The server's own token. */
export const token = AccessToken.make("test-token-of-the-server")

/** Where the server listens. */
export class Served extends Context.Tag("test/Served")<Served, HttpServing.ServedHttp>() {}

/** How to serve, besides token, version and port. */
export type Serving = Partial<HttpServing.ServeOptions>

/** Serves the sessions of the context until the scope closes. */
export const serve = (options: Serving = {}) =>
  HttpServing.serve({ token, version: "test", host: "127.0.0.1", port: 0, ...options })

/** The runtime, its API, and the address. */
export const layer = (
  options: Partial<Daybook.Options> = {},
  model: Parameters<typeof ScriptedModel.layer>[0] = {},
  serving: Serving = {}
) => Layer.scoped(Served, serve(serving)).pipe(Layer.provideMerge(runtime(options, model)))

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

/** The status and the JSON body of a response; undefined for none. */
export const answer = (path: string, init?: RequestInit) =>
  Effect.flatMap(request(path, init), (response) =>
    Effect.map(
      Effect.promise(() => response.text()),
      (text): { readonly status: number; readonly body: unknown } => ({
        status: response.status,
        body: text === "" ? undefined : JSON.parse(text)
      })
    )
  )

/** A POST with a body. */
export const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  answer(path, { method: "POST", body: JSON.stringify(body), headers })
