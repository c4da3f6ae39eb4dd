/**
 * How a client's prompt becomes a durable input: the session at its address, made with its first prompt and brought to the
 * folder that the prompt names, then the prompt under an id made of the client's own, so that the same request again is
 * the same prompt. A request that is refused has written nothing. One at a time for each session: `Lane.ts`.
 * Spec: SO-30, SO-31, SO-34 in specs/socket.md (FR-8, CW-5, CW-7, DC-14, DC-20).
 */
import { createHash } from "node:crypto"
import { MessageID, sameModel, type Address, type Input, type PromptInput, type Session } from "@daybook/core"
import { Effect, Stream } from "effect"
import type { Backend } from "./Backend.ts"
import type { Keeper } from "./Keeper.ts"
import { Refused, refusedBy } from "./Refused.ts"
import { find, type Place, type Subject } from "./Subject.ts"
import type { Send } from "./Wire.ts"

/** The id of the prompt that a client's request is: the inbox knows a repetition by it (FR-8). */
export const messageOf = (sessionID: string, clientID: string): MessageID =>
  MessageID.make(`msg_${createHash("sha256").update(`${sessionID}/${clientID}`).digest("hex").slice(0, 40)}`)

/** The folder, as shown, that an earlier request with this id was for, if there was one. */
export const shownBefore = Effect.fn("Admission.shownBefore")(function* (
  backend: Backend,
  subject: Subject,
  address: Address,
  id: string
): Effect.fn.Return<string | undefined, Refused> {
  const session = yield* find(backend, subject, address)
  if (session === undefined) return undefined
  const known = yield* Effect.mapError(backend.store.input(messageOf(session.id, id)), refusedBy)
  return known?.prompt.client?.cwd
})

export interface Admission {
  readonly backend: Backend
  readonly keeper: Keeper
  readonly subject: Subject
  readonly address: Address
  readonly place: Place
  readonly request: Send
  /** Surrounds the wait for runs that are before this request. */
  readonly holding: <A, E>(wait: Effect.Effect<A, E>) => Effect.Effect<A, E>
}

/** What was admitted, and where: the same again for the same request. */
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
  { backend, holding, keeper }: Admission,
  { id }: Session
) {
  const { log, sessions, store } = backend
  const isIdle = Effect.zipWith(
    store.get(id),
    store.waitingCount(id),
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
  yield* keeper.ring(id)
  yield* holding(
    Effect.raceFirst(
      Effect.flatMap(keeper.stuck(id), (refused) => Effect.fail(refused)),
      Stream.concat(Stream.succeed(undefined), ends).pipe(
        Stream.mapEffect(() => isIdle),
        Stream.takeUntil((idle) => idle),
        Stream.runDrain
      )
    )
  )
})

/** Brings the session to the folder, the world and the model that the prompt is for, between two runs. */
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
  // It may have waited for long.
  yield* place.recheck
  if (changesWorld) yield* sessions.place(session.id, { address: session.address ?? address, root: world })
  if (moves) yield* sessions.move(session.id, { directory: cwd.directory })
  if (changesModel) yield* sessions.switchModel(session.id, model)
  return yield* sessions.get(session.id)
})

/** Admits the request, or finds what it was admitted as before. On disk when it returns, and on its way to be run. */
export const admit = Effect.fn("Admission.admit")(function* (
  admission: Admission
): Effect.fn.Return<Admitted, Refused> {
  const { address, backend, keeper, place, request, subject } = admission
  const { sessions, store } = backend
  const existing = yield* find(backend, subject, address)
  const known =
    existing === undefined
      ? undefined
      : yield* Effect.mapError(store.input(messageOf(existing.id, request.id)), refusedBy)
  // A repetition changes nothing, also when the session has gone elsewhere since.
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
    // A model by itself has no hands.
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
      Effect.zipLeft(keeper.ring(session.id)),
      Effect.uninterruptible
    )
  return { session, input }
})
