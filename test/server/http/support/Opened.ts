/** The responses that servers of this process begin, for tests that look at what the server holds for a client. */
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { IncomingMessage, ServerResponse } from "node:http"
import { Effect, Predicate, Queue } from "effect"

const channel = "http.server.request.start"

/** The responses to requests whose address contains the text, in order. */
export const responses = Effect.fnUntraced(function* (address: string) {
  const found = yield* Queue.unbounded<ServerResponse>()
  const hear = (message: unknown) => {
    if (!Predicate.hasProperty(message, "request") || !Predicate.hasProperty(message, "response")) return
    const { request, response } = message
    if (request instanceof IncomingMessage && response instanceof ServerResponse && request.url?.includes(address)) {
      Queue.unsafeOffer(found, response)
    }
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => subscribe(channel, hear)),
    () => Effect.sync(() => unsubscribe(channel, hear))
  )
  return found
})

/** Completes when the response's connection has closed. */
export const closed = (response: ServerResponse): Effect.Effect<void> =>
  Effect.async((resume) => {
    if (response.closed) resume(Effect.void)
    else response.once("close", () => resume(Effect.void))
  })
