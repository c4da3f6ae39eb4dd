/**
 * The contracts of a log, with its tails, its feed and its pages read through a server and a client over TCP. The server's
 * facade shows the creation event, as the log does. Live deltas have another contract over HTTP (HT-46) and stay local.
 */
import { Effect, Layer, Stream } from "effect"
import type { ConnectionError } from "../../packages/client/src/connection/ClientError.ts"
import { isLost } from "../../packages/client/src/RemoteSessions.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { incarnationContract } from "../../packages/log/src/testing/IncarnationContract.ts"
import { replayContract } from "../../packages/log/src/testing/ReplayContract.ts"
import { tailContract } from "../../packages/log/src/testing/TailContract.ts"
import { runtime } from "../support/Harness.ts"
import { contents } from "../support/Logs.ts"
import * as ServedApi from "../server/http/support/ServedApi.ts"
import { clientOf } from "./support/ServedClient.ts"

/** The facade of the server, with pages as long as the log's. */
const facade = Layer.effect(
  Sessions,
  Effect.gen(function* () {
    const [log, sessions] = [yield* EventLog, yield* Sessions]
    return Sessions.of({ ...sessions, eventsMarked: log.tailMarked, history: log.read })
  })
)

const served = Layer.scoped(ServedApi.Served, ServedApi.serve()).pipe(Layer.provide(facade))

/** The log, read over TCP. A connection that is lost is a defect of these tests. */
const remote = Layer.effect(
  EventLog,
  Effect.gen(function* () {
    const [log, { url }] = [yield* EventLog, yield* ServedApi.Served]
    const client = yield* clientOf(url)
    const found = <A, E>(items: Stream.Stream<A, E | ConnectionError>): Stream.Stream<A, E> =>
      Stream.catchAll(items, (error) => (isLost(error) ? Stream.die(error) : Stream.fail(error)))
    return EventLog.of({
      ...log,
      tail: (options) => found(client.events(options)),
      tailMarked: (options) => found(client.eventsMarked(options)),
      feed: (options) => found(client.feed(options)),
      read: (options) =>
        Effect.catchAll(client.history(options), (error) => (isLost(error) ? Effect.die(error) : Effect.fail(error)))
    })
  })
)

const layer = remote.pipe(Layer.provideMerge(served), Layer.provideMerge(runtime()))

tailContract({ name: "over TCP", layer, contents })
replayContract({ name: "over TCP", layer, contents })
incarnationContract({ name: "over TCP", layer, contents })
