/**
 * `send`: admits a prompt, even if its client goes away meanwhile, and shows its run to the client. Spec: SO-20, SO-30,
 * SO-31, SO-90, SO-91 in specs/socket.md (FR-7, FR-8, DC-20).
 */
import { Deferred, Effect, Fiber } from "effect"
import { addressKey } from "@daybook/log/domain/Address"
import * as Fold from "@daybook/transcript/Fold"
import { type RunID, runOf } from "@daybook/transcript/row/Rows"
import * as RunStream from "@daybook/transcript/RunStream"
import { stateAt } from "../run/Runs.ts"
import { activityStart, type Backend } from "../session/Backend.ts"
import type { DrainedBackend } from "../session/Drainer.ts"
import { addressIn, checkSpaceOwner, find, placeOf } from "../session/Subject.ts"
import { Refused, refusedBy } from "../support/Refused.ts"
import type * as Wire from "../wire/Wire.ts"
import { admit, type Admitted, shownBefore } from "./Admission.ts"
import * as Admissions from "./Admissions.ts"
import * as Client from "./Client.ts"
import { askingOf, type Endpoint, runtimeOf } from "./Endpoint.ts"
import { follow } from "./Follow.ts"

/** Starts the admission of the request; fails if too many wait. */
const startAdmission = Effect.fnUntraced(function* (endpoint: Endpoint, client: Client.Client, request: Wire.Send) {
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
  const blocking = Admissions.blocking(admissions, session)
  const fiber = yield* admit({ ...runtime, subject, address, place, request, blocking }).pipe(
    turn,
    Effect.forkIn(scope),
    Effect.uninterruptible
  )
  return { address, admitting: Admissions.add(admissions, { session, id: request.id, fiber }), runtime }
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
  endpoint: Endpoint,
  { backend, drainer }: DrainedBackend,
  client: Client.Client,
  { input, session }: Admitted,
  about: Client.About & { readonly run: RunID }
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
    if (yield* Effect.mapError(waits(backend, input), refusedBy)) yield* Client.queued(client, clientID, run)
  }
  yield* follow({
    backend,
    sessionID,
    after: from - 1,
    state: RunStream.make(fold, { run, id: clientID }),
    write: client.connection.write,
    isLast: ({ type }) => type === "done",
    asking: askingOf(endpoint, client),
    onStart: Client.showing(backend, about),
    // A started or withdrawn prompt cannot be stuck.
    stuck: from === input.admittedSeq ? drainer.stuck(sessionID) : Effect.never
  })
})

export const send = Effect.fn("Served.send")(function* (
  endpoint: Endpoint,
  client: Client.Client,
  request: Wire.Send
): Effect.fn.Return<void, Refused> {
  const { address, admitting, runtime } = yield* startAdmission(endpoint, client, request)
  const about: Client.About = { id: request.id }
  const answer = Effect.gen(function* () {
    const isBlocked = yield* Effect.raceFirst(
      Effect.as(Fiber.await(admitting.fiber), false),
      Effect.as(Deferred.await(admitting.blocked), true)
    )
    if (isBlocked) yield* Client.queued(client, request.id)
    const admitted = yield* admitting.fiber
    const run = runOf(admitted.session.id, admitted.input.id)
    const known = Object.assign(about, { run })
    if (address.scope === "temp") endpoint.temps.sent(client.connection.id, address, run)
    yield* Client.following(client, run, followPrompt(endpoint, runtime, client, admitted, known))
  })
  yield* Client.answerBeside(client, endpoint.stopping, about, answer)
})
