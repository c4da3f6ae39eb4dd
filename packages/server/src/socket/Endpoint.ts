/**
 * What the operations of one socket share: its subject, its runtimes, its clients, and the state of its requests. Spec:
 * SO-55, SO-56, SO-78, SO-79 in specs/socket.md (SC-2, DC-17).
 */
import { Cause, Deferred, Effect, FiberId, FiberSet, type Scope } from "effect"
import { type Address, addressKey } from "@daybook/log/domain/Address"
import type { RunID } from "@daybook/transcript/row/Rows"
import type { Asks } from "../shared/Asks.ts"
import type { Admissions } from "./Admission.ts"
import { type Backend, Refused } from "./Backend.ts"
import type { DrainedBackend } from "./Drainer.ts"
import type { AskOptions } from "./Follow.ts"
import type { Connection, ConnectionClosed } from "./Listener.ts"
import { addressIn, checkSpaceOwner, find, type Subject } from "./Subject.ts"
import * as Wire from "./Wire.ts"

// The stop of a server as clients see it: new requests are refused, then open answers and connections end with an
// error.

export interface Stopping {
  /** Refuses new requests from now on. */
  readonly begin: Effect.Effect<void>
  readonly begun: () => boolean
  /** Ends every open answer. */
  readonly end: Effect.Effect<void>
  readonly ended: () => boolean
  readonly awaitEnd: Effect.Effect<void>
  /** Runs the effect; `end` interrupts it and fails it with a refusal. */
  readonly until: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | Refused, R>
}

/** The refusal of requests while the server stops. */
export const stopRefused = new Refused({
  code: "EHOSTDOWN",
  message: "the server is stopping: waiting prompts run when it is back; send the request again, or resume"
})

/** The last frame of every connection. */
export const farewell = Wire.encodeFrame(
  Wire.errorFrame({ code: "EHOSTDOWN", message: "the server is stopping and closes this connection" })
)

export const makeStopping = (): Stopping => {
  let begun = false
  let ended = false
  const over = Deferred.unsafeMake<void>(FiberId.none)
  const awaitEnd = Deferred.await(over)
  return {
    begin: Effect.sync(() => void (begun = true)),
    begun: () => begun,
    end: Effect.suspend(() => {
      ended = true
      return Effect.asVoid(Deferred.succeed(over, undefined))
    }),
    ended: () => ended,
    awaitEnd,
    until: (effect) => Effect.raceFirst(effect, Effect.zipRight(awaitEnd, stopRefused))
  }
}

// Tracks the users of temp sessions: a session lives while a connection uses the session.

/** A session that a connection used, and the runs that it sent there. */
export interface ConnectionUse {
  readonly address: Address
  readonly runs: ReadonlySet<RunID>
}

interface TempSessions {
  /** Marks the session as used by the connection, from its first request on. */
  readonly use: (connection: number, address: Address) => void
  readonly sent: (connection: number, address: Address, run: RunID) => void
  /** Removes the connection; returns what it used. */
  readonly leave: (connection: number) => ReadonlyArray<ConnectionUse>
  readonly isUsed: (address: Address) => boolean
}

export const makeTempSessions = (): TempSessions => {
  const used = new Map<number, Map<string, { readonly address: Address; readonly runs: Set<RunID> }>>()

  const use = (connection: number, address: Address) => {
    const sessions = used.get(connection) ?? new Map()
    used.set(connection, sessions)
    const key = addressKey(address)
    const session = sessions.get(key) ?? { address, runs: new Set<RunID>() }
    sessions.set(key, session)
    return session
  }

  return {
    use,
    sent: (connection, address, run) => {
      // A connection that has left must not be added again.
      used.get(connection)?.get(addressKey(address))?.runs.add(run)
    },
    leave: (connection) => {
      const left = [...(used.get(connection)?.values() ?? [])]
      used.delete(connection)
      return left
    },
    isUsed: (address) => {
      const key = addressKey(address)
      return [...used.values()].some((sessions) => sessions.has(key))
    }
  }
}

// A connected client of a socket: its open answers, the runs that it follows, and refusals for it.

export interface Client {
  readonly connection: Connection
  /** Answers that continue beside the next requests. */
  readonly answers: FiberSet.FiberSet<void>
  /** Runs whose frames the client gets, each with the number of answers that write them. */
  readonly follows: Map<RunID, number>
  /** The number of answers in progress. */
  requests: number
}

export type Answer<A = void> = Effect.Effect<A, Refused | ConnectionClosed>

/** The request that an answer belongs to, and the run if it is known. */
export interface About {
  readonly id: string | undefined
  run?: RunID
  /** Set once the client is shown a run; a stopping server waits for its end. */
  shown?: Backend["answers"]
}

const broken = new Refused({ code: "EIO", message: "an internal error ended the answer; it is in the server's log" })

export const makeClient = (connection: Connection): Effect.Effect<Client, never, Scope.Scope> =>
  Effect.map(FiberSet.make<void>(), (answers) => ({ connection, answers, follows: new Map(), requests: 0 }))

export const write = ({ connection }: Client, frame: Wire.Frame) => connection.write(Wire.encodeFrame(frame))

export const refuse = (
  client: Client,
  { code, message }: Refused,
  { id, run }: Pick<About, "id" | "run">
): Effect.Effect<void, ConnectionClosed> => write(client, Wire.errorFrame({ code, message, id, run }))

/** Writes that the request waits; with `run`, its prompt is on disk. */
export const queued = (client: Client, id: string, run?: RunID): Effect.Effect<void, ConnectionClosed> =>
  write(client, { type: "queued", id, ...(run === undefined ? {} : { run }) })

/** Counts the answer as showing a run; call it when the run starts. */
export const showing =
  ({ answers }: Backend, about: About) =>
  (): void => {
    if (about.shown !== undefined) return
    about.shown = answers
    answers.begin()
  }

/** Counts the run as followed by the client while the effect runs. */
export const following = <A, E>({ follows }: Client, run: RunID, effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.acquireUseRelease(
    Effect.sync(() => follows.set(run, (follows.get(run) ?? 0) + 1)),
    () => effect,
    () =>
      Effect.sync(() => {
        const count = (follows.get(run) ?? 1) - 1
        if (count === 0) follows.delete(run)
        else follows.set(run, count)
      })
  )

/** Runs the answer beside the next requests. A refusal carries the request's id, and its run once known. */
export const answerBeside = (client: Client, stopping: Stopping, about: About, answer: Answer): Effect.Effect<void> =>
  Effect.suspend(() => {
    client.requests += 1
    return stopping.until(answer).pipe(
      Effect.catchTag("Refused", (refused) => refuse(client, refused, about)),
      Effect.catchTag("ConnectionClosed", () => Effect.void),
      Effect.catchAllCause((cause) =>
        Cause.isInterruptedOnly(cause)
          ? Effect.void
          : Effect.zipRight(
              Effect.logError("a request could not be answered", cause),
              Effect.ignore(refuse(client, broken, about))
            )
      ),
      Effect.ensuring(
        Effect.sync(() => {
          client.requests -= 1
          about.shown?.end()
        })
      ),
      FiberSet.run(client.answers),
      Effect.asVoid
    )
  })

export interface Endpoint {
  readonly subject: Subject
  readonly durable: DrainedBackend
  /** Creates the temp runtime with the first temp session. */
  readonly temp: Effect.Effect<DrainedBackend, Refused>
  readonly stopping: Stopping
  readonly asks: Asks
  readonly admissions: Admissions
  readonly temps: TempSessions
  /** The scope of work that outlives its client. */
  readonly scope: Scope.Scope
}

/** Whether permissions may be decided here: only on the user's own socket. */
export const mayDecide = ({ subject }: Endpoint): boolean => subject.space === undefined

export const askingOf = (endpoint: Endpoint, { connection }: Client): AskOptions => ({
  asks: endpoint.asks,
  canAnswer: () => mayDecide(endpoint) && connection.sendsMore()
})

export const runtimeOf = (
  { durable, temp }: Endpoint,
  { scope }: { readonly scope: Wire.Scope }
): Effect.Effect<DrainedBackend, Refused> => (scope === "temp" ? temp : Effect.succeed(durable))

type Target = Pick<Wire.Resume, "session" | "scope" | "shared">

export const findSession = Effect.fnUntraced(function* (
  { subject }: Endpoint,
  { backend }: DrainedBackend,
  request: Target
) {
  const address = yield* addressIn(subject, request)
  const session = yield* find(backend, subject, address)
  if (session === undefined) yield* checkSpaceOwner(subject, request.shared)
  return session
})

/** The session that the request names; fails if it does not exist. */
export const getSession = (endpoint: Endpoint, runtime: DrainedBackend, request: Target) =>
  Effect.filterOrFail(
    findSession(endpoint, runtime, request),
    (session) => session !== undefined,
    () => new Refused({ code: "ENOENT", message: `there is no session "${request.session}"` })
  )
