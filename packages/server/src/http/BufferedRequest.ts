/**
 * A request as its handlers see it. Its body is read whole, into memory, up to a limit: the usual request of
 * `@effect/platform-node` needs an effect, a fiber and a scope for that. Spec: HT-26 in specs/http.md.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import * as Cookies from "@effect/platform/Cookies"
import type * as Headers from "@effect/platform/Headers"
import * as HttpIncomingMessage from "@effect/platform/HttpIncomingMessage"
import type { HttpMethod } from "@effect/platform/HttpMethod"
import { RequestError } from "@effect/platform/HttpServerError"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import { MultipartError } from "@effect/platform/Multipart"
import * as UrlParams from "@effect/platform/UrlParams"
import { Effect, Inspectable, Option, Stream } from "effect"
import { collect, parsed } from "./Body.ts"

/** What a handler sees in place of the request's own. */
interface Changes {
  /** The body, if it has been read. */
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

export class BufferedRequest extends Inspectable.Class implements HttpServerRequest.HttpServerRequest {
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
  get urlParamsBody(): Effect.Effect<UrlParams.UrlParams, RequestError> {
    return Effect.map(this.text, (text) => UrlParams.fromInput(new URLSearchParams(text)))
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
