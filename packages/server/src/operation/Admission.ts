/**
 * Turns a client's `send` into a durable input: finds or creates the session at its address, brings it to the prompt's
 * folder, then admits the prompt under an id made of the client's id, so that a repeated request is the same prompt. A
 * refused request has written nothing. `Admissions.ts` admits one request per session at a time. Spec: SO-30, SO-31, SO-34 in
 * specs/socket.md (FR-8, CW-5, CW-7, DC-14, DC-20).
 */
import { createHash } from "node:crypto"
import { Effect, Stream } from "effect"
import type { Address } from "@daybook/log/domain/Address"
import { MessageID } from "@daybook/log/domain/Identifiers"
import type { Input, Session } from "@daybook/log/domain/Message"
import { type PromptInput, sameModel } from "@daybook/log/domain/Values"
import type { Backend } from "../session/Backend.ts"
import type { DrainedBackend } from "../session/Drainer.ts"
import { find, type Place, type Subject } from "../session/Subject.ts"
import { Refused, refusedBy } from "../support/Refused.ts"
import type { Send } from "../wire/Wire.ts"

/** The message id of a client's request; the inbox recognises a repetition by it (FR-8). */
export const messageOf = (sessionID: string, clientID: string): MessageID =>
  MessageID.make(`msg_${createHash("sha256").update(`${sessionID}/${clientID}`).digest("hex").slice(0, 40)}`)

/** The shown folder of an earlier request with this id, if there was one. */
export const shownBefore = Effect.fn("Admission.shownBefore")(function* (
  backend: Backend,
  subject: Subject,
  address: Address,
  id: string
): Effect.fn.Return<string | undefined, Refused> {
  const session = yield* find(backend, subject, address)
  if (session === undefined) return undefined
  const known = yield* Effect.mapError(backend.inbox.get(messageOf(session.id, id)), refusedBy)
  return known?.prompt.client?.cwd
})

export interface Admission extends DrainedBackend {
  readonly subject: Subject
  readonly address: Address
  readonly place: Place
  readonly request: Send
  /** Wraps the wait for earlier runs. */
  readonly blocking: <A, E>(wait: Effect.Effect<A, E>) => Effect.Effect<A, E>
}

/** The admitted prompt and its session; the same for a repeated request. */
export interface Admitted {
  readonly session: Session
  readonly input: Input
}

const create = ({ address, backend, place: { cwd, world }, subject }: Admission) =>
  Effect.mapError(
    backend.sessions.create({
      location: { directory: cwd.directory },
      placement: { address, root: world },
      ...(subject.kind === "agent" ? { agent: subject.agent } : { model: subject.ref })
    }),
    refusedBy
  )

/** Waits until nothing runs or waits in the session. */
const untilIdle = Effect.fn("Admission.untilIdle")(function* (
  { backend, blocking, drainer }: Admission,
  { id }: Session
) {
  const { inbox, log, sessions, store } = backend
  const isIdle = Effect.zipWith(
    store.get(id),
    inbox.count(id),
    ({ activity }, waiting) => waiting === 0 && activity?.state !== "running"
  )
  const after = yield* log.latest(id)
  if (yield* isIdle) return
  yield* sessions.settle(id)
  const ends = log
    .tail({ sessionID: id, after })
    .pipe(
      Stream.filter(({ type }) => type === "session.next.activity.settled" || type === "session.next.prompt.withdrawn")
    )
  yield* drainer.wake(id)
  yield* blocking(
    Effect.raceFirst(
      Effect.flatMap(drainer.stuck(id), (refused) => Effect.fail(refused)),
      Stream.concat(Stream.succeed(undefined), ends).pipe(
        Stream.mapEffect(() => isIdle),
        Stream.takeUntil((idle) => idle),
        Stream.runDrain
      )
    )
  )
})

/** Brings the session to the prompt's folder, world and model, once it is idle. */
const bring = Effect.fn("Admission.bring")(function* (admission: Admission, session: Session) {
  const { address, backend, place, subject } = admission
  const { sessions } = backend
  const { cwd, world } = place
  const moves = session.location.directory !== cwd.directory
  const changesWorld = world !== undefined && session.root !== world
  const model = subject.kind === "model" ? subject.ref : undefined
  const changesModel = model !== undefined && (session.model === undefined || !sameModel(session.model, model))
  if (!moves && !changesWorld && !changesModel) return session
  yield* untilIdle(admission, session)
  // The wait may have been long.
  yield* place.recheck
  if (changesWorld) yield* sessions.place(session.id, { address: session.address ?? address, root: world })
  if (moves) yield* sessions.move(session.id, { directory: cwd.directory })
  if (changesModel) yield* sessions.switchModel(session.id, model)
  return yield* sessions.get(session.id)
})

/**
 * Admits the request, or finds its earlier admission. The prompt is on disk when this returns, and its session is woken.
 */
export const admit = Effect.fn("Admission.admit")(function* (
  admission: Admission
): Effect.fn.Return<Admitted, Refused> {
  const { address, backend, drainer, place, request, subject } = admission
  const { inbox, sessions } = backend
  const existing = yield* find(backend, subject, address)
  const known =
    existing === undefined
      ? undefined
      : yield* Effect.mapError(inbox.get(messageOf(existing.id, request.id)), refusedBy)
  // A repetition changes nothing, even if the session has moved since.
  if (known === undefined) yield* place.recheck
  const session =
    existing === undefined
      ? yield* create(admission)
      : known === undefined
        ? yield* Effect.mapError(bring(admission, existing), refusedBy)
        : existing
  const prompt: PromptInput = {
    text: request.input,
    client: { id: request.id, cwd: place.cwd.shown },
    // A model's session has no tools.
    ...(subject.kind === "model" ? { tools: { "*": false } } : {})
  }
  const input = yield* sessions
    .prompt({
      id: messageOf(session.id, request.id),
      sessionID: session.id,
      prompt,
      delivery: "queue",
      expand: subject.kind === "agent",
      resume: false
    })
    .pipe(
      Effect.mapError((error) =>
        error._tag === "PromptConflictError"
          ? new Refused({
              code: "EINVAL",
              message: `the id "${request.id}" was used in this session before, with another input or cwd: use a new one`
            })
          : refusedBy(error)
      ),
      Effect.zipLeft(drainer.wake(session.id)),
      Effect.uninterruptible
    )
  return { session, input }
})
