/**
 * The sockets of a host: one for each agent and model that it serves, with what stands behind all of them: the queues that
 * are kept going, the files that are kept current, and, once somebody asks for a temp session, a runtime in memory.
 * At the start what dead processes left is settled, and what waits is run. Spec: SO-39, SO-70 in specs/socket.md
 * (FR-1, FR-10, FL-10, DC-18).
 */
import { EventLog, fairly, SessionExecution, Sessions, SessionStore, type ModelRef } from "@daybook/core"
import { Exporter, nameFrom, type SharedSpaces } from "@daybook/files"
import { Array as Arr, Deferred, Effect, ExecutionStrategy, Exit, Fiber, Layer, Option, Schema, Scope } from "effect"
import * as Asks from "./Asks.ts"
import { fromContext, type Backend, type BackendServices } from "./Backend.ts"
import * as Keeper from "./Keeper.ts"
import { listen, type Listener, type SocketBusy, type SocketUnusable } from "./Listener.ts"
import { Refused, refusedBy } from "./Refused.ts"
import * as Served from "./Served.ts"
import * as Stopping from "./Stopping.ts"
import { isCommonRoot, makeFolder } from "./PrivateFolder.ts"
import type { Place } from "./SocketPath.ts"
import { checkKeeper, defaultCwdOf, owns, socketOf, worldOf, type Subject } from "./Subject.ts"

/** Two of what is to be served have one name: their sessions would be each other's. */
export class NameTaken extends Schema.TaggedError<NameTaken>("@daybook/server/NameTaken")("NameTaken", {
  kind: Schema.Literal("agent", "model"),
  name: Schema.String
}) {
  override get message() {
    return `two ${this.kind}s are to be served as "${this.name}": give one of them another name`
  }
}

/** What is behind a socket cannot be served, or what was left could not be settled. */
export class ServeFailed extends Schema.TaggedError<ServeFailed>("@daybook/server/ServeFailed")("ServeFailed", {
  details: Schema.String
}) {
  override get message() {
    return this.details
  }
}

/** An agent to serve, and the folder that is its world where that is not the one in its home. */
export interface ServedAgent {
  readonly name: string
  /** The name that its socket and its sessions are kept under; its own by default. */
  readonly alias?: string | undefined
  readonly chroot?: string | undefined
}

/** A model to serve; its sessions are kept under the alias, by default the last part of its id. */
export interface ServedModel {
  readonly alias?: string | undefined
  readonly ref: ModelRef
}

export interface ServeOptions {
  /** The layout's root, as an absolute path. */
  readonly root: string
  /** Whose private sessions are served. */
  readonly uid: number
  readonly agents?: ReadonlyArray<ServedAgent> | undefined
  readonly models?: ReadonlyArray<ServedModel> | undefined
  readonly shared?: SharedSpaces | undefined
  /** The runtime of temp sessions, made when the first is; nothing of it may reach the disk. */
  readonly temp: Layer.Layer<BackendServices, { readonly message: string }>
  /** Where the runtimes ask for permissions, so that clients can answer; without it, they hear of none. */
  readonly asks?: Asks.Asks | undefined
  /** Requests that may wait for their admission in one session; 64 by default. */
  readonly backlog?: number | undefined
  /** Clients of one socket at once; 256 by default. */
  readonly connections?: number | undefined
}

/** A socket that answers. */
export interface ServedSocket extends Listener {
  readonly kind: "agent" | "model"
  readonly name: string
  /** The space that it serves alone; without it, it is the user's own. */
  readonly space?: string
}

const defaultBacklog = 64

const subjectsOf = (
  { agents = [], models = [], root, shared = {}, uid }: ServeOptions,
  common: boolean
): ReadonlyArray<Subject> => [
  ...agents.map(({ alias, chroot, name: agent }): Subject => {
    return { kind: "agent", agent, name: alias ?? agent, root, uid, shared, common, chroot }
  }),
  ...models.map(({ alias, ref }): Subject => {
    const name = alias ?? nameFrom(ref.id.split("/").at(-1) ?? ref.id)
    return { kind: "model", name, root, uid, shared, common, ref }
  })
]

const openTo = { group: 0o660, everyone: 0o666 }

/** The user's own socket, and one for each space that others may write to, where this subject may have sessions. */
const placesOf = (subject: Subject): ReadonlyArray<{ readonly subject: Subject; readonly place: Place }> => {
  const { common, kind, name, root, shared, uid } = subject
  const socket = socketOf(subject)
  const own: Place = { root, name: common ? `home/${uid}/${socket}` : socket }
  const spaces = Object.entries(shared).flatMap(([space, { agents, group, write = "owner" }]) => {
    if (write === "owner" || (agents !== undefined && !(kind === "agent" && agents.includes(name)))) return []
    const place: Place = {
      root,
      name: `shared/${space}/${socket}`,
      mode: openTo[write],
      group,
      shared,
      bindIn: `home/${uid}`
    }
    return [{ subject: { ...subject, space }, place }]
  })
  return [{ subject, place: own }, ...spaces]
}

const twice = (subjects: ReadonlyArray<Subject>) =>
  subjects.find(({ kind, name }, at) =>
    subjects.slice(0, at).some((other) => other.kind === kind && other.name === name)
  )

/** How long runs may take to end. */
const lastRuns = "5 seconds"
/** How long the files may take to have it, and clients to read it. */
const lastAnswers = "1 second"
/** How long clients may take to read that the server stops. */
const lastWords = "5 seconds"

/** Ends what runs for clients, as closing the runtime would. */
const stopRuns = ({ backend: { answers, sessions }, keeper }: Served.Kept) =>
  Effect.gen(function* () {
    yield* keeper.close
    const interrupt = Effect.forEach(yield* keeper.busy, (id) => Effect.ignoreLogged(sessions.interrupt(id)), {
      concurrency: 16,
      discard: true
    })
    yield* Effect.timeoutOption(Effect.interruptible(interrupt), lastRuns)
    yield* Effect.timeoutOption(Effect.interruptible(answers.none), lastAnswers)
  })

/** Ends the runs, then every answer and every connection, each with a word of why, within a bounded time. */
const stop = (stopping: Stopping.Stopping, kept: ReadonlyArray<Served.Kept>, sockets: ReadonlyArray<ServedSocket>) =>
  Effect.gen(function* () {
    yield* stopping.begin
    yield* Effect.forEach(kept, stopRuns, { concurrency: "unbounded", discard: true })
    yield* stopping.end
    yield* Effect.forEach(sockets, ({ idle }) => idle, { discard: true }).pipe(
      Effect.interruptible,
      Effect.timeoutOption(lastWords)
    )
  })

/** Makes what the subject works in, where it is not there: a session alone leaves no trace beside its own files. */
const prepare = Effect.fnUntraced(function* (subject: Subject) {
  // In a common root `home` is other users' as well, before anything is made below it.
  yield* makeFolder(subject.root, ["home", String(subject.uid)], subject.shared)
  yield* worldOf(subject)
  if (subject.kind === "agent") yield* defaultCwdOf(subject)
})

/** The runtime of temp sessions: made when it is first asked for, and again after it could not be. */
const tempOf = Effect.fnUntraced(function* (layer: ServeOptions["temp"]) {
  const scope = yield* Effect.scope
  /** What one try leaves goes with it. */
  const make = Effect.gen(function* () {
    const own = yield* Scope.fork(scope, ExecutionStrategy.sequential)
    return yield* Effect.gen(function* () {
      const backend = fromContext(yield* Layer.buildWithScope(Layer.fresh(layer), own))
      return { backend, keeper: yield* Effect.provideService(Keeper.make(backend), Scope.Scope, own) }
    }).pipe(Effect.onError((cause) => Scope.close(own, Exit.failCause(cause))))
  })
  let made: Deferred.Deferred<Served.Kept, Refused> | undefined
  /** The runtime, where it was asked for and is there. */
  const present = Effect.suspend(() => (made === undefined ? Effect.succeedNone : Deferred.poll(made))).pipe(
    Effect.flatMap(Effect.transposeOption),
    Effect.orElseSucceed(() => Option.none<Served.Kept>())
  )
  // The first who asks may leave before it is there: it is made by a fiber of its own.
  const get = Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      if (made === undefined) {
        const next = yield* Deferred.make<Served.Kept, Refused>()
        made = next
        yield* make.pipe(
          Effect.interruptible,
          Effect.mapError(({ message }) => new Refused({ code: "EIO", message })),
          Effect.onError(() => Effect.sync(() => void (made = undefined))),
          Effect.intoDeferred(next),
          Effect.forkIn(scope)
        )
      }
      return yield* restore(Deferred.await(made))
    })
  )
  return { get, present }
})

/** How long the sockets wait for what dead processes left to be settled; it goes on behind them. */
const recoveryPatience = "2 seconds"

/** Settles what dead processes left in the served sessions, then runs what waits there (DC-18). */
const recover = Effect.fn("SessionSocket.recover")(function* (
  backend: Backend,
  keeper: Keeper.Keeper,
  subjects: ReadonlyArray<Subject>
) {
  const served = (session: Parameters<typeof owns>[2]) =>
    Effect.exists(subjects, (subject) => owns(backend, subject, session))
  for (const session of yield* backend.sessions.interrupted) {
    if (yield* served(session)) yield* backend.sessions.settle(session.id)
  }
  for (const session of yield* backend.store.withWaiting) {
    if (yield* served(session)) yield* keeper.ring(session.id)
  }
})

/**
 * Serves until the scope closes. The runtime of the context has the sessions; its exporter keeps their files. Closing the
 * scope interrupts what runs here, tells clients so, takes the sockets away and ends the connections; what waits is run
 * when it is served again.
 */
export const serve = Effect.fn("SessionSocket.serve")(function* (
  options: ServeOptions
): Effect.fn.Return<
  ReadonlyArray<ServedSocket>,
  SocketBusy | SocketUnusable | NameTaken | ServeFailed,
  Sessions | SessionExecution | SessionStore | EventLog | Exporter | Scope.Scope
> {
  const failed = ({ message }: { readonly message: string }) => new ServeFailed({ details: message })
  const common = yield* Effect.mapError(isCommonRoot(options.root), failed)
  const subjects = subjectsOf(options, common)
  const same = twice(subjects)
  if (same !== undefined) return yield* new NameTaken({ kind: same.kind, name: same.name })
  const exporter = yield* Exporter
  const backend = fromContext(yield* Effect.context<BackendServices>(), exporter.reached)
  // Before the sockets, so that they are closed after them: with fibers of their own, which come later.
  const scope = yield* Scope.fork(yield* Effect.scope, ExecutionStrategy.sequential)
  const keeper = yield* Effect.provideService(Keeper.make(backend), Scope.Scope, scope)
  yield* Effect.forEach(subjects, prepare, { discard: true }).pipe(Effect.mapError(failed))
  const recovering = yield* Effect.forkIn(recover(backend, keeper, subjects), scope)
  // Whether an owner of another boot lives takes a lease to know; the sockets do not wait for that.
  yield* Fiber.join(recovering).pipe(
    Effect.timeoutOption(recoveryPatience),
    Effect.mapError((error) => failed(refusedBy(error)))
  )
  yield* Effect.forkScoped(exporter.follow)

  const stopping = Stopping.make()
  const asks = options.asks ?? Asks.make()
  const temp = yield* Effect.provideService(tempOf(options.temp), Scope.Scope, scope)
  const { backlog = defaultBacklog, connections: maxConnections } = options
  const most = maxConnections === undefined ? {} : { maxConnections }
  const open = Effect.fnUntraced(function* (subject: Subject, place: Place, desk: Served.Desk) {
    const durable = { backend, keeper }
    const handle = yield* Served.make({ subject, durable, temp: temp.get, stopping, asks, desk }).pipe(
      Effect.provideService(Scope.Scope, scope)
    )
    const listener = yield* listen({ ...place, ...most }, handle)
    const { kind, name, space } = subject
    return { ...listener, kind, name, ...(space === undefined ? {} : { space }) } satisfies ServedSocket
  })
  const opened = yield* Effect.forEach(subjects, (served) => {
    const desk = Served.makeDesk(backlog)
    return Effect.forEach(placesOf(served), ({ place, subject }) => {
      const socket = Effect.asSome(open(subject, place, desk))
      if (subject.space === undefined) return socket
      // Another user keeps the space, or serves this agent there: the rest of the server goes on.
      return Effect.zipRight(checkKeeper(subject, subject.space), socket).pipe(
        Effect.catchAll((error) => Effect.as(Effect.logWarning(error.message), Option.none<ServedSocket>()))
      )
    })
  })
  const sockets = Arr.getSomes(opened.flat())
  // After the sockets, so that it is done before they close.
  yield* Effect.addFinalizer(() =>
    Effect.flatMap(temp.present, (temps) => stop(stopping, [{ backend, keeper }, ...Option.toArray(temps)], sockets))
  )
  return sockets
}, fairly)
