/**
 * `send` and `cancel`: a run of a client from its prompt to its end. Spec: SO-14, SO-20, SO-30, SO-31, SO-35, SO-36,
 * SO-55, SO-56, SO-90, SO-91 in specs/socket.md (FR-7, FR-8, FR-11, DC-17, DC-19, DC-20, SC-2).
 */
import { Deferred, Effect, Fiber } from "effect"
import { addressKey } from "@daybook/log/domain/Address"
import type { Session } from "@daybook/log/domain/Message"
import * as Fold from "@daybook/transcript/Fold"
import * as RunStream from "@daybook/transcript/RunStream"
import { type RunID, runOf } from "@daybook/transcript/row/Rows"
import * as Admission from "./Admission.ts"
import { admit, type Admitted, shownBefore } from "./Admission.ts"
import { activityStart, type Backend, Refused, refusedBy, type Run, runsOf, stateAt } from "./Backend.ts"
import type { DrainedBackend } from "./Drainer.ts"
import * as Endpoint from "./Endpoint.ts"
import { askingOf, findSession, type ConnectionUse, runtimeOf } from "./Endpoint.ts"
import { follow } from "./Follow.ts"
import { addressIn, checkSpaceOwner, find, owns, placeOf } from "./Subject.ts"
import * as Wire from "./Wire.ts"

// `send`: admits a prompt, even if its client goes away meanwhile, and shows its run to the client.

/** Starts the admission of the request; fails if too many wait. */
const startAdmission = Effect.fnUntraced(function* (
  endpoint: Endpoint.Endpoint,
  client: Endpoint.Client,
  request: Wire.Send
) {
  const { admissions, scope, subject, temps } = endpoint
  const { backlog, lane } = admissions
  const asked = yield* addressIn(subject, request)
  yield* checkSpaceOwner(subject, request.shared)
  const runtime = yield* runtimeOf(endpoint, request)
  const byID = asked.session.startsWith("ses_") ? yield* find(runtime.backend, subject, asked) : undefined
  // Its id and its name are one session with one queue.
  const address = byID?.address ?? asked
  const place = yield* placeOf(subject, request, byID, shownBefore(runtime.backend, subject, address, request.id))
  const session = addressKey(address)
  const turn = yield* lane.enter(session)
  if (turn === undefined) {
    return yield* new Refused({
      code: "EBUSY",
      message: `${backlog} requests wait in this session already: try again later`
    })
  }
  if (address.scope === "temp") temps.use(client.connection.id, address)
  const blocking = Admission.blocking(admissions, session)
  const fiber = yield* admit({ ...runtime, subject, address, place, request, blocking }).pipe(
    turn,
    Effect.forkIn(scope),
    Effect.uninterruptible
  )
  return { address, admitting: Admission.add(admissions, { session, id: request.id, fiber }), runtime }
})

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
  endpoint: Endpoint.Endpoint,
  { backend, drainer }: DrainedBackend,
  client: Endpoint.Client,
  { input, session }: Admitted,
  about: Endpoint.About & { readonly run: RunID }
) {
  const { run } = about
  const sessionID = session.id
  const promoted = input.withdrawnSeq === undefined ? input.promotedSeq : undefined
  const start =
    promoted === undefined ? undefined : yield* Effect.mapError(activityStart(backend, sessionID, promoted), refusedBy)
  const from = start?.seq ?? input.withdrawnSeq ?? input.admittedSeq
  const fold =
    start === undefined ? Fold.ofSession(session) : yield* Effect.mapError(stateAt(backend, sessionID, from), refusedBy)
  const clientID = input.prompt.client?.id
  if (from === input.admittedSeq && clientID !== undefined) {
    if (yield* Effect.mapError(waits(backend, input), refusedBy)) yield* Endpoint.queued(client, clientID, run)
  }
  yield* follow({
    backend,
    sessionID,
    after: from - 1,
    state: RunStream.make(fold, { run, id: clientID }),
    write: client.connection.write,
    isLast: ({ type }) => type === "done",
    asking: askingOf(endpoint, client),
    onStart: Endpoint.showing(backend, about),
    // A started or withdrawn prompt cannot be stuck.
    stuck: from === input.admittedSeq ? drainer.stuck(sessionID) : Effect.never
  })
})

export const send = Effect.fn("Served.send")(function* (
  endpoint: Endpoint.Endpoint,
  client: Endpoint.Client,
  request: Wire.Send
) {
  const { address, admitting, runtime } = yield* startAdmission(endpoint, client, request)
  const about: Endpoint.About = { id: request.id }
  const answer = Effect.gen(function* () {
    const isBlocked = yield* Effect.raceFirst(
      Effect.as(Fiber.await(admitting.fiber), false),
      Effect.as(Deferred.await(admitting.blocked), true)
    )
    if (isBlocked) yield* Endpoint.queued(client, request.id)
    const admitted = yield* admitting.fiber
    const run = runOf(admitted.session.id, admitted.input.id)
    const known = Object.assign(about, { run })
    if (address.scope === "temp") endpoint.temps.sent(client.connection.id, address, run)
    yield* Endpoint.following(client, run, followPrompt(endpoint, runtime, client, admitted, known))
  })
  yield* Endpoint.answerBeside(client, endpoint.stopping, about, answer)
})

// `cancel`: stops one run, active or waiting.

/** The sessions to search for a run: the request's session, and for a run's id every busy session of the subject. */
const sessionsToSearch = Effect.fnUntraced(function* (
  endpoint: Endpoint.Endpoint,
  runtime: DrainedBackend,
  request: Wire.Cancel
) {
  const { backend, drainer } = runtime
  const named = yield* findSession(endpoint, runtime, request)
  const sessions: Array<Session> = named === undefined ? [] : [named]
  if (!Wire.isRunID(request.id)) return sessions
  for (const id of yield* drainer.busy) {
    if (id === named?.id) continue
    const session = yield* Effect.option(backend.sessions.get(id))
    if (session._tag === "Some" && (yield* owns(backend, endpoint.subject, session.value))) sessions.push(session.value)
  }
  return sessions
})

const findRun = Effect.fnUntraced(function* (
  endpoint: Endpoint.Endpoint,
  runtime: DrainedBackend,
  request: Wire.Cancel
) {
  for (const session of yield* sessionsToSearch(endpoint, runtime, request)) {
    const runs = yield* Effect.mapError(runsOf(runtime.backend, session), refusedBy)
    const found = runs.find(({ clientID, run }) => run === request.id || clientID === request.id)
    if (found !== undefined) return { session, found }
  }
  return yield* new Refused({ code: "ENOENT", message: `no run "${request.id}" is active or waits here` })
})

/** Stops exactly this run. False if it was waiting and has begun meanwhile. */
const stopRun = (backend: Backend, session: Session, found: Run): Effect.Effect<boolean, Refused> =>
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

/** Finds the run; the returned effect stops it and shows its end to a client that does not follow it. */
const cancelRun = Effect.fnUntraced(function* (
  endpoint: Endpoint.Endpoint,
  client: Endpoint.Client,
  runtime: DrainedBackend,
  request: Wire.Cancel,
  about: Endpoint.About
) {
  const { backend } = runtime
  const { found, session } = yield* findRun(endpoint, runtime, request)
  const isFollowed = client.follows.has(found.run)
  return Effect.gen(function* () {
    let now = found
    while (!(yield* stopRun(backend, session, now))) now = (yield* findRun(endpoint, runtime, request)).found
    if (isFollowed) return
    yield* follow({
      backend,
      sessionID: session.id,
      after: (now.state === "active" ? now.startSeq : now.input.admittedSeq) - 1,
      state: RunStream.make(Fold.ofSession(session), { run: now.run, id: now.clientID }),
      write: client.connection.write,
      onStart: Endpoint.showing(backend, about),
      shows: ({ type }) => type === "done",
      isLast: ({ type }) => type === "done",
      // The run is over.
      stuck: Effect.never
    })
  })
})

export const cancel = Effect.fn("Served.cancel")(function* (
  endpoint: Endpoint.Endpoint,
  client: Endpoint.Client,
  request: Wire.Cancel
) {
  const runtime = yield* runtimeOf(endpoint, request)
  const address = yield* addressIn(endpoint.subject, request)
  const admission = Admission.findAdmission(endpoint.admissions, addressKey(address), request.id)
  const about: Endpoint.About = { id: request.id }
  const stop = cancelRun(endpoint, client, runtime, request, about)
  // A prompt that is not admitted has no run yet; if it is refused, its sender gets the reason.
  const answer =
    admission === undefined ? yield* stop : Effect.zipRight(Fiber.await(admission.fiber), Effect.flatten(stop))
  yield* Endpoint.answerBeside(client, endpoint.stopping, about, answer)
})

// Ends the temp runs of a client that is gone, and removes temp sessions without users.

const endSession = Effect.fnUntraced(function* (
  { temps }: Endpoint.Endpoint,
  backend: Backend,
  { address, runs }: ConnectionUse
) {
  const { sessions } = backend
  const session = yield* Effect.mapError(sessions.addressed(address), refusedBy)
  if (session === undefined) return
  if (!temps.isUsed(address)) return yield* Effect.ignore(sessions.remove(session.id))
  const current = yield* Effect.mapError(runsOf(backend, session), refusedBy)
  for (const found of current) if (runs.has(found.run)) yield* stopRun(backend, session, found)
})

/** Ends what the connection used. The work continues in the background, after current admissions. */
export const leave = (endpoint: Endpoint.Endpoint, connection: number): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { admissions, scope, temp, temps } = endpoint
    const left = temps.leave(connection)
    if (left.length === 0) return Effect.void
    const end = Effect.fnUntraced(function* (backend: Backend, each: ConnectionUse) {
      const turn = yield* admissions.lane.enter(addressKey(each.address), { always: true })
      if (turn === undefined) return
      const work = Effect.ignoreLogged(endSession(endpoint, backend, each))
      yield* Effect.asVoid(Effect.uninterruptible(Effect.forkIn(turn(work), scope)))
    })
    return Effect.ignoreLogged(
      Effect.flatMap(temp, ({ backend }) => Effect.forEach(left, (each) => end(backend, each), { discard: true }))
    )
  })
