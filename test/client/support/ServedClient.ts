/** A client of a runtime that is served over TCP. */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { Clock, Duration, Effect, Layer } from "effect"
import * as Client from "../../../packages/client/src/DaybookClient.ts"
import * as Identifiers from "../../../packages/log/src/domain/Identifiers.ts"
import * as ServedApi from "../../server/http/support/ServedApi.ts"

/** A client of the server at this address. */
export const clientOf = (baseUrl: string, token: string = ServedApi.token) =>
  Client.make({ baseUrl, token }).pipe(Effect.provide([FetchHttpClient.layer, Identifiers.layer]))

/** The client of the served runtime. */
const client = Layer.effect(
  Client.DaybookClient,
  Effect.flatMap(ServedApi.Served, ({ url }) => clientOf(url))
)

/** The runtime, its API, its address, and a client of it. */
export const layer = (...options: Parameters<typeof ServedApi.layer>) =>
  Layer.provideMerge(client, ServedApi.layer(...options))

const real = Clock.make()

/** Time in which short waits are over at once, and long ones never: delays between connections, and watchdogs. */
const impatient: Clock.Clock = {
  [Clock.ClockTypeId]: Clock.ClockTypeId,
  currentTimeMillis: real.currentTimeMillis,
  currentTimeNanos: real.currentTimeNanos,
  unsafeCurrentTimeMillis: () => real.unsafeCurrentTimeMillis(),
  unsafeCurrentTimeNanos: () => real.unsafeCurrentTimeNanos(),
  sleep: (duration) => (Duration.lessThan(duration, "20 seconds") ? Effect.yieldNow() : Effect.never)
}

/** Connects again without waiting. */
export const withoutDelays = Effect.withClock(impatient)
