/**
 * The parts of `@effect/cluster` that a node runs on, with Daybook's timings, and an entity for each session. Neither
 * reads the environment. Spec: CU-24..CU-27 in specs/scale.md.
 */
import { connect } from "node:net"
import { PlacementFailed } from "@daybook/core/session/SessionExecution"
import { RunError } from "@daybook/core/runner/RunError"
import { Moves } from "@daybook/log/coordination/Moves"
import { LiveEvent } from "@daybook/log/events/SessionEvents"
import { NodeStore } from "@daybook/log/store/NodeStore"
import * as EventLoop from "@daybook/log/support/EventLoop"
import { codeOf } from "@daybook/log/support/SystemError"
import { PersistenceError } from "@effect/cluster/ClusterError"
import * as ClusterSchema from "@effect/cluster/ClusterSchema"
import * as Entity from "@effect/cluster/Entity"
import * as MessageStorage from "@effect/cluster/MessageStorage"
import * as RunnerAddress from "@effect/cluster/RunnerAddress"
import * as RunnerHealth from "@effect/cluster/RunnerHealth"
import * as Runners from "@effect/cluster/Runners"
import * as RunnerStorage from "@effect/cluster/RunnerStorage"
import type * as ShardId from "@effect/cluster/ShardId"
import * as ShardingConfig from "@effect/cluster/ShardingConfig"
import * as SocketRunner from "@effect/cluster/SocketRunner"
import * as SqlRunnerStorage from "@effect/cluster/SqlRunnerStorage"
import * as NodeClusterSocket from "@effect/platform-node/NodeClusterSocket"
import * as Rpc from "@effect/rpc/Rpc"
import * as RpcSerialization from "@effect/rpc/RpcSerialization"
import {
  type Clock,
  type Context,
  Deferred,
  Duration,
  Effect,
  Equal,
  FiberId,
  Layer,
  Option,
  Schedule,
  Stream
} from "effect"

/** A node of the cluster. */
export interface Settings {
  /** Where the other nodes reach this one. */
  readonly host: string
  readonly port: number
  /** How often this node looks for work whose wake was lost. Default: 2 seconds. */
  readonly sweepEvery?: Duration.DurationInput
  /** The folders of the workspaces that this node has, by name. */
  readonly workspaces?: Readonly<Record<string, string>>
}

/** An entity's id is the session's, and after `@` the workspace that the session needs. */
export const entityID = (sessionID: string, workspaceID: string | undefined): string =>
  workspaceID === undefined ? sessionID : `${sessionID}@${workspaceID}`

/** The shards of a workspace; a name of a workspace is never one of another group. */
const groupOf = (workspaceID: string | undefined): string =>
  workspaceID === undefined ? "default" : `workspace ${workspaceID}`

/** The session of an entity's id, and its group. */
export const entityOf = (id: string): { readonly sessionID: string; readonly group: string } => {
  const at = id.indexOf("@")
  return at < 0
    ? { sessionID: id, group: groupOf(undefined) }
    : { sessionID: id.slice(0, at), group: groupOf(id.slice(at + 1)) }
}

/** A session, on the node that holds its shard. Its messages store nothing. */
export const Session = Entity.make("Session", [
  Rpc.make("Wake"),
  Rpc.make("Settled"),
  Rpc.make("Resume", { error: RunError }),
  Rpc.make("Live", { success: LiveEvent, stream: true })
]).annotate(ClusterSchema.ShardGroup, (id) => entityOf(id).group)

/** How often the engine looks who is there, and for free shards. */
const look = Duration.millis(250)

/**
 * Locks of shards are rows with a lease, so that the shards of a frozen node move too, and databases with several schemas do
 * not share locks. What a lease cannot exclude, the owner's epoch does.
 */
const timings = (leaseMs: number): Partial<ShardingConfig.ShardingConfig["Type"]> => ({
  shardsPerGroup: 100,
  shardLockDisableAdvisory: true,
  shardLockRefreshInterval: Duration.millis(leaseMs / 3),
  shardLockExpiration: Duration.millis(leaseMs),
  refreshAssignmentsInterval: look,
  runnerHealthCheckInterval: Duration.millis(leaseMs / 3),
  // No message is stored, so nothing is polled: this is how often the engine looks again for shards that it gave up.
  entityMessagePollInterval: look,
  entityTerminationTimeout: Duration.seconds(2)
})

const second = Duration.seconds(1)

/** How long the engine sleeps while shards move. */
const short = Duration.millis(50)

/** How long shards move after a node came or left: they are given up, and then taken. */
const moving = 1_000_000_000n

/**
 * The engine's clock, which shortens sleeps that sessions would wait for. After each look for free shards the engine sleeps a
 * second, which no setting changes; shards that become free during that second would have no holder. A hint of another node
 * ends the sleep between two looks, and for a second the next looks follow at once (CU-39). Before any other sleep ends, the
 * event loop runs once: a node that was held up first reads its sockets. Otherwise it would give up shards whose renewal was
 * already answered.
 */
export const eager = Effect.fnUntraced(function* (clock: Clock.Clock, told: Stream.Stream<void>) {
  let lately: bigint | undefined
  const news = yield* Effect.makeLatch()
  const hear = Effect.sync(() => void (lately = clock.unsafeCurrentTimeNanos()))
  yield* Effect.forkScoped(Stream.runForEach(told, () => Effect.zipRight(hear, news.release)))
  const isMoving = () => lately !== undefined && clock.unsafeCurrentTimeNanos() - lately < moving
  const untilLook = Effect.suspend(() =>
    isMoving() ? clock.sleep(short) : Effect.raceFirst(clock.sleep(look), news.await)
  )
  const sleep: Clock.Clock["sleep"] = (duration) =>
    Duration.equals(duration, second)
      ? clock.sleep(short)
      : Duration.equals(duration, look)
        ? untilLook
        : Effect.zipRight(clock.sleep(duration), EventLoop.turn)
  return new Proxy(clock, {
    get: (target, property) => (property === "sleep" ? sleep : Reflect.get(target, property))
  })
})

/** Nodes that start together make the tables of the engine together, which PostgreSQL refuses to all but one. */
const together = Schedule.intersect(Schedule.recurs(10), Schedule.spaced("100 millis"))

/** Releases shards that are released together in one statement: with one for each, the next holder of the last one waits for all. */
export const releasing = <E>(release: (shards: ReadonlyArray<string>) => Effect.Effect<void, E>) => {
  interface Group {
    readonly shards: Array<string>
    readonly done: Deferred.Deferred<void, E>
  }
  let next: Group | undefined
  const send = (group: Group) =>
    EventLoop.turn.pipe(
      Effect.zipRight(
        Effect.suspend(() => {
          next = undefined
          return Effect.intoDeferred(release(group.shards), group.done)
        })
      ),
      // The others of the group wait for it.
      Effect.uninterruptible
    )
  return (shard: ShardId.ShardId): Effect.Effect<void, E> =>
    Effect.suspend(() => {
      if (next !== undefined) {
        next.shards.push(shard.toString())
        return Deferred.await(next.done)
      }
      const group: Group = { shards: [shard.toString()], done: Deferred.unsafeMake(FiberId.none) }
      next = group
      return Effect.zipRight(send(group), Deferred.await(group.done))
    })
}

type Locks = Pick<Context.Tag.Service<typeof RunnerStorage.RunnerStorage>, "acquire" | "refresh">

/**
 * A refresh names the shards that the engine held when the refresh began, and the engine gives up each shard that its answer
 * lacks. Here the answer also has the shards that the node acquired since then; otherwise the engine would give those up.
 */
export const remembering = (locks: Locks) => {
  /** The acquired shards that no refresh has named. */
  const unnamed = new Map<string, ShardId.ShardId>()
  const acquire: Locks["acquire"] = (node, shards) =>
    Effect.tap(locks.acquire(node, shards), (acquired) =>
      Effect.sync(() => {
        for (const shard of acquired) unnamed.set(shard.toString(), shard)
      })
    )
  const refresh: Locks["refresh"] = (node, shards) =>
    Effect.suspend(() => {
      const named = [...shards]
      for (const shard of named) unnamed.delete(shard.toString())
      return Effect.map(locks.refresh(node, named), (held) => [...held, ...unnamed.values()])
    })
  return { acquire, refresh, forget: (shard: ShardId.ShardId) => unnamed.delete(shard.toString()) }
}

/** How long a node that does not take up work waits before it takes shards. */
const longestStart = "2 seconds"

/** Registers a node: from then on others leave shards to it. */
export const onceTakenUp =
  (takesUp: Effect.Effect<void>) =>
  <A, E>(register: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.zipRight(Effect.timeoutOption(takesUp, longestStart), register)

/** Whether a process listens at the address of another node. */
export type Listener = "present" | "absent" | "unknown"

/** How long an address may take to answer. */
const longestKnock = "2 seconds"

/** The system's codes for an address without a listener, or without a machine. */
const absent = new Set(["ECONNREFUSED", "EHOSTUNREACH", "ENOTFOUND"])

/** How often a node looks whether the next one is there. */
const knocks = "300 millis"

/** Looks whether a process listens at the address. */
const knock = ({ host, port }: RunnerAddress.RunnerAddress): Effect.Effect<Listener> =>
  Effect.async<Listener>((resume) => {
    const socket = connect({ host, port })
    const find = (found: Listener) => {
      socket.destroy()
      resume(Effect.succeed(found))
    }
    socket.once("connect", () => find("present"))
    socket.on("error", (error) => find(absent.has(codeOf(error)) ? "absent" : "unknown"))
    return Effect.sync(() => void socket.destroy())
  }).pipe(Effect.timeoutTo({ duration: longestKnock, onTimeout: () => "unknown", onSuccess: (found) => found }))

/**
 * Watches the next node in the order of addresses. If two looks in a row find no listener, the node is gone: its shards become free
 * at once, not when their locks end. A node that only this one could not reach registers again. It is not judged again before it has
 * answered here.
 */
export const watching = (
  own: RunnerAddress.RunnerAddress,
  others: () => ReadonlyArray<RunnerAddress.RunnerAddress>,
  find: (node: RunnerAddress.RunnerAddress) => Effect.Effect<Listener>,
  gone: (node: RunnerAddress.RunnerAddress) => Effect.Effect<void, unknown>
): Effect.Effect<never> => {
  const nameOf = ({ host, port }: RunnerAddress.RunnerAddress) => `${host}:${port}`
  /** The nodes that answered, each until it counted as gone. */
  const answered = new Set<string>()
  let missed: string | undefined
  return Effect.suspend(() => {
    const all = others().toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1))
    const next = all.find((each) => nameOf(each) > nameOf(own)) ?? all[0]
    if (next === undefined || Equal.equals(next, own)) return Effect.void
    const name = nameOf(next)
    return Effect.flatMap(find(next), (found) => {
      if (found === "present") answered.add(name)
      const isMissing = found === "absent" && answered.has(name)
      const isGone = isMissing && missed === name
      missed = isMissing ? name : undefined
      if (!isGone) return Effect.void
      answered.delete(name)
      return Effect.zipRight(
        Effect.logWarning(`no process listens at ${name} any more; its shards go to other nodes`),
        Effect.ignoreLogged(gone(next))
      )
    })
  }).pipe(Effect.repeat(Schedule.spaced(knocks)), Effect.zipRight(Effect.never))
}

/** Until the other nodes have looked who is there. */
const forgotten = "1 second"

/**
 * The nodes in PostgreSQL. A node takes shards only once it takes up work: until then sessions would wait for it. Others know
 * an address by its first workspaces: one that comes back with other ones is forgotten first.
 */
const runnerStorage = (
  address: RunnerAddress.RunnerAddress,
  groups: ReadonlyArray<string>,
  takesUp: Effect.Effect<void>,
  taken: Effect.Effect<unknown>
) =>
  Layer.scoped(
    RunnerStorage.RunnerStorage,
    Effect.gen(function* () {
      const storage = yield* RunnerStorage.RunnerStorage
      const nodes = yield* NodeStore
      const moves = yield* Moves
      const telling = Effect.zipLeft(moves.tell)
      const fork = Effect.forkIn(yield* Effect.scope)
      const release = releasing((shards) =>
        PersistenceError.refail(nodes.release(`${address.host}:${address.port}`, shards))
      )
      const before = (yield* storage.getRunners).find(([runner]) => Equal.equals(runner.address, address))
      if (before !== undefined && before[0].groups.join() !== groups.join()) {
        yield* Effect.zipRight(storage.unregister(address), Effect.sleep(forgotten))
      }
      // They use one connection, which takes one statement at a time.
      const one = Effect.unsafeMakeSemaphore(1).withPermits(1)
      const locks = remembering({
        // The hint follows a moment later, when the engine counts the shards as this node's.
        acquire: (node, shards) =>
          Effect.tap(one(storage.acquire(node, shards)), ({ length }) =>
            length === 0 ? Effect.void : fork(Effect.all([EventLoop.turn, taken, moves.tell]))
          ),
        refresh: (node, shards) => one(storage.refresh(node, shards))
      })
      const releaseAll: typeof storage.releaseAll = (node) => one(storage.releaseAll(node))
      // Both at once: a node that sees only the departure looks for the shards again.
      const unregister: typeof storage.unregister = (node) =>
        telling(Effect.zipLeft(storage.unregister(node), Effect.ignore(releaseAll(node)), { concurrent: true }))
      let known: ReadonlyArray<RunnerAddress.RunnerAddress> = []
      yield* fork(watching(address, () => known, knock, unregister))
      return RunnerStorage.RunnerStorage.of({
        ...storage,
        ...locks,
        getRunners: Effect.tap(storage.getRunners, (runners) =>
          Effect.sync(() => void (known = runners.map(([runner]) => runner.address)))
        ),
        register: (runner, healthy) => telling(onceTakenUp(takesUp)(storage.register(runner, healthy))),
        release: (_, shard) => Effect.tap(release(shard), () => Effect.sync(() => locks.forget(shard))),
        releaseAll,
        unregister
      })
    })
  ).pipe(Layer.provide(Layer.retry(SqlRunnerStorage.layer, together)))

/** Says why the node cannot begin. */
export const failed =
  ({ host, port }: Settings) =>
  (error: { readonly _tag: string; readonly cause?: unknown }) => {
    const { cause } = error
    const refuse = (reason: PlacementFailed["reason"], details: string) =>
      new PlacementFailed({ node: `${host}:${port}`, reason, details })
    if (error._tag !== "SocketServerError") return refuse("other", `its tables cannot be used: ${String(cause)}`)
    switch (codeOf(cause)) {
      case "EADDRINUSE":
        return refuse("in-use", "another process listens there; choose another port")
      case "EACCES":
        return refuse("denied", "the port is reserved; choose one above 1023")
      case "EADDRNOTAVAIL":
      case "ENOTFOUND":
      case "EAI_AGAIN":
        return refuse("address", "this is no address of this machine; name one that the other nodes reach it at")
      default:
        return refuse("other", String(cause))
    }
  }

/** The node's part of the engine: it listens, and holds shards from `takesUp` until its scope closes. `taken` runs when it took some. */
export const layer = (
  settings: Settings,
  leaseMs: number,
  takesUp: Effect.Effect<void>,
  taken: Effect.Effect<unknown>
) => {
  const { host, port, workspaces = {} } = settings
  const address = RunnerAddress.make(host, port)
  // Sorted, as the engine stores them.
  const groups = [undefined, ...Object.keys(workspaces)].map(groupOf).toSorted()
  const config = ShardingConfig.layer({
    ...timings(leaseMs),
    availableShardGroups: groups,
    assignedShardGroups: groups,
    runnerAddress: Option.some(address)
  })
  const health = Layer.provide(RunnerHealth.layerPing, [Runners.layerRpc])
  return SocketRunner.layer.pipe(
    Layer.provide(NodeClusterSocket.layerSocketServer),
    Layer.provide(health),
    Layer.provide(NodeClusterSocket.layerClientProtocol),
    Layer.provide([
      MessageStorage.layerNoop,
      runnerStorage(address, groups, takesUp, taken),
      RpcSerialization.layerMsgPack
    ]),
    Layer.provide(config),
    Layer.mapError(failed(settings))
  )
}
