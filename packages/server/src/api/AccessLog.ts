/**
 * Counts the answered requests, and logs each at the level info: method, path, status, time and client. Queries are left out:
 * they hold what people search for. Spec: HT-542 in specs/http.md.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { Effect, FiberRef, LogLevel, Metric, Runtime } from "effect"
import { pathOf } from "./Answers.ts"
import type { Clients } from "./Clients.ts"

const requests = Metric.counter("daybook_http_requests_total", {
  description: "answered requests of HTTP, by status",
  incremental: true
})

/** The client left before anything was sent: as other servers log it. */
const leftStatus = 499

/** Follows a request to its end. */
type Follow = (request: IncomingMessage, response: ServerResponse) => void

/** `isLogged`: whether the host wants a line for each request. */
export const make = (clients: Clients, isLogged: boolean): Effect.Effect<Follow> =>
  Effect.gen(function* () {
    const fork = Runtime.runFork(yield* Effect.runtime<never>())
    const lowest = yield* FiberRef.get(FiberRef.currentMinimumLogLevel)
    const logs = isLogged && LogLevel.lessThanEqual(lowest, LogLevel.Info)
    const counters = new Map<number, Metric.Metric.Counter<number>>()
    const count = (status: number) => {
      const counter = counters.get(status) ?? Metric.tagged(requests, "status", String(status))
      counters.set(status, counter)
      counter.unsafeUpdate(1, [])
    }
    return (request, response) => {
      const began = performance.now()
      // The address is unknown once the connection is closed.
      const client = logs ? clients.addressOf(request) : ""
      response.once("close", () => {
        const status = response.headersSent ? response.statusCode : leftStatus
        count(status)
        if (!logs) return
        const line = Effect.logInfo(`${request.method ?? ""} ${pathOf(request)} ${status}`)
        fork(Effect.annotateLogs(line, { ms: Math.round(performance.now() - began), client }))
      })
    }
  })
