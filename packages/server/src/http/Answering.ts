/**
 * Answers requests of Node with an application: one fiber a request, and a response that is written without one. A client
 * that leaves interrupts its fiber. Spec: HT-26 in specs/http.md.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServerError from "@effect/platform/HttpServerError"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import type * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as HttpTraceContext from "@effect/platform/HttpTraceContext"
import { Context, Effect, Exit, type Fiber, Option, Runtime } from "effect"
import { isTraced } from "@daybook/log/support/Spans"
import { BufferedRequest } from "./BufferedRequest.ts"

/** `body`: that of the request, if it has been read. */
type Answer = (request: IncomingMessage, response: ServerResponse, body?: Buffer) => void

/** Writes a whole response. An empty one may have been written by its handler. */
const write = (to: ServerResponse, { body, headers, status }: HttpServerResponse.HttpServerResponse): void => {
  if (to.writableEnded || to.destroyed) return
  to.writeHead(status, headers)
  if (body._tag === "Empty" || to.req.method === "HEAD") to.end()
  else if (body._tag === "Uint8Array") to.end(body.body)
  else throw new TypeError(`a handler answered with a body of the kind ${body._tag}`)
}

/** The span of a request, for a host that installed a tracer: for others it would cost more than many a request. */
const spanned = <E, R>(app: HttpApp.Default<E, R>): HttpApp.Default<E, R> =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers, method, url }) =>
    app.pipe(
      Effect.tap(({ status }) => Effect.annotateCurrentSpan("http.response.status_code", status)),
      Effect.withSpan(`http.server ${method}`, {
        kind: "server",
        parent: Option.getOrUndefined(HttpTraceContext.fromHeaders(headers)),
        attributes: { "http.request.method": method, "url.path": url.split("?", 1)[0] },
        captureStackTrace: false
      })
    )
  )

/** Writes the fiber's response. A client that leaves interrupts the fiber. */
export const follow = (
  response: ServerResponse,
  running: Fiber.RuntimeFiber<HttpServerResponse.HttpServerResponse>
): void => {
  running.addObserver((exit) => {
    if (Exit.isSuccess(exit)) write(response, exit.value)
    // Failures have become responses. Only a client that left, or a defect in that, is left.
    else response.destroy()
  })
  response.once("close", () => {
    if (!response.writableEnded) running.unsafeInterruptAsFork(HttpServerError.clientAbortFiberId)
  })
}

/** Answers with the application, in the context and with the scheduler of this effect. Bodies have at most `mostBody` bytes. */
export const make = <R>(app: HttpApp.Default<never, R>, mostBody: number): Effect.Effect<Answer, never, R> =>
  Effect.withFiberRuntime((fiber) =>
    Effect.map(Effect.runtime<R>(), (runtime) => {
      const answered = isTraced(fiber) ? spanned(app) : app
      return (source, response, body) => {
        const request = new BufferedRequest(source, response, mostBody, { body })
        // The context of the fiber, not a service that each request would provide: that copies the context twice.
        const context = Context.add(runtime.context, HttpServerRequest.HttpServerRequest, request)
        follow(response, Runtime.runFork(Runtime.make({ ...runtime, context }))(answered))
      }
    })
  )
