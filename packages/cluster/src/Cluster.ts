/**
 * Decides which node runs a session: an entity per session, on the node that holds its shard. What must last is in the
 * inbox and the log, so messages between nodes are volatile, and the owner's epoch fences every append.
 * Spec: specs/scale.md.
 *
 * @module @daybook/cluster/Cluster
 */
import { SessionExecution } from "@daybook/core/session/SessionExecution"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { LiveEvent } from "@daybook/log/events/SessionEvents"
import { EventLog, type LiveRelay, type OpenText } from "@daybook/log/log/EventLog"
import { Inbox } from "@daybook/log/store/Inbox"
import * as Entity from "@effect/cluster/Entity"
import * as EntityId from "@effect/cluster/EntityId"
import * as MessageStorage from "@effect/cluster/MessageStorage"
import * as RunnerAddress from "@effect/cluster/RunnerAddress"
import * as Sharding from "@effect/cluster/Sharding"
import * as ShardingConfig from "@effect/cluster/ShardingConfig"
import * as SqlRunnerStorage from "@effect/cluster/SqlRunnerStorage"
import * as NodeClusterSocket from "@effect/platform-node/NodeClusterSocket"
import * as Rpc from "@effect/rpc/Rpc"
import { type Duration, Effect, Layer, Option, Schedule, Schema, Stream } from "effect"

/** A node of the cluster. */
export interface Settings {
  /** Where the other nodes reach this one. */
  readonly host: string
  readonly port: number
  /** How often this node looks for prompts whose wake was lost. Default: 5 seconds. */
  readonly sweepEvery?: Duration.DurationInput
  /** The timings of `@effect/cluster`; the same on every node. */
  readonly sharding?: Partial<ShardingConfig.ShardingConfig["Type"]>
}

const Session = Entity.make("Session", [
  Rpc.make("Wake"),
  Rpc.make("Settled"),
  Rpc.make("Live", { success: LiveEvent, stream: true })
])

const lost = Effect.catchAllCause((cause) => Effect.logDebug("a message to another node was lost", cause))

/** How long a reader waits before it looks again where the session's shard is. */
const relayAgain = "500 millis"

/** Whether a reader that joined within these texts hears this: a text without its beginning would be misread. */
const isWhole = (begun: ReadonlySet<string>) => (event: LiveEvent) => {
  if (event.type === "session.next.text.delta") return !begun.has(event.data.textID)
  return event.type !== "session.next.reasoning.delta" || !begun.has(event.data.reasoningID)
}

const idsOf = (texts: ReadonlyArray<OpenText>): ReadonlySet<string> => new Set(texts.map(({ id }) => id))

/** Maximum number of sessions that one sweep wakes. */
const page = 100

/**
 * The sessions that a sweep wakes: the next ones after the last that was woken, of sorted ids, and the first ones again after the
 * end (CU-3).
 *
 * @internal
 */
export const turn = (ids: ReadonlyArray<SessionID>, after: SessionID | undefined): ReadonlyArray<SessionID> => {
  const begin = after === undefined ? 0 : ids.findIndex((id) => id > after)
  return begin <= 0 ? ids.slice(0, page) : [...ids.slice(begin), ...ids.slice(0, begin)].slice(0, page)
}

const make = Effect.fnUntraced(function* ({ sweepEvery = "5 seconds" }: Settings) {
  const local = yield* SessionExecution
  const inbox = yield* Inbox
  const log = yield* EventLog
  const sharding = yield* Sharding.Sharding
  const entityOf = yield* Session.client
  const fork = yield* Effect.map(Effect.scope, (scope) => Effect.forkIn(scope))

  const isHere = (sessionID: SessionID) => {
    const id = EntityId.make(sessionID)
    return sharding.hasShardId(sharding.getShardId(id, Session.getShardGroup(id)))
  }

  let last: SessionID | undefined
  const sweep = Effect.gen(function* () {
    const here = (yield* inbox.sessions)
      .map(({ id }) => id)
      .filter(isHere)
      .toSorted()
    const woken = turn(here, last)
    last = woken.at(-1)
    yield* Effect.forEach(woken, local.wake, { discard: true })
  }).pipe(Effect.catchAllCause((cause) => Effect.logWarning("looking for waiting prompts failed", cause)))
  yield* fork(Effect.repeat(sweep, Schedule.spaced(sweepEvery)))

  const relay: LiveRelay = (sessionID, tell) => {
    const once = Effect.suspend(() =>
      isHere(sessionID)
        ? Effect.void
        : Stream.runForEach(entityOf(sessionID).Live(), (event) => Effect.sync(() => tell(event)))
    )
    return Effect.asVoid(Effect.repeat(lost(once), Schedule.spaced(relayAgain)))
  }
  yield* log.relayLive(relay)

  return SessionExecution.of({
    ...local,
    wake: (sessionID) =>
      isHere(sessionID) ? local.wake(sessionID) : Effect.asVoid(fork(lost(entityOf(sessionID).Wake()))),
    settled: (sessionID) => Effect.zipRight(local.settled(sessionID), lost(entityOf(sessionID).Settled()))
  })
})

const entity = Session.toLayer(
  Effect.gen(function* () {
    const local = yield* SessionExecution
    const log = yield* EventLog
    const { entityId } = yield* Entity.CurrentAddress
    const sessionID = yield* Effect.orDie(Schema.decodeUnknown(SessionID)(entityId))
    const live = Effect.map(log.subscribe({ sessionID }), ({ live, soFar }) =>
      Stream.filter(live, isWhole(idsOf(soFar)))
    )
    return {
      Wake: () => local.wake(sessionID),
      Settled: () => local.settled(sessionID),
      // A reader that fell behind begins again.
      Live: () => Stream.catchAll(Stream.unwrapScoped(live), () => Stream.empty)
    }
  }),
  { concurrency: "unbounded" }
)

/** The option `placement` of a runtime whose log is in PostgreSQL. */
export const placement = (settings: Settings) => {
  const config = { runnerAddress: Option.some(RunnerAddress.make(settings.host, settings.port)), ...settings.sharding }
  return Layer.scoped(SessionExecution, make(settings)).pipe(
    Layer.provide(entity),
    Layer.provide(NodeClusterSocket.layer({ storage: "byo", runnerHealth: "ping", shardingConfig: config })),
    Layer.provide([MessageStorage.layerNoop, SqlRunnerStorage.layer]),
    Layer.provide(ShardingConfig.layerFromEnv(config)),
    Layer.orDie
  )
}
