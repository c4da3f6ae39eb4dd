/**
 * A model behind a real HTTP server on loopback: OpenAI-compatible chat completions over server-sent events. Each request waits
 * for the test, which answers it piece by piece and so can hold a turn open.
 */
import { Effect, Queue, type Scope } from "effect"
import { createServer, type ServerResponse } from "node:http"
import { waitingFor } from "../../support/Waiting.ts"

/** One request of the runtime, and the test's answers to it. */
export interface Exchange {
  /** The request's JSON. */
  readonly body: {
    readonly messages: ReadonlyArray<{ readonly role: string; readonly content: unknown }>
    readonly tools?: ReadonlyArray<{ readonly function: { readonly name: string } }>
  }
  readonly text: (delta: string) => Effect.Effect<void>
  readonly reasoning: (delta: string) => Effect.Effect<void>
  readonly toolCall: (id: string, name: string, input: unknown) => Effect.Effect<void>
  readonly finish: (reason?: "stop" | "tool_calls" | "length" | "content_filter") => Effect.Effect<void>
  /** Refuses the request; valid only before any other answer. */
  readonly refuse: (status: number, message: string, headers?: Record<string, string>) => Effect.Effect<void>
  /** Completes when the client has gone away. */
  readonly closed: Effect.Effect<void>
}

export interface ModelServer {
  /** The base address for `DAYBOOK_BASE_URL`. */
  readonly url: string
  /** The next request, when it comes. */
  readonly next: Effect.Effect<Exchange>
}

const exchange = (body: Exchange["body"], response: ServerResponse, closed: Effect.Effect<void>): Exchange => {
  const send = (data: string) =>
    Effect.sync(() => {
      if (!response.headersSent) response.writeHead(200, { "content-type": "text/event-stream" })
      response.write(`data: ${data}\n\n`)
    })
  const chunk = (delta: unknown, finish: string | null = null, usage?: unknown) =>
    send(
      JSON.stringify({
        id: "chatcmpl-test",
        object: "chat.completion.chunk",
        created: 1,
        model: "held",
        choices: [{ index: 0, delta, finish_reason: finish }],
        ...(usage === undefined ? {} : { usage })
      })
    )
  return {
    body,
    closed,
    text: (delta) => chunk({ role: "assistant", content: delta }),
    reasoning: (delta) => chunk({ role: "assistant", reasoning_content: delta }),
    toolCall: (id, name, input) =>
      chunk({ tool_calls: [{ index: 0, id, type: "function", function: { name, arguments: JSON.stringify(input) } }] }),
    finish: (reason = "stop") =>
      chunk({}, reason, { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }).pipe(
        Effect.zipRight(send("[DONE]")),
        Effect.zipRight(Effect.sync(() => void response.end()))
      ),
    refuse: (status, message, headers = {}) =>
      Effect.sync(() => {
        response.writeHead(status, { ...headers, "content-type": "application/json" })
        response.end(JSON.stringify({ error: { message, type: "test" } }))
      })
  }
}

/** Listens until the scope closes. */
export const make: Effect.Effect<ModelServer, never, Scope.Scope> = Effect.gen(function* () {
  const requests = yield* Queue.unbounded<Exchange>()
  const server = createServer((request, response) => {
    // It does not list its models.
    if (request.method === "GET") return void response.writeHead(404).end()
    const parts: Array<Buffer> = []
    request.on("data", (part: Buffer) => parts.push(part))
    request.on("end", () => {
      const body: Exchange["body"] = JSON.parse(Buffer.concat(parts).toString())
      const closed = Effect.async<void>((resume) => {
        if (response.closed) resume(Effect.void)
        else response.once("close", () => resume(Effect.void))
      })
      requests.unsafeOffer(exchange(body, response, closed))
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
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}/v1`,
    next: waitingFor("a request of the command to the model server")(Queue.take(requests))
  }
})
