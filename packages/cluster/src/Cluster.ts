/**
 * Decides which node runs a session: an entity per session, on the node that holds its shard. What must last is in the
 * inbox and the log, so messages between nodes are volatile, and the owner's epoch fences every append.
 * Spec: specs/scale.md.
 *
 * @module @daybook/cluster/Cluster
 */
import { SessionExecution } from "@daybook/core/session/SessionExecution"
import { InitializationBlocked, RunInterrupted } from "@daybook/core/domain/RunFailure"
import type { Placement } from "@daybook/core/Runtime"
import * as Workspaces from "@daybook/core/workspace/Workspaces"
import { Moves } from "@daybook/log/coordination/Moves"
import { isRunning } from "@daybook/log/coordination/OwnerRows"
import { SessionOwner } from "@daybook/log/coordination/SessionOwner"
import { SessionID } from "@daybook/log/domain/Identifiers"
import type { Session } from "@daybook/log/domain/Message"
import type { LiveEvent } from "@daybook/log/events/SessionEvents"
import { EventLog, type LiveRelay, type OpenText, type SessionNotFound } from "@daybook/log/log/EventLog"
import { Inbox } from "@daybook/log/store/Inbox"
import { hasWorkspace, NodeStore } from "@daybook/log/store/NodeStore"
import { SessionStore } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
import { loggedOnce } from "@daybook/log/support/LoggedOnce"
import * as Metrics from "@daybook/log/support/Metrics"
import * as Entity from "@effect/cluster/Entity"
import * as EntityId from "@effect/cluster/EntityId"
import * as Sharding from "@effect/cluster/Sharding"
import {
  Context,
  Effect,
  ExecutionStrategy,
  Exit,
  Fiber,
  Layer,
  Metric,
  Queue,
  Schedule,
  Schema,
  Scope,
  Stream
} from "effect"
import * as Engine from "./Engine.ts"

export type { Settings } from "./Engine.ts"

const lost = Effect.catchAllCause((cause) => Effect.logDebug("a message to another node was lost", cause))

/** How long a reader waits before it looks again where the session's shard is. */
const relayAgain = "500 millis"

/** How long a wake looks for the node that holds the shard; a sweep of that node finds the session later. */
const longestWake = "5 seconds"

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

/** How long the engine may take to end. */
const longestEnd = "5 seconds"

/** How often a node says that it lives. */
const saysEvery = "2 seconds"

/** Maximum number of sessions that a node names as running there. */
const mostSaid = 50

/** What a node says of itself: the metrics of its process. */
const figures = Effect.gen(function* () {
  const [given, taken] = [
    yield* Metric.value(Metrics.handOvers("given")),
    yield* Metric.value(Metrics.handOvers("taken"))
  ]
  const moved = (yield* Metric.value(Metrics.handOverAt)).value
  return {
    lagMs: Math.round((yield* Metric.value(Metrics.loopLagAt("0.99"))).value),
    unindexed: (yield* Metric.value(Metrics.searchLag)).value,
    handedOver: given.count,
    takenUp: taken.count,
    ...(moved === 0 ? {} : { movedAt: moved })
  }
})

/** Sessions that are settled at a time. */
const settledAtOnce = 16

/** How often a wait looks whether the session's activity still runs. */
const waitAgain = "250 millis"

/**
 * Waits here, also for a run of a node that left its shards and still works on it, and for one whose node died: nodes settle it, or
 * go on with it.
 */
const makeSettled = Effect.gen(function* () {
  const [local, store] = [yield* SessionExecution, yield* SessionStore]
  const settled = (sessionID: SessionID): Effect.Effect<void> =>
    local.settled(sessionID).pipe(
      Effect.zipRight(Effect.orElseSucceed(Effect.map(store.get(sessionID), isRunning), () => false)),
      Effect.flatMap((runs) => (runs ? Effect.delay(settled(sessionID), waitAgain) : Effect.void))
    )
  return settled
})

const entity = Engine.Session.toLayer(
  Effect.gen(function* () {
    const local = yield* SessionExecution
    const settled = yield* makeSettled
    const log = yield* EventLog
    const { entityId } = yield* Entity.CurrentAddress
    const sessionID = yield* Effect.orDie(Schema.decodeUnknown(SessionID)(Engine.entityOf(entityId).sessionID))
    const live = Effect.map(log.subscribe({ sessionID }), ({ live, soFar }) =>
      Stream.filter(live, isWhole(idsOf(soFar)))
    )
    return {
      Wake: () => local.wake(sessionID),
      // The wake that went before may come after.
      Settled: () => Effect.zipRight(local.wake(sessionID), settled(sessionID)),
      Resume: () => local.resume(sessionID),
      // A reader that fell behind begins again.
      Live: () => Stream.catchAll(Stream.unwrapScoped(live), () => Stream.empty)
    }
  }),
  { concurrency: "unbounded" }
)

const make = Effect.fnUntraced(function* (settings: Engine.Settings, leaseMs: number) {
  const { sweepEvery = "2 seconds", workspaces = {} } = settings
  const local = yield* SessionExecution
  const [inbox, log, store] = [yield* Inbox, yield* EventLog, yield* SessionStore]
  const [nodes, owners, settled] = [yield* NodeStore, yield* SessionOwner, yield* makeSettled]
  const address = `${settings.host}:${settings.port}`
  const scope = yield* Effect.scope
  const fork = Effect.forkIn(scope)
  const engine = yield* Scope.fork(scope, ExecutionStrategy.sequential)
  // While the database is away, the engine tries again and again to give up its shards. The wait is interruptible, also where its
  // caller is not: a timeout could not end it otherwise.
  const endEngine = Effect.flatMap(Effect.forkDaemon(Scope.close(engine, Exit.void)), (end) =>
    Effect.timeoutOption(Effect.interruptible(Fiber.await(end)), longestEnd)
  )
  yield* Effect.addFinalizer(() => endEngine)
  const takesUp = yield* Effect.makeLatch()
  const taken = yield* Queue.sliding<void>(1)
  // Only the engine uses this clock: the work of a session does not inherit the clock of the fiber that wakes it (EX-11).
  const built = yield* Effect.withClock(
    Layer.buildWithScope(
      Layer.provideMerge(entity, Engine.layer(settings, leaseMs, takesUp.await, Queue.offer(taken, undefined))),
      engine
    ),
    yield* Engine.eager(yield* Effect.clock, (yield* Moves).told)
  )
  const sharding = Context.get(built, Sharding.Sharding)
  const remote = yield* Effect.provide(Engine.Session.client, built)
  let leaving = false
  const say = Effect.gen(function* () {
    const active = yield* local.active
    const sessions = active.slice(0, mostSaid)
    yield* nodes.renew({ address, leaving, running: active.length, sessions, ...(yield* figures) })
  })
  const begin = Effect.mapError(nodes.begin(address, Object.keys(workspaces)), Engine.failed(settings))
  yield* Effect.acquireRelease(begin, () => Effect.ignoreLogged(nodes.end(address)))
  yield* fork(Effect.repeat(Effect.ignoreLogged(say), Schedule.spaced(saysEvery)))

  const isHere = (id: string) => {
    const entity = EntityId.make(id)
    return sharding.hasShardId(sharding.getShardId(entity, Engine.Session.getShardGroup(entity)))
  }
  /** The id under which the nodes know the session. */
  const idOf = ({ id, location }: Session) => Engine.entityID(id, location.workspaceID)

  /** A node that leaves has no shards and sends no messages. It hands over the sessions that it may run. */
  const isOwn = (session: Session) =>
    (leaving && Workspaces.isHere(workspaces, session.location)) || isHere(idOf(session))

  /** Does it where the session runs. A node that is asked for a session can take up work. */
  const placed = <A, E, R, E2, R2>(
    sessionID: SessionID,
    here: Effect.Effect<A, E, R>,
    elsewhere: (id: string, session: Session) => Effect.Effect<A, E2, R2>
  ) =>
    Effect.flatMap(Effect.zipRight(takesUp.open, store.get(sessionID)), (session): Effect.Effect<A, E | E2, R | R2> =>
      isOwn(session) ? here : elsewhere(idOf(session), session)
    )

  /** A message to a workspace that no node has would wait for one. */
  const isSomewhere = Effect.fnUntraced(function* ({ location: { workspaceID } }: Session) {
    if (workspaceID === undefined || (yield* hasWorkspace(nodes, workspaceID))) return
    return yield* new InitializationBlocked({ keys: [`a node with the workspace ${workspaceID}`] })
  })

  const ofHere = (sessions: ReadonlyArray<Session>) =>
    sessions.filter((session) => isHere(idOf(session))).map(({ id }) => id)

  let last: SessionID | undefined
  const sweep = Effect.gen(function* () {
    const woken = turn(ofHere(yield* inbox.sessions).toSorted(), last)
    last = woken.at(-1)
    yield* Effect.forEach(woken, local.wake, { discard: true })
  })
  /** The sessions whose owners are being looked at. */
  const looked = new Set<SessionID>()
  /** Settles what died with other nodes. Its owners are looked at together: each alone would take a lease's time. */
  const settleDead = Effect.fnUntraced(function* (left: ReadonlyArray<SessionID>) {
    const living = yield* owners.owned(left)
    const dead = left.filter((id) => !living.has(id))
    yield* Effect.forEach(dead, (id) => Effect.ignoreLogged(local.settle(id)), {
      concurrency: settledAtOnce,
      discard: true
    })
  })
  const swept = loggedOnce("sessions whose prompts wait could not be found")
  const found = loggedOnce("what dead nodes left could not be found")
  const cleared = loggedOnce("what dead nodes left could not be settled")
  const settleLeft = Effect.gen(function* () {
    const active = new Set(yield* local.active)
    const left = ofHere(yield* store.interrupted).filter((id) => !active.has(id) && !looked.has(id))
    for (const id of left) looked.add(id)
    const over = Effect.sync(() => left.forEach((id) => looked.delete(id)))
    // The next look does not wait for these.
    if (left.length > 0) yield* fork(Effect.ensuring(cleared(settleDead(left), undefined), over))
  })
  // Shards that the node takes may be those of a dead one. The look waits until all are taken: sessions that were handed over go first.
  const shardsTaken = Stream.debounce(Stream.fromQueue(taken), "250 millis")
  yield* Stream.merge(Stream.tick(sweepEvery), shardsTaken).pipe(
    Stream.buffer({ capacity: 1, strategy: "sliding" }),
    Stream.runForEach(() => Effect.zipRight(swept(sweep, undefined), found(settleLeft, undefined))),
    fork
  )

  const relay: LiveRelay = (sessionID, tell) => {
    // The engine sends the message again if the node does not answer, also to this node: its subscribers hear it anyway.
    const follow = (id: string) =>
      remote(id)
        .Live()
        .pipe(
          Stream.takeWhile(() => !isHere(id)),
          Stream.runForEach((event) => Effect.sync(() => tell(event)))
        )
    return Effect.asVoid(Effect.repeat(lost(placed(sessionID, Effect.void, follow)), Schedule.spaced(relayAgain)))
  }
  yield* log.relayLive(relay)

  /** Waits at the node that has the shard, and at the next one if that dies. */
  const settledThere = (sessionID: SessionID): Effect.Effect<void, SessionNotFound | StoreError> =>
    placed(sessionID, Effect.void, (id) =>
      Effect.catchAllCause(remote(id).Settled(), () => Effect.delay(settledThere(sessionID), waitAgain))
    )

  return SessionExecution.of({
    ...local,
    wake: (sessionID) =>
      lost(
        placed(sessionID, local.wake(sessionID), (id) =>
          // Admissions wake in a region that cannot be interrupted, which a fork would inherit: no time would end it.
          Effect.asVoid(fork(Effect.interruptible(lost(Effect.timeout(remote(id).Wake(), longestWake)))))
        )
      ),
    resume: (sessionID) =>
      placed(sessionID, local.resume(sessionID), (id, session) =>
        Effect.zipRight(
          isSomewhere(session),
          Effect.catchTags(remote(id).Resume(), {
            AlreadyProcessingMessage: () => new RunInterrupted({ key: sessionID }),
            MailboxFull: () => new RunInterrupted({ key: sessionID }),
            PersistenceError: () => new RunInterrupted({ key: sessionID })
          })
        )
      ),
    settled: (sessionID) =>
      local.settled(sessionID).pipe(
        Effect.zipRight(lost(settledThere(sessionID))),
        // A node that leaves cuts the message off, and works on.
        Effect.zipRight(settled(sessionID))
      ),
    takeUp: (goOn) =>
      Effect.zipRight(
        takesUp.open,
        local.takeUp((sessionID) => lost(placed(sessionID, goOn(sessionID), () => Effect.void)))
      ),
    leave: (atMost) =>
      Effect.suspend(() => {
        leaving = true
        return Effect.zipRight(
          local.leave(atMost),
          // The process may end at once, but not before the others know that it left.
          Effect.asVoid(fork(Effect.uninterruptible(Effect.zipRight(endEngine, Effect.ignoreLogged(say)))))
        )
      })
  })
})

/** The option `placement` of a runtime whose log is in PostgreSQL. */
export const placement = (settings: Engine.Settings): Placement => ({
  execution: (leaseMs) => Layer.scoped(SessionExecution, make(settings, leaseMs)),
  workspaces: settings.workspaces ?? {}
})
