/**
 * Admits prompts: one at a time per session, whatever socket they came through. A refused request has written nothing.
 * Spec: SO-30, SO-31, SO-34, SO-91, SO-106 in specs/socket.md (FR-8, CW-5, CW-7, DC-14, DC-20).
 */
import { createHash } from "node:crypto"
import { Deferred, Effect, type Fiber, FiberId, Stream } from "effect"
import type { Address } from "@daybook/log/domain/Address"
import { MessageID } from "@daybook/log/domain/Identifiers"
import type { Input, Session } from "@daybook/log/domain/Message"
import { type PromptInput, sameModel } from "@daybook/log/domain/Values"
import { type Backend, Refused, refusedBy } from "./Backend.ts"
import type { DrainedBackend } from "./Drainer.ts"
import { find, type PromptFolder, type Subject } from "./Subject.ts"
import type { Send } from "./Wire.ts"

// Serializes work per key, in the order of `enter`, with a bounded queue.

/**
 * A place in the queue: runs one effect when its turn comes, and gives up the place afterwards. Run it once, in a fiber
 * that cannot be interrupted before it begins; the effect itself may be interrupted.
 */
export type LanePlace = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

export interface Lane {
  /** Takes a place, which must then be used. Undefined if the queue is full, unless `always` is set. */
  readonly enter: (key: string, options?: { readonly always: boolean }) => Effect.Effect<LanePlace | undefined>
}

type Turn = { readonly come: Deferred.Deferred<void>; gone: boolean }

/** `limit` bounds the places that wait behind the current one. */
export const makeLane = (limit: number): Lane => {
  /** The first place of each key has the turn. */
  const lanes = new Map<string, Array<Turn>>()

  const leave = (key: string, lane: Array<Turn>, turn: Turn): void => {
    turn.gone = true
    while (lane[0]?.gone === true) lane.shift()
    const [next] = lane
    if (next === undefined) lanes.delete(key)
    else Deferred.unsafeDone(next.come, Effect.void)
  }

  const enter = (key: string, { always } = { always: false }) =>
    Effect.sync((): LanePlace | undefined => {
      const lane = lanes.get(key) ?? []
      if (lane.filter(({ gone }) => !gone).length > limit && !always) return undefined
      const turn: Turn = { come: Deferred.unsafeMake(FiberId.none), gone: false }
      lane.push(turn)
      lanes.set(key, lane)
      if (lane[0] === turn) Deferred.unsafeDone(turn.come, Effect.void)
      return (effect) =>
        Effect.ensuring(
          Effect.interruptible(Effect.zipRight(Deferred.await(turn.come), effect)),
          Effect.sync(() => leave(key, lane, turn))
        )
    })

  return { enter }
}

// Turns a client's `send` into a durable input: finds or creates the session, moves it to the prompt's folder, admits
// the prompt. A refused request has written nothing.

/** The message id of a client's request; the inbox recognises a repetition by it (FR-8). */
export const messageOf = (sessionID: string, clientID: string): MessageID =>
  MessageID.make(`msg_${createHash("sha256").update(`${sessionID}/${clientID}`).digest("hex").slice(0, 40)}`)

/** The shown folder of an earlier request with this id, if there was one. */
export const shownBefore = Effect.fn("Admission.shownBefore")(function* (
  backend: Backend,
  subject: Subject,
  address: Address,
  id: string
) {
  const session = yield* find(backend, subject, address)
  if (session === undefined) return undefined
  const known = yield* Effect.mapError(backend.inbox.get(messageOf(session.id, id)), refusedBy)
  return known?.prompt.client?.cwd
})

export interface Admission extends DrainedBackend {
  readonly subject: Subject
  readonly address: Address
  readonly place: PromptFolder
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

/** Admits the request, or finds its earlier admission. Then the prompt is on disk and its session woken. */
export const admit = Effect.fn("Admission.admit")(function* (admission: Admission) {
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

// Tracks the admissions of one agent's or model's prompts: one at a time for each session.

/** A current admission. */
interface Admitting {
  readonly session: string
  /** The client's id of the request. */
  readonly id: string
  readonly fiber: Fiber.RuntimeFiber<Admitted, Refused>
  /** Done once the admission waits for a run, or behind one that does. */
  readonly blocked: Deferred.Deferred<void>
}

export interface Admissions {
  readonly lane: Lane
  /** How many may wait in one session. */
  readonly backlog: number
  /** A cancel directly after its send waits for the admission. */
  readonly current: Set<Admitting>
  /** Sessions in which an admission waits for a run; later admissions wait with it. */
  readonly blocked: Set<string>
}

/** Shared by all sockets that serve the same sessions. */
export const makeAdmissions = (backlog: number): Admissions => ({
  lane: makeLane(backlog),
  backlog,
  current: new Set(),
  blocked: new Set()
})

/** Adds an admission until its fiber ends. */
export const add = (
  { blocked, current }: Admissions,
  admission: Pick<Admitting, "session" | "id" | "fiber">
): Admitting => {
  const admitting: Admitting = { ...admission, blocked: Deferred.unsafeMake(FiberId.none) }
  if (blocked.has(admission.session)) Deferred.unsafeDone(admitting.blocked, Effect.void)
  current.add(admitting)
  admission.fiber.addObserver(() => current.delete(admitting))
  return admitting
}

export const findAdmission = ({ current }: Admissions, session: string, id: string): Admitting | undefined =>
  [...current].findLast((each) => each.session === session && each.id === id)

/** Blocks the session while the effect waits for a run. */
export const blocking =
  ({ blocked, current }: Admissions, session: string) =>
  <A, E>(wait: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        blocked.add(session)
        for (const each of current) if (each.session === session) Deferred.unsafeDone(each.blocked, Effect.void)
      }),
      () => wait,
      () => Effect.sync(() => blocked.delete(session))
    )
