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

/** What a handler sees in place of the request's own. */
interface Changes {
  readonly url?: string
  readonly headers?: Headers.Headers
  readonly remoteAddress?: string
}

/** What is done at the end of this turn of the event loop. */
let ending: Array<() => void> = []

/**
 * Does it at the end of this turn of the event loop. Node hands over one socket after another; the requests that arrived
 * together are continued together, so that what they append shares a commit.
 */
const together = (go: () => void): void => {
  if (ending.push(go) > 1) return
  setImmediate(() => {
    const now = ending
    ending = []
    for (const each of now) each()
  })
}

/** The body. Fails if it is longer than `most`, and the connection ends behind the response, or if the body ends early. */
const read = ({ most, response, source }: BufferedRequest, failed: (cause: unknown) => RequestError) =>
  Effect.async<Buffer, RequestError>((resume) => {
    if (source.readableEnded) return resume(failed("the body has been read before"))
    const chunks: Array<Buffer> = []
    let length = 0
    source.on("data", (chunk: Buffer) => {
      length += chunk.length
      if (length <= most) return void chunks.push(chunk)
      source.removeAllListeners("data").pause()
      if (!response.headersSent) response.setHeader("connection", "close")
      resume(failed("the body is too long"))
    })
    source.once("end", () => {
      const bytes = chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)
      together(() => resume(Effect.succeed(bytes)))
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
    return read(this, this.failed)
  }
  get text(): Effect.Effect<string, RequestError> {
    return Effect.map(this.bytes, (bytes) => bytes.toString("utf8"))
  }
  get json(): Effect.Effect<unknown, RequestError> {
    return Effect.flatMap(this.text, (text) =>
      Effect.try({ try: (): unknown => (text === "" ? null : JSON.parse(text)), catch: this.failed })
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
