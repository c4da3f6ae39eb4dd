/** A log whose tails and feed are read through a server and a client over TCP. */
import { Effect, Layer, Schema, Stream } from "effect"
import { ConnectionError } from "../../../packages/client/src/ClientError.ts"
import type { SessionEvent } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog, type ReplayComplete } from "../../../packages/log/src/log/EventLog.ts"
import * as ServedApi from "../../server/http/support/ServedApi.ts"
import { runtime } from "../../support/Harness.ts"
import { clientOf } from "./ServedClient.ts"

const isConnectionError = Schema.is(ConnectionError)

const served = Layer.scoped(ServedApi.Served, ServedApi.serve())

const isEvent = (item: SessionEvent | ReplayComplete): item is SessionEvent => item.type !== "replay.complete"

/** The log, read over TCP. A connection that is lost is a defect of these tests. */
const remote = Layer.effect(
  EventLog,
  Effect.gen(function* () {
    const [log, { url }] = [yield* EventLog, yield* ServedApi.Served]
    const client = yield* clientOf(url)
    const found = <A, E>(items: Stream.Stream<A, E | ConnectionError>): Stream.Stream<A, E> =>
      Stream.catchAll(items, (error) => (isConnectionError(error) ? Stream.die(error) : Stream.fail(error)))
    return EventLog.of({
      ...log,
      tail: (options) => Stream.filter(found(client.tail(options)), isEvent),
      tailMarked: (options) => found(client.tail(options)),
      feed: (options) => found(client.feed(options))
    })
  })
)

/** The runtime with this log. */
export const layer = remote.pipe(Layer.provideMerge(served), Layer.provideMerge(runtime()))
