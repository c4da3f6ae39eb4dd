/**
 * Serves one socket: the clients' operations on the sessions of one agent or model. Requests of a connection are taken
 * in order; long ones, above all runs, continue beside the next request, with whole frames interleaved. `operation/`
 * holds one operation a file. Spec: SO-20..SO-39 in specs/socket.md (FR-2, FR-7..FR-11, DC-17, DC-19, DC-20).
 */
import { Effect, Either, FiberSet, type Scope, Stream } from "effect"
import { answer } from "./operation/Answer.ts"
import { cancel } from "./operation/Cancel.ts"
import * as Client from "./operation/Client.ts"
import type { Endpoint } from "./operation/Endpoint.ts"
import { leave } from "./operation/Leave.ts"
import { list } from "./operation/List.ts"
import { resume } from "./operation/Resume.ts"
import { send } from "./operation/Send.ts"
import { status } from "./operation/Status.ts"
import * as TempSessions from "./session/TempSessions.ts"
import type { Connection, ConnectionClosed } from "./socket/Connection.ts"
import * as Stopping from "./socket/Stopping.ts"
import { Refused } from "./support/Refused.ts"
import type { Line } from "./wire/Lines.ts"
import * as Wire from "./wire/Wire.ts"

/** Requests of one connection that are answered at the same time, at most. */
const requestsAtOnce = 64

const busy = new Refused({
  code: "EBUSY",
  message: `${requestsAtOnce} requests of this connection are being answered: wait for one of them`
})

const perform = (endpoint: Endpoint, client: Client.Client, request: Wire.Request): Client.Answer => {
  switch (request.op) {
    case "ping":
      return Client.write(client, { type: "pong", ...(request.id === undefined ? {} : { id: request.id }) })
    case "send":
      return send(endpoint, client, request)
    case "resume":
      return resume(endpoint, client, request)
    case "cancel":
      return cancel(endpoint, client, request)
    case "answer":
      return answer(endpoint, client, request)
    case "status":
      return Effect.flatMap(status(endpoint, request), (frame) => Client.write(client, frame))
    case "list":
      return Effect.flatMap(list(endpoint, request), (frame) => Client.write(client, frame))
  }
}

const onLine = (endpoint: Endpoint, client: Client.Client, line: Line): Effect.Effect<void, ConnectionClosed> => {
  const { stopping } = endpoint
  const decoded = Wire.decode(line)
  if (Either.isLeft(decoded)) return Client.write(client, Wire.errorFrame(decoded.left))
  const request = decoded.right
  const about = { id: "id" in request ? request.id : undefined }
  if (stopping.begun()) return Client.refuse(client, Stopping.refused, about)
  const isBusy = client.requests >= requestsAtOnce && request.op !== "ping"
  const answered = stopping.until(isBusy ? busy : perform(endpoint, client, request))
  return Effect.catchTag(answered, "Refused", (refused) => Client.refuse(client, refused, about))
}

/** Serves one connection until its client has gone and its answers have ended. */
const onConnection = (endpoint: Endpoint, connection: Connection): Effect.Effect<void> => {
  const { asks, stopping } = endpoint
  return Effect.gen(function* () {
    const client = yield* Client.make(connection)
    // Lines sent before the client went away are still processed.
    yield* connection.lines.pipe(
      Stream.interruptWhen(stopping.awaitEnd),
      Stream.runForEach((line) => Effect.ignore(onLine(endpoint, client, line)))
    )
    asks.look()
    // The client stopped sending; pending answers still go out.
    yield* Effect.raceFirst(FiberSet.awaitEmpty(client.answers), connection.closed)
    if (stopping.ended()) yield* Effect.ignore(connection.write(Stopping.farewell))
  }).pipe(Effect.scoped, Effect.ensuring(leave(endpoint, connection.id)))
}

/** Returns the handler of a connection; it may run for many connections until the scope closes. */
export const make = (
  options: Omit<Endpoint, "scope" | "temps">
): Effect.Effect<(connection: Connection) => Effect.Effect<void>, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const endpoint: Endpoint = { ...options, scope, temps: TempSessions.make() }
    return (connection) => onConnection(endpoint, connection)
  })
