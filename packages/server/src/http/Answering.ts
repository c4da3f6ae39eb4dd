/**
 * Answers requests of Node with an application: one fiber a request, and a response that is written without one. A client
 * that leaves interrupts its fiber. Spec: HT-26, HT-501 in specs/http.md.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import * as Cookies from "@effect/platform/Cookies"
import type * as Headers from "@effect/platform/Headers"
import type * as HttpApp from "@effect/platform/HttpApp"
import * as HttpIncomingMessage from "@effect/platform/HttpIncomingMessage"
import type { HttpMethod } from "@effect/platform/HttpMethod"
import * as HttpServerError from "@effect/platform/HttpServerError"
import { RequestError } from "@effect/platform/HttpServerError"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import type * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as HttpTraceContext from "@effect/platform/HttpTraceContext"
import { MultipartError } from "@effect/platform/Multipart"
import type * as UrlParams from "@effect/platform/UrlParams"
import { Context, Effect, Exit, type Fiber, Inspectable, Option, Runtime, Stream } from "effect"
import { BodyUnreadable } from "@daybook/api/wire/Access"
import { excessOf } from "@daybook/core/support/Excess"
import { maxInputDepth } from "@daybook/core/support/Limits"
import { isTraced } from "@daybook/log/support/Spans"

// Reads the body of a request, whole and into memory, without an effect.

/** A value of the facade may stand some levels below the body. */
const maxBodyDepth = 2 * maxInputDepth

/** The JSON of a body, or why it is refused. Readers of values that are nested deeper would overflow the stack. */
export const parsed = (text: string): unknown => {
  const value: unknown = JSON.parse(text)
  const details = excessOf(value, maxBodyDepth)
  if (details !== undefined) throw new BodyUnreadable({ details })
  return value
}

/** Work for the end of this turn of the event loop. */
let ending: Array<() => void> = []

/**
 * Does it at the end of this turn of the event loop. Node hands over one socket after another; the requests that arrived
 * together continue together, so that their appends share a commit.
 */
const together = (go: () => void): void => {
  if (ending.push(go) > 1) return
  setImmediate(() => {
    const now = ending
    ending = []
    for (const each of now) each()
  })
}

/** Reads a body. Stops reading after `most` bytes. */
export const collect = (
  source: IncomingMessage,
  most: number,
  then: { readonly whole: (bytes: Buffer) => void; readonly tooLong: () => void }
): void => {
  const chunks: Array<Buffer> = []
  let length = 0
  source.on("data", (chunk: Buffer) => {
    length += chunk.length
    if (length <= most) return void chunks.push(chunk)
    source.removeAllListeners("data").pause()
    then.tooLong()
  })
  source.once("end", () => {
    const bytes = chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)
    together(() => then.whole(bytes))
  })
}

// A request as its handlers see it, its body whole in memory: the request of `@effect/platform-node` needs a fiber and
// a scope.

/** What a handler sees in place of the request's own. */
interface Changes {
  readonly body?: Buffer | undefined
  readonly url?: string
  readonly headers?: Headers.Headers
  readonly remoteAddress?: string
}

/** The body. Fails if it is longer than `most`, and the connection ends behind the response, or if the body ends early. */
const read = ({ most, response, source }: BufferedRequest, failed: (cause: unknown) => RequestError) =>
  Effect.async<Buffer, RequestError>((resume) => {
    if (source.readableEnded) return resume(failed("the body has been read before"))
    collect(source, most, {
      whole: (bytes) => resume(Effect.succeed(bytes)),
      tooLong: () => {
        if (!response.headersSent) response.setHeader("connection", "close")
        resume(failed("the body is too long"))
      }
    })
    source.once("error", (cause) => resume(failed(cause)))
  })

class BufferedRequest extends Inspectable.Class implements HttpServerRequest.HttpServerRequest {
  readonly [HttpServerRequest.TypeId]: HttpServerRequest.TypeId = HttpServerRequest.TypeId
  readonly [HttpIncomingMessage.TypeId]: HttpIncomingMessage.TypeId = HttpIncomingMessage.TypeId
  readonly source: IncomingMessage
  /** `NodeHttpServerRequest.toServerResponse` returns it. */
  readonly response: ServerResponse
  /** Bytes of a body. */
  readonly most: number
  private readonly changes: Changes

  constructor(source: IncomingMessage, response: ServerResponse, most: number, changes: Changes = {}) {
    super()
    this.source = source
    this.response = response
    this.most = most
    this.changes = changes
  }

  get method(): HttpMethod {
    return (this.source.method ?? "GET") as HttpMethod
  }
  get originalUrl(): string {
    return this.source.url ?? "/"
  }
  get url(): string {
    return this.changes.url ?? this.originalUrl
  }
  get headers(): Headers.Headers {
    // Node has made their names small, as those of the type are.
    return this.changes.headers ?? (this.source.headers as Headers.Headers)
  }
  get cookies(): Readonly<Record<string, string>> {
    return Cookies.parseHeader(this.headers["cookie"] ?? "")
  }
  get remoteAddress(): Option.Option<string> {
    return Option.fromNullable(this.changes.remoteAddress ?? this.source.socket.remoteAddress)
  }

  private readonly failed = (cause: unknown): RequestError =>
    new RequestError({ request: this, reason: "Decode", cause })

  private get bytes(): Effect.Effect<Buffer, RequestError> {
    return this.changes.body === undefined ? read(this, this.failed) : Effect.succeed(this.changes.body)
  }
  get text(): Effect.Effect<string, RequestError> {
    return Effect.map(this.bytes, (bytes) => bytes.toString("utf8"))
  }
  get json(): Effect.Effect<unknown, RequestError> {
    return Effect.flatMap(this.text, (text) =>
      Effect.try({ try: (): unknown => (text === "" ? null : parsed(text)), catch: this.failed })
    )
  }
  /** No endpoint takes forms: curl says of JSON that it is one, unless told otherwise. */
  get urlParamsBody(): Effect.Effect<UrlParams.UrlParams, RequestError> {
    const details = "said to be a form: send the header `content-type: application/json`"
    return Effect.fail(this.failed(new BodyUnreadable({ details })))
  }
  get arrayBuffer(): Effect.Effect<ArrayBuffer, RequestError> {
    return Effect.map(this.bytes, (bytes) => new Uint8Array(bytes).buffer)
  }
  get stream(): Stream.Stream<Uint8Array, RequestError> {
    return Stream.fromEffect(this.bytes)
  }

  /** No endpoint takes forms with files. */
  get multipart() {
    return new MultipartError({ reason: "Parse", cause: "this server reads no forms with files" })
  }
  get multipartStream() {
    return Stream.fail(this.multipart)
  }
  get upgrade(): RequestError {
    return this.failed("this server upgrades no connections")
  }

  modify(changes: Changes): HttpServerRequest.HttpServerRequest {
    return new BufferedRequest(this.source, this.response, this.most, { ...this.changes, ...changes })
  }
  toJSON(): unknown {
    return { _id: "BufferedRequest", method: this.method, url: this.originalUrl }
  }
}

/** `body`: the request's body, if it has been read. */
type Answer = (request: IncomingMessage, response: ServerResponse, body?: Buffer) => void

/** Writes a whole response, unless its handler has begun to write one itself: a stream goes on without the fiber of its request. */
const write = (to: ServerResponse, { body, headers, status }: HttpServerResponse.HttpServerResponse): void => {
  if (to.headersSent || to.destroyed) return
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

/** Interrupts the fiber if the client leaves, and forgets it when it has ended. */
export const untilLeft = (response: ServerResponse, running: Fiber.RuntimeFiber<unknown, unknown>): void => {
  const leave = () => {
    if (!response.writableEnded) running.unsafeInterruptAsFork(HttpServerError.clientAbortFiberId)
  }
  response.once("close", leave)
  running.addObserver(() => response.off("close", leave))
}

/** Writes the fiber's response. */
export const follow = (
  response: ServerResponse,
  running: Fiber.RuntimeFiber<HttpServerResponse.HttpServerResponse>
): void => {
  running.addObserver((exit) => {
    if (Exit.isSuccess(exit)) write(response, exit.value)
    // Failures have become responses. Only a client that left, or a defect in that, is left.
    else response.destroy()
  })
  untilLeft(response, running)
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
