/** `cancel`: stops one run, active or waiting. Spec: SO-14, SO-35, SO-36 in specs/socket.md (FR-11, DC-19). */
import { Effect, Fiber } from "effect"
import { addressKey } from "@daybook/log/domain/Address"
import type { Session } from "@daybook/log/domain/Message"
import * as Fold from "@daybook/transcript/Fold"
import * as RunStream from "@daybook/transcript/RunStream"
import { type Run, runsOf } from "../run/Runs.ts"
import type { Backend } from "../session/Backend.ts"
import type { DrainedBackend } from "../session/Drainer.ts"
import { addressIn, owns } from "../session/Subject.ts"
import { Refused, refusedBy } from "../support/Refused.ts"
import * as Wire from "../wire/Wire.ts"
import * as Admissions from "./Admissions.ts"
import * as Client from "./Client.ts"
import { type Endpoint, findSession, runtimeOf } from "./Endpoint.ts"
import { follow } from "./Follow.ts"

/** The sessions to search for a run: that of the request, and for a run's id every busy session of the subject. */
const sessionsToSearch = Effect.fnUntraced(function* (
  endpoint: Endpoint,
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

const findRun = Effect.fnUntraced(function* (endpoint: Endpoint, runtime: DrainedBackend, request: Wire.Cancel) {
  for (const session of yield* sessionsToSearch(endpoint, runtime, request)) {
    const runs = yield* Effect.mapError(runsOf(runtime.backend, session), refusedBy)
    const found = runs.find(({ clientID, run }) => run === request.id || clientID === request.id)
    if (found !== undefined) return { session, found }
  }
  return yield* new Refused({ code: "ENOENT", message: `no run "${request.id}" is active or waits here` })
})

/** Stops exactly this run. False if it was waiting and has begun meanwhile. */
export const stopRun = (backend: Backend, session: Session, found: Run): Effect.Effect<boolean, Refused> =>
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
  endpoint: Endpoint,
  client: Client.Client,
  runtime: DrainedBackend,
  request: Wire.Cancel,
  about: Client.About
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
      onStart: Client.showing(backend, about),
      shows: ({ type }) => type === "done",
      isLast: ({ type }) => type === "done",
      // The run is over.
      stuck: Effect.never
    })
  })
})

export const cancel = Effect.fn("Served.cancel")(function* (
  endpoint: Endpoint,
  client: Client.Client,
  request: Wire.Cancel
): Effect.fn.Return<void, Refused> {
  const runtime = yield* runtimeOf(endpoint, request)
  const address = yield* addressIn(endpoint.subject, request)
  const admission = Admissions.find(endpoint.admissions, addressKey(address), request.id)
  const about: Client.About = { id: request.id }
  const stop = cancelRun(endpoint, client, runtime, request, about)
  // A prompt that is not admitted has no run yet; if it is refused, its sender gets the reason.
  const answer =
    admission === undefined ? yield* stop : Effect.zipRight(Fiber.await(admission.fiber), Effect.flatten(stop))
  yield* Client.answerBeside(client, endpoint.stopping, about, answer)
})
