/**
 * Serves the sockets of a host, one for each agent and model, and what they share: the drainer of waiting prompts, the files, and
 * the in-memory runtime of temp sessions, which is created on demand. At the start it settles what dead processes left
 * and runs waiting prompts. Spec: SO-39, SO-70 in specs/socket.md (FR-1, FR-10, FL-10, DC-18).
 */
import { Array as Arr, Deferred, Effect, ExecutionStrategy, Exit, Fiber, Layer, Option, Schema, Scope } from "effect"
import { SessionExecution } from "@daybook/core/session/SessionExecution"
import { Sessions } from "@daybook/core/session/Sessions"
import { Exporter } from "@daybook/files/Exporter"
import { nameFrom, type SharedSpaces } from "@daybook/files/layout/Layout"
import type { ModelRef } from "@daybook/log/domain/Values"
import { EventLog } from "@daybook/log/log/EventLog"
import { Inbox } from "@daybook/log/store/Inbox"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { fairly } from "@daybook/log/support/EventLoop"
import * as Asks from "../shared/Asks.ts"
import { isCommonRoot, makeFolder } from "../shared/PrivateFolder.ts"
import * as Admission from "./Admission.ts"
import { type Backend, type BackendServices, fromContext, Refused, refusedBy } from "./Backend.ts"
import * as Drainer from "./Drainer.ts"
import * as Endpoint from "./Endpoint.ts"
import { listen, type Listener, type SocketBusy, type SocketUnusable } from "./Listener.ts"
import * as Served from "./Served.ts"
import type { SocketPlace } from "./SocketPath.ts"
import { checkSpaceOwner, defaultCwdOf, owns, socketOf, type Subject, worldOf } from "./Subject.ts"

/** Two served agents or models have the same name, so that they would share sessions. */
export class NameTaken extends Schema.TaggedError<NameTaken>("@daybook/server/NameTaken")("NameTaken", {
  kind: Schema.Literal("agent", "model"),
  name: Schema.String
}) {
  override get message() {
    return `two ${this.kind}s are to be served as "${this.name}": give one of them another name`
  }
}

/** A socket cannot be served, or a run of a dead process could not be settled. */
export class ServeFailed extends Schema.TaggedError<ServeFailed>("@daybook/server/ServeFailed")("ServeFailed", {
  details: Schema.String
}) {
  override get message() {
    return this.details
  }
}

/** An agent to serve; `chroot` is its world, by default the one in the user's home. */
export interface ServedAgent {
  readonly name: string
  /** The name of its socket and of its sessions; by default the agent's. */
  readonly alias?: string | undefined
  readonly chroot?: string | undefined
}

/** A model to serve. Its sessions are kept under the alias, by default the last part of the model's id. */
export interface ServedModel {
  readonly alias?: string | undefined
  readonly ref: ModelRef
}

/** What to serve, and where. Omitted options have the defaults of their fields. */
export interface ServeOptions {
  /** The layout's root, as an absolute path. */
  readonly root: string
  /** The user whose private sessions are served. */
  readonly uid: number
  readonly agents?: ReadonlyArray<ServedAgent> | undefined
  readonly models?: ReadonlyArray<ServedModel> | undefined
  readonly shared?: SharedSpaces | undefined
  /** The runtime of temp sessions, created with the first one; it must not write to disk. */
  readonly temp: Layer.Layer<BackendServices, { readonly message: string }>
  /** Connects permissions of the runtimes with clients; without it, clients see no permissions. */
  readonly asks?: Asks.Asks | undefined
  /** Requests that may wait for admission in one session; 64 by default. */
  readonly backlog?: number | undefined
  /** Clients of one socket at the same time; 256 by default. */
  readonly connections?: number | undefined
}

export interface ServedSocket extends Listener {
  readonly kind: "agent" | "model"
  readonly name: string
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

/** The user's own socket, and one for each space that others may write to and this subject may use. */
const placesOf = (subject: Subject): ReadonlyArray<{ readonly subject: Subject; readonly place: SocketPlace }> => {
  const { common, kind, name, root, shared, uid } = subject
  const socket = socketOf(subject)
  const own: SocketPlace = { root, name: common ? `home/${uid}/${socket}` : socket }
  const spaces = Object.entries(shared).flatMap(([space, { agents, group, write = "owner" }]) => {
    if (write === "owner" || (agents !== undefined && !(kind === "agent" && agents.includes(name)))) return []
    const place: SocketPlace = {
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
const lastAnswers = "1 second"
/** How long clients may take to read that the server stops. */
const lastWords = "5 seconds"

/** Interrupts the runs of clients that are not handed over. */
const stopRuns = Effect.fnUntraced(function* ({ backend: { answers, execution }, drainer }: Drainer.DrainedBackend) {
  yield* drainer.close
  yield* execution.left
  yield* Effect.timeoutOption(Effect.interruptible(execution.stop(yield* drainer.busy)), lastRuns)
  yield* Effect.timeoutOption(Effect.interruptible(answers.none), lastAnswers)
})

/** Ends the runs, then every answer and connection with the reason, within a bounded time. */
const stop = (
  stopping: Endpoint.Stopping,
  kept: ReadonlyArray<Drainer.DrainedBackend>,
  sockets: ReadonlyArray<ServedSocket>
) =>
  Effect.gen(function* () {
    yield* stopping.begin
    yield* Effect.forEach(kept, stopRuns, { concurrency: "unbounded", discard: true })
    yield* stopping.end
    yield* Effect.forEach(sockets, ({ idle }) => idle, { discard: true }).pipe(
      Effect.interruptible,
      Effect.timeoutOption(lastWords)
    )
  })

/** Creates the subject's world if absent. */
const prepare = Effect.fnUntraced(function* (subject: Subject) {
  // First `home`, which in a common root other users use too.
  yield* makeFolder(subject.root, ["home", String(subject.uid)], subject.shared)
  yield* worldOf(subject)
  if (subject.kind === "agent") yield* defaultCwdOf(subject)
})

/** The runtime of temp sessions: created on the first request, and again after a failure. */
const tempOf = Effect.fnUntraced(function* (layer: ServeOptions["temp"]) {
  const scope = yield* Effect.scope
  /** Closes the scope of a failed attempt. */
  const make = Effect.gen(function* () {
    const own = yield* Scope.fork(scope, ExecutionStrategy.sequential)
    return yield* Effect.gen(function* () {
      const backend = fromContext(yield* Layer.buildWithScope(Layer.fresh(layer), own))
      return { backend, drainer: yield* Effect.provideService(Drainer.make(backend), Scope.Scope, own) }
    }).pipe(Effect.onError((cause) => Scope.close(own, Exit.failCause(cause))))
  })
  let made: Deferred.Deferred<Drainer.DrainedBackend, Refused> | undefined
  /** The runtime, if it exists. */
  const present = Effect.suspend(() => (made === undefined ? Effect.succeedNone : Deferred.poll(made))).pipe(
    Effect.flatMap(Effect.transposeOption),
    Effect.orElseSucceed(() => Option.none<Drainer.DrainedBackend>())
  )
  // A separate fiber, because the first caller may leave before the runtime exists.
  const get = Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      if (made === undefined) {
        const next = yield* Deferred.make<Drainer.DrainedBackend, Refused>()
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

/** How long the sockets wait for the recovery; it continues in the background. */
const recoveryPatience = "2 seconds"

/** Settles what dead processes left in the served sessions, then runs their waiting prompts (DC-18). */
const recover = Effect.fn("SessionSocket.recover")(function* (
  backend: Backend,
  drainer: Drainer.Drainer,
  subjects: ReadonlyArray<Subject>
) {
  const served = (session: Parameters<typeof owns>[2]) =>
    Effect.exists(subjects, (subject) => owns(backend, subject, session))
  yield* backend.execution
    .takeUp((id) =>
      backend.store.get(id).pipe(
        Effect.flatMap(served),
        Effect.flatMap((is) => (is ? backend.execution.wake(id) : Effect.void)),
        Effect.ignoreLogged
      )
    )
    .pipe(Effect.forkScoped)
  for (const session of yield* backend.sessions.interrupted) {
    if (yield* served(session)) yield* backend.sessions.settle(session.id)
  }
  for (const session of yield* backend.inbox.sessions) {
    if (yield* served(session)) yield* drainer.wake(session.id)
  }
})

/**
 * Serves until the scope closes. The context has the runtime of the sessions and the exporter of their files. Closing
 * the scope interrupts the runs, tells the clients, removes the sockets and ends the connections. Waiting prompts run
 * when they are served again.
 */
export const serve = Effect.fn("SessionSocket.serve")(function* (
  options: ServeOptions
): Effect.fn.Return<
  ReadonlyArray<ServedSocket>,
  SocketBusy | SocketUnusable | NameTaken | ServeFailed,
  Sessions | SessionExecution | SessionStore | Inbox | EventLog | Exporter | Scope.Scope
> {
  const failed = ({ message }: { readonly message: string }) => new ServeFailed({ details: message })
  const common = yield* Effect.mapError(isCommonRoot(options.root), failed)
  const subjects = subjectsOf(options, common)
  const same = twice(subjects)
  if (same !== undefined) return yield* new NameTaken({ kind: same.kind, name: same.name })
  const exporter = yield* Exporter
  const backend = fromContext(yield* Effect.context<BackendServices>(), exporter.reached)
  // Created before the sockets, whose fibers come later, so that it closes after them.
  const scope = yield* Scope.fork(yield* Effect.scope, ExecutionStrategy.sequential)
  const drainer = yield* Effect.provideService(Drainer.make(backend), Scope.Scope, scope)
  yield* Effect.forEach(subjects, prepare, { discard: true }).pipe(Effect.mapError(failed))
  const recovering = yield* Effect.forkIn(recover(backend, drainer, subjects), scope)
  // Whether an owner of another boot lives takes a lease to find out; the sockets do not wait for that.
  yield* Fiber.join(recovering).pipe(
    Effect.timeoutOption(recoveryPatience),
    Effect.mapError((error) => failed(refusedBy(error)))
  )
  yield* Effect.forkScoped(exporter.follow)

  const stopping = Endpoint.makeStopping()
  const asks = options.asks ?? Asks.make()
  const temp = yield* Effect.provideService(tempOf(options.temp), Scope.Scope, scope)
  const { backlog = defaultBacklog, connections: maxConnections } = options
  const most = maxConnections === undefined ? {} : { maxConnections }
  const open = Effect.fnUntraced(function* (subject: Subject, place: SocketPlace, admissions: Admission.Admissions) {
    const durable = { backend, drainer }
    const handle = yield* Served.make({ subject, durable, temp: temp.get, stopping, asks, admissions }).pipe(
      Effect.provideService(Scope.Scope, scope)
    )
    const listener = yield* listen({ ...place, ...most }, handle)
    const { kind, name, space } = subject
    return { ...listener, kind, name, ...(space === undefined ? {} : { space }) } satisfies ServedSocket
  })
  const opened = yield* Effect.forEach(subjects, (served) => {
    const admissions = Admission.makeAdmissions(backlog)
    return Effect.forEach(placesOf(served), ({ place, subject }) => {
      const socket = Effect.asSome(open(subject, place, admissions))
      if (subject.space === undefined) return socket
      // Another user owns the space or serves this agent there; the other sockets are not affected.
      return Effect.zipRight(checkSpaceOwner(subject, subject.space), socket).pipe(
        Effect.catchAll((error) => Effect.as(Effect.logWarning(error.message), Option.none<ServedSocket>()))
      )
    })
  })
  const sockets = Arr.getSomes(opened.flat())
  // Registered after the sockets, so that it runs before they close.
  yield* Effect.addFinalizer(() =>
    Effect.flatMap(temp.present, (temps) => stop(stopping, [{ backend, drainer }, ...Option.toArray(temps)], sockets))
  )
  return sockets
}, fairly)
