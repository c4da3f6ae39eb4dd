/**
 * Serves one socket: the clients' operations on the sessions of one agent or model. Requests of a connection are taken
 * in order; long ones, above all runs, continue beside the next request, with whole frames interleaved. Spec:
 * SO-20..SO-39 in specs/socket.md (FR-2, FR-7..FR-11, DC-17, DC-19, DC-20).
 */
import { Cause, Deferred, Effect, Either, Fiber, FiberSet, type Scope, Stream } from "effect"
import { addressKey } from "@daybook/log/domain/Address"
import type { Session } from "@daybook/log/domain/Message"
import * as Fold from "@daybook/transcript/Fold"
import type { RunID } from "@daybook/transcript/row/Rows"
import { runOf } from "@daybook/transcript/row/RunOf"
import * as RunStream from "@daybook/transcript/RunStream"
import type { AskOptions } from "./ask/AskFrames.ts"
import type { Asks } from "./ask/Asks.ts"
import { admit, type Admitted, shownBefore } from "./operation/Admission.ts"
import * as Answering from "./operation/Answering.ts"
import { follow } from "./operation/Follow.ts"
import * as Overview from "./operation/Overview.ts"
import { resume } from "./operation/Resume.ts"
import { type Run, runsOf, stateAt } from "./run/Runs.ts"
import { activityStart, type Backend } from "./session/Backend.ts"
import type { Keeper } from "./session/Drainer.ts"
import { addressIn, checkKeeper, find, owns, placeOf, type Subject } from "./session/Subject.ts"
import * as TempSessions from "./session/TempSessions.ts"
import type { Connection, ConnectionClosed } from "./socket/Connection.ts"
import * as Stopping from "./socket/Stopping.ts"
import * as Lane from "./support/Lane.ts"
import { Refused, refusedBy } from "./support/Refused.ts"
import * as Wire from "./wire/Wire.ts"

/** Requests of one connection that are answered at the same time, at most. */
const requestsAtOnce = 64

const broken = new Refused({ code: "EIO", message: "an internal error ended the answer; it is in the server's log" })

/** A runtime and the keeper of its queues. */
export interface Kept {
  readonly backend: Backend
  readonly keeper: Keeper
}

export interface ServedOptions {
  readonly subject: Subject
  readonly durable: Kept
  /** Creates the temp runtime with the first temp session. */
  readonly temp: Effect.Effect<Kept, Refused>
  readonly stopping: Stopping.Stopping
  readonly asks: Asks
  /** Shared by all sockets that serve the same sessions. */
  readonly desk: Desk
}

/** Pending admissions: one at a time per session, whatever socket they came through. */
export interface Desk {
  readonly lane: Lane.Lane
  /** How many may wait in one session. */
  readonly backlog: number
  /** Current admissions; a cancel directly after its send waits for the admission. */
  readonly admissions: Set<Admitting>
  /** Sessions in which an admission waits for a run; later admissions wait with it. */
  readonly holding: Set<string>
}

export const makeDesk = (backlog: number): Desk => ({
  lane: Lane.make(backlog),
  backlog,
  admissions: new Set(),
  holding: new Set()
})

/** A connected client. */
interface Client {
  readonly connection: Connection
  readonly work: FiberSet.FiberSet<void>
  /** Runs whose frames the client already gets. */
  readonly follows: Map<RunID, number>
  requests: number
}

type Answer<A = void> = Effect.Effect<A, Refused | ConnectionClosed>

/** The request, and the run if known, that an answer belongs to. */
interface About {
  readonly id: string | undefined
  run?: RunID
  /** Set once the client is shown a run; a stopping server waits for its end. */
  telling?: Backend["answers"]
}

/** Counts the answer as showing a run, from the start of the run. */
const telling =
  ({ answers }: Backend, about: About) =>
  (): void => {
    if (about.telling !== undefined) return
    about.telling = answers
    answers.begin()
  }

/** A current admission. */
interface Admitting {
  readonly session: string
  readonly id: string
  readonly fiber: Fiber.RuntimeFiber<Admitted, Refused>
  /** Done once the admission waits for a run, or behind one that does. */
  readonly held: Deferred.Deferred<void>
}

/** Returns the handler of a connection; it may run for many connections until the scope closes. */
export const make = Effect.fnUntraced(function* ({
  asks,
  desk,
  durable,
  stopping,
  subject,
  temp
}: ServedOptions): Effect.fn.Return<(connection: Connection) => Effect.Effect<void>, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const { admissions, backlog, holding, lane } = desk
  const temps = TempSessions.make()

  /** Whether permissions may be decided here: only on the user's own socket. */
  const mayDecide = subject.space === undefined

  const askingOf = ({ connection }: Client): AskOptions => ({
    asks,
    canAnswer: () => mayDecide && connection.sendsMore()
  })

  const keptOf = (scope: Wire.Scope): Effect.Effect<Kept, Refused> =>
    scope === "temp" ? temp : Effect.succeed(durable)

  const refuse = ({ connection }: Client, { code, message }: Refused, { id, run }: About) =>
    connection.write(Wire.encodeFrame(Wire.errorFrame({ code, message, id, run })))

  /** Runs the work beside the next requests. A refusal carries the request's id, and its run once known. */
  const beside = (client: Client, about: About, work: Answer): Effect.Effect<void> =>
    Effect.suspend(() => {
      client.requests += 1
      return stopping.until(work).pipe(
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
            about.telling?.end()
          })
        ),
        FiberSet.run(client.work),
        Effect.asVoid
      )
    })

  /** Counts the run as followed by the client while the effect runs. */
  const following = <A, E>(client: Client, run: RunID, effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.acquireUseRelease(
      Effect.sync(() => client.follows.set(run, (client.follows.get(run) ?? 0) + 1)),
      () => effect,
      () =>
        Effect.sync(() => {
          const count = (client.follows.get(run) ?? 1) - 1
          if (count === 0) client.follows.delete(run)
          else client.follows.set(run, count)
        })
    )

  /** Marks the session's admissions as waiting while the effect runs. */
  const held =
    (session: string) =>
    <A, E>(wait: Effect.Effect<A, E>): Effect.Effect<A, E> =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          holding.add(session)
          for (const each of admissions) if (each.session === session) Deferred.unsafeDone(each.held, Effect.void)
        }),
        () => wait,
        () => Effect.sync(() => holding.delete(session))
      )

  const queued = ({ connection }: Client, id: string, run?: RunID) =>
    connection.write(Wire.encodeFrame({ type: "queued", id, ...(run === undefined ? {} : { run }) }))

  /** Whether the prompt waits behind a run or another prompt. */
  const waits = Effect.fnUntraced(function* ({ inbox, store }: Backend, { id, sessionID }: Admitted["input"]) {
    const { activity } = yield* store.get(sessionID)
    const [head] = yield* inbox.waiting(sessionID, { limit: 1 })
    // Read last: the active run may be that of this prompt.
    const input = yield* inbox.get(id)
    return input?.promotedSeq === undefined && (activity?.state === "running" || head?.id !== id)
  })

  /** Writes the frames of the prompt's run, from its start or from the log. */
  const followPrompt = Effect.fnUntraced(function* (
    client: Client,
    kept: Kept,
    { input, session }: Admitted,
    about: About & { readonly run: RunID }
  ) {
    const { backend, keeper } = kept
    const { run } = about
    const sessionID = session.id
    const promoted = input.withdrawnSeq === undefined ? input.promotedSeq : undefined
    const start =
      promoted === undefined
        ? undefined
        : yield* Effect.mapError(activityStart(backend, sessionID, promoted), refusedBy)
    const from = start?.seq ?? input.withdrawnSeq ?? input.admittedSeq
    const fold =
      start === undefined
        ? Fold.ofSession(session)
        : yield* Effect.mapError(stateAt(backend, sessionID, from), refusedBy)
    const clientID = input.prompt.client?.id
    if (from === input.admittedSeq && clientID !== undefined) {
      if (yield* Effect.mapError(waits(backend, input), refusedBy)) yield* queued(client, clientID, run)
    }
    yield* follow({
      backend,
      sessionID,
      after: from - 1,
      state: RunStream.make(fold, { run, id: clientID }),
      write: client.connection.write,
      isLast: ({ type }) => type === "done",
      asking: askingOf(client),
      onStart: telling(backend, about),
      // A started or withdrawn prompt cannot be stuck.
      stuck: from === input.admittedSeq ? keeper.stuck(sessionID) : Effect.never
    })
  })

  const send = Effect.fn("Served.send")(function* (client: Client, request: Wire.Send) {
    const asked = yield* addressIn(subject, request)
    yield* checkKeeper(subject, request.shared)
    const kept = yield* keptOf(request.scope)
    const byID = asked.session.startsWith("ses_") ? yield* find(kept.backend, subject, asked) : undefined
    // Its id and its name are one session with one queue.
    const address = byID?.address ?? asked
    const place = yield* placeOf(subject, request, byID, shownBefore(kept.backend, subject, address, request.id))
    const session = addressKey(address)
    const turn = yield* lane.enter(session)
    if (turn === undefined) {
      return yield* new Refused({
        code: "EBUSY",
        message: `${backlog} requests wait in this session already: try again later`
      })
    }
    if (address.scope === "temp") temps.use(client.connection.id, address)
    // Admitted even if the client has gone, which may not have waited for the answer.
    const fiber = yield* admit({ ...kept, subject, address, place, request, holding: held(session) }).pipe(
      turn,
      Effect.forkIn(scope),
      Effect.uninterruptible
    )
    const admitting: Admitting = { session, id: request.id, fiber, held: yield* Deferred.make<void>() }
    if (holding.has(session)) yield* Deferred.succeed(admitting.held, undefined)
    admissions.add(admitting)
    fiber.addObserver(() => admissions.delete(admitting))
    const about: About = { id: request.id }
    yield* beside(
      client,
      about,
      Effect.gen(function* () {
        const wait = yield* Effect.raceFirst(
          Effect.as(Fiber.await(fiber), false),
          Effect.as(Deferred.await(admitting.held), true)
        )
        if (wait) yield* queued(client, request.id)
        const admitted = yield* fiber
        const run = runOf(admitted.session.id, admitted.input.id)
        const known = Object.assign(about, { run })
        if (address.scope === "temp") temps.sent(client.connection.id, address, run)
        yield* following(client, run, followPrompt(client, kept, admitted, known))
      })
    )
  })

  /** The session that the request names; undefined if it does not exist. */
  const existing = Effect.fnUntraced(function* (kept: Kept, request: Wire.Resume | Wire.Cancel | Wire.Answer) {
    const address = yield* addressIn(subject, request)
    const session = yield* find(kept.backend, subject, address)
    if (session === undefined) yield* checkKeeper(subject, request.shared)
    return session
  })

  const resumed = Effect.fn("Served.resume")(function* (client: Client, request: Wire.Resume) {
    const kept = yield* keptOf(request.scope)
    const session = yield* existing(kept, request)
    if (session === undefined) {
      return yield* new Refused({ code: "ENOENT", message: `there is no session "${request.session}"` })
    }
    if (session.address?.scope === "temp") temps.use(client.connection.id, session.address)
    const about: About = { id: undefined }
    const live = yield* resume({
      ...kept,
      session,
      after: request.after,
      write: client.connection.write,
      asking: askingOf(client),
      onStart: telling(kept.backend, about)
    })
    if (live === undefined) return
    about.run = live.run
    yield* beside(client, about, following(client, live.run, live.rest))
  })

  /** The sessions to search for a run: that of the request, and for a run's id every busy session of the subject. */
  const lookIn = Effect.fnUntraced(function* (kept: Kept, request: Wire.Cancel) {
    const { keeper, backend } = kept
    const named = yield* existing(kept, request)
    const sessions: Array<Session> = named === undefined ? [] : [named]
    if (!Wire.isRunID(request.id)) return sessions
    for (const id of yield* keeper.busy) {
      if (id === named?.id) continue
      const session = yield* Effect.option(backend.sessions.get(id))
      if (session._tag === "Some" && (yield* owns(backend, subject, session.value))) sessions.push(session.value)
    }
    return sessions
  })

  const findRun = Effect.fnUntraced(function* (kept: Kept, request: Wire.Cancel) {
    for (const session of yield* lookIn(kept, request)) {
      const runs = yield* Effect.mapError(runsOf(kept.backend, session), refusedBy)
      const found = runs.find(({ clientID, run }) => run === request.id || clientID === request.id)
      if (found !== undefined) return { session, found }
    }
    return yield* new Refused({ code: "ENOENT", message: `no run "${request.id}" is active or waits here` })
  })

  /** Stops exactly this run. False if it was waiting and has begun meanwhile. */
  const stop = (backend: Backend, session: Session, found: Run): Effect.Effect<boolean, Refused> =>
    found.state === "active"
      ? backend.sessions
          .interrupt(session.id, { activityID: found.activityID })
          .pipe(Effect.mapError(refusedBy), Effect.as(true))
      : backend.sessions.withdraw(session.id, found.input.id).pipe(
          Effect.as(true),
          // It began after it was found.
          Effect.catchTag("NotWaiting", () => Effect.succeed(false)),
          Effect.mapError(refusedBy)
        )

  const cancelFound = Effect.fnUntraced(function* (client: Client, kept: Kept, request: Wire.Cancel, about: About) {
    const { backend } = kept
    const { found, session } = yield* findRun(kept, request)
    const told = client.follows.has(found.run)
    return Effect.gen(function* () {
      let now = found
      while (!(yield* stop(backend, session, now))) now = (yield* findRun(kept, request)).found
      // A follower of the run gets its end anyway.
      if (told) return
      yield* follow({
        backend,
        sessionID: session.id,
        after: (now.state === "active" ? now.startSeq : now.input.admittedSeq) - 1,
        state: RunStream.make(Fold.ofSession(session), { run: now.run, id: now.clientID }),
        write: client.connection.write,
        onStart: telling(backend, about),
        tells: ({ type }) => type === "done",
        isLast: ({ type }) => type === "done",
        // The run is over.
        stuck: Effect.never
      })
    })
  })

  const cancel = Effect.fn("Served.cancel")(function* (client: Client, request: Wire.Cancel) {
    const kept = yield* keptOf(request.scope)
    const address = yield* addressIn(subject, request)
    const session = addressKey(address)
    const admission = [...admissions].findLast((each) => each.session === session && each.id === request.id)
    const about: About = { id: request.id }
    const stopped = cancelFound(client, kept, request, about)
    // A prompt that is not admitted has no run yet; if it is refused, its sender gets the reason.
    const work =
      admission === undefined ? yield* stopped : Effect.zipRight(Fiber.await(admission.fiber), Effect.flatten(stopped))
    yield* beside(client, about, work)
  })

  const answered = Effect.fn("Served.answer")(function* (client: Client, request: Wire.Answer) {
    const kept = yield* keptOf(request.scope)
    const session = yield* existing(kept, request)
    if (session === undefined) {
      return yield* new Refused({ code: "ENOENT", message: `there is no session "${request.session}"` })
    }
    const decision = yield* Answering.give({ backend: kept.backend, asks, session, request, mayDecide })
    const id = request.id === undefined ? {} : { id: request.id }
    yield* client.connection.write(Wire.encodeFrame({ type: "answered", ...id, ask: request.ask, decision }))
  })

  const overview: Overview.Overview = { ...durable, subject, asks }
  const writeTo = ({ connection }: Client, frame: Effect.Effect<Wire.Frame, Refused>): Answer =>
    Effect.flatMap(frame, (made) => connection.write(Wire.encodeFrame(made)))

  const dispatch = (client: Client, request: Wire.Request): Answer => {
    switch (request.op) {
      case "ping": {
        const id = request.id === undefined ? {} : { id: request.id }
        return client.connection.write(Wire.encodeFrame({ type: "pong", ...id }))
      }
      case "send":
        return send(client, request)
      case "resume":
        return resumed(client, request)
      case "cancel":
        return cancel(client, request)
      case "answer":
        return answered(client, request)
      case "status":
        return writeTo(client, Overview.status(overview, request))
      case "list":
        return writeTo(client, Overview.list(overview, request))
    }
  }

  const idOf = (request: Wire.Request): string | undefined => ("id" in request ? request.id : undefined)

  const answer = (client: Client, line: Parameters<typeof Wire.decode>[0]): Effect.Effect<void, ConnectionClosed> => {
    const decoded = Wire.decode(line)
    if (Either.isLeft(decoded)) return client.connection.write(Wire.encodeFrame(Wire.errorFrame(decoded.left)))
    const request = decoded.right
    const busy = new Refused({
      code: "EBUSY",
      message: `${requestsAtOnce} requests of this connection are being answered: wait for one of them`
    })
    if (stopping.begun()) return refuse(client, Stopping.refused, { id: idOf(request) })
    const work = client.requests >= requestsAtOnce && request.op !== "ping" ? busy : dispatch(client, request)
    return Effect.catchTag(stopping.until(work), "Refused", (refused) => refuse(client, refused, { id: idOf(request) }))
  }

  return (connection) =>
    Effect.gen(function* () {
      const work = yield* FiberSet.make<void>()
      const client: Client = { connection, work, follows: new Map(), requests: 0 }
      // Lines sent before the client went away are still processed.
      yield* connection.lines.pipe(
        Stream.interruptWhen(stopping.awaitEnd),
        Stream.runForEach((line) => Effect.ignore(answer(client, line)))
      )
      asks.look()
      // The client stopped sending; pending answers still go out.
      yield* Effect.raceFirst(FiberSet.awaitEmpty(work), connection.closed)
      if (stopping.ended()) yield* Effect.ignore(connection.write(Stopping.farewell))
    }).pipe(
      Effect.scoped,
      Effect.ensuring(
        Effect.suspend(() => {
          const left = temps.leave(connection.id)
          return left.length === 0 ? Effect.void : Effect.ignoreLogged(Effect.flatMap(temp, (kept) => end(kept, left)))
        })
      )
    )

  /** Ends the runs of a temp client that is gone, and removes sessions without users (DC-17). */
  function end({ backend }: Kept, left: ReadonlyArray<TempSessions.Left>): Effect.Effect<void, Refused> {
    return Effect.forEach(
      left,
      ({ address, runs }) =>
        Effect.gen(function* () {
          const turn = yield* lane.enter(addressKey(address), { always: true })
          if (turn === undefined) return
          const work = Effect.gen(function* () {
            const session = yield* Effect.mapError(backend.sessions.addressed(address), refusedBy)
            if (session === undefined) return
            if (!temps.isUsed(address)) {
              yield* Effect.ignore(backend.sessions.remove(session.id))
              return
            }
            const current = yield* Effect.mapError(runsOf(backend, session), refusedBy)
            for (const found of current) if (runs.has(found.run)) yield* stop(backend, session, found)
          })
          yield* Effect.asVoid(Effect.uninterruptible(Effect.forkIn(turn(Effect.ignoreLogged(work)), scope)))
        }),
      { discard: true }
    )
  }
})
