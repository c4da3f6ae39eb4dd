/** A provider on loopback: answers each request with the next scripted reply and records the request. */
import { Deferred, Effect, Predicate, type Scope } from "effect"
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export interface Reply {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Each element is written as a separate chunk. */
  readonly chunks: ReadonlyArray<string>
  /** `latin1`: each character is a byte. */
  readonly encoding?: "latin1"
  /** After the chunks: a proper end (default), a destroyed connection, or silence until the client disconnects. */
  readonly ending?: "end" | "cut" | "silence"
}

export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Readonly<Record<string, unknown>>
}

export interface Server {
  readonly url: string
  readonly received: ReadonlyArray<Received>
  /** Completes when the first request has arrived. */
  readonly arrived: Effect.Effect<void>
  /** Completes when a client has disconnected from a reply that ends in silence. */
  readonly abandoned: Effect.Effect<void>
  /** Closes every connection immediately. */
  readonly sever: Effect.Effect<void>
}

/** Serves `replies` in order; one more request than replies gets a 599, which fails the test that made it. */
export const serve = (...replies: ReadonlyArray<Reply>): Effect.Effect<Server, never, Scope.Scope> =>
  serveEach((_, nth) => replies[nth] ?? { status: 599, chunks: ["no reply is left"] })

/** Answers each request with the reply of `answer`; `nth` counts requests from 0. */
export const serveEach = (
  replyTo: (request: Received, nth: number) => Reply
): Effect.Effect<Server, never, Scope.Scope> =>
  Effect.gen(function* () {
    const received: Array<Received> = []
    const abandoned = yield* Deferred.make<void>()
    const arrived = yield* Deferred.make<void>()
    const server = createServer((request, response) => {
      // It does not list its models, and a question for them is no request to a model.
      if (request.method === "GET") return void response.writeHead(404).end()
      const bytes: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => bytes.push(chunk))
      request.on("end", () => {
        const body: unknown = JSON.parse(Buffer.concat(bytes).toString("utf8"))
        const one: Received = {
          path: request.url ?? "",
          headers: request.headers,
          body: Predicate.isRecord(body) ? body : {}
        }
        received.push(one)
        const reply = replyTo(one, received.length - 1)
        if (reply.ending === "silence") response.on("close", () => Deferred.unsafeDone(abandoned, Effect.void))
        Deferred.unsafeDone(arrived, Effect.void)
        write(response, reply)
      })
    })
    yield* Effect.acquireRelease(
      Effect.async<void>((resume) => {
        server.listen(0, "127.0.0.1", () => resume(Effect.void))
      }),
      () =>
        Effect.async<void>((resume) => {
          server.closeAllConnections()
          server.close(() => resume(Effect.void))
        })
    )
    // A listening server has an address of this form.
    const { port } = server.address() as AddressInfo
    return {
      url: `http://127.0.0.1:${port}`,
      received,
      arrived: Deferred.await(arrived),
      abandoned: Deferred.await(abandoned),
      sever: Effect.sync(() => server.closeAllConnections())
    }
  })

const write = (response: ServerResponse, reply: Reply) => {
  if (reply.ending === "silence" && reply.chunks.length === 0) return
  response.writeHead(reply.status ?? 200, { "content-type": "text/event-stream", ...reply.headers })
  response.flushHeaders()
  for (const chunk of reply.chunks) response.write(chunk, reply.encoding ?? "utf8")
  if (reply.ending === "cut") setImmediate(() => response.destroy())
  else if (reply.ending !== "silence") response.end()
}

/** Events with their type as the SSE event name, as Anthropic and the Responses API send them. */
export const events = (...list: ReadonlyArray<{ readonly type: string } & Record<string, unknown>>): Reply => ({
  chunks: list.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
})

/** Nameless events that end with `[DONE]`, as chat completions send them. */
export const chunks = (...list: ReadonlyArray<Record<string, unknown>>): Reply => ({
  chunks: [...list.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`), "data: [DONE]\n\n"]
})

/** An error answer with a JSON body. */
export const refusal = (status: number, body: unknown, headers: Record<string, string> = {}): Reply => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  chunks: [JSON.stringify(body)]
})
