/**
 * Runs the waiting prompts of sessions. The runtime ends a drain after a failed activity or an interrupt; the drainer
 * then runs the next waiting prompt, even if its client has gone, until none waits. If a prompt cannot begin, its
 * waiting clients get the reason, and the next wake retries it. Each session with waiting prompts has one fiber. Spec:
 * SO-32, SO-33 in specs/socket.md (DC-20).
 */
import { Deferred, Effect, type Scope } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { type Backend, Refused } from "./Backend.ts"

export interface Drainer {
  /** Runs waiting prompts of the session until none is left. Returns immediately. */
  readonly wake: (sessionID: SessionID) => Effect.Effect<void>
  /** Starts no further runs; current ones continue. */
  readonly close: Effect.Effect<void>
  readonly busy: Effect.Effect<ReadonlyArray<SessionID>>
  /** Completes with the reason once a waiting prompt cannot begin, at once if the last attempt failed. */
  readonly stuck: (sessionID: SessionID) => Effect.Effect<Refused>
}

/** A runtime and the drainer of its sessions. */
export interface DrainedBackend {
  readonly backend: Backend
  readonly drainer: Drainer
}

interface State {
  closed: boolean
  /** Sessions with a fiber, and whether they were woken since its last check. */
  readonly woken: Map<SessionID, boolean>
  readonly watchers: Map<SessionID, Set<Deferred.Deferred<Refused>>>
  /** Why the last attempt in a session failed. */
  readonly reasons: Map<SessionID, Refused>
}

/** Unproductive drains before an error is reported. */
const patience = 3

/** A value that changes with every productive drain; undefined if nothing waits. */
const progress = Effect.fnUntraced(function* ({ inbox, store }: Backend, sessionID: SessionID) {
  const [head] = yield* inbox.waiting(sessionID, { limit: 1 })
  if (head === undefined) return undefined
  const { activity } = yield* store.get(sessionID)
  return `${activity?.id} ${head.id}`
})

/** Drains the session until nothing waits; returns the reason if a prompt cannot begin. */
const drain = Effect.fnUntraced(function* (backend: Backend, state: State, sessionID: SessionID) {
  const { execution, sessions } = backend
  let before = yield* progress(backend, sessionID)
  let idle = 0
  while (before !== undefined && !state.closed) {
    yield* execution.wake(sessionID)
    yield* sessions.wait(sessionID)
    const now = yield* progress(backend, sessionID)
    idle = now === before ? idle + 1 : 0
    before = now
    if (now === undefined || idle === 0 || state.closed) continue
    // The preview of the next request fails with the cause of the drain's failure.
    const preview = yield* Effect.either(sessions.request({ sessionID }))
    if (preview._tag === "Left") {
      return new Refused({ code: "EIO", message: `the prompt waits and could not be run: ${preview.left.message}` })
    }
    if (idle === patience) return new Refused({ code: "EIO", message: "the prompt waits and could not be run" })
  }
  return undefined
})

/** Keeps the reason for later watchers, and gives it to the present ones. */
const report = Effect.fnUntraced(function* ({ reasons, watchers }: State, sessionID: SessionID, reason: Refused) {
  reasons.set(sessionID, reason)
  const present = watchers.get(sessionID) ?? []
  watchers.delete(sessionID)
  for (const watcher of present) yield* Deferred.succeed(watcher, reason)
})

/** The session's fiber: drains until the session was not woken meanwhile. */
const run = (backend: Backend, state: State, sessionID: SessionID): Effect.Effect<void> => {
  const { woken } = state
  /** If the session was not woken, it is removed in the same step, so that no wake is lost. */
  const continues = (): boolean => woken.get(sessionID) === true || !woken.delete(sessionID)
  return Effect.gen(function* () {
    do {
      woken.set(sessionID, false)
      const reason = yield* Effect.catchAll(drain(backend, state, sessionID), (error) =>
        // A removed session has no waiting prompts, and its followers see its end.
        error._tag === "SessionNotFound"
          ? Effect.succeed(undefined)
          : Effect.as(
              Effect.logWarning("the waiting prompts could not be run", error),
              new Refused({ code: "EIO", message: error.message })
            )
      )
      if (reason !== undefined && woken.get(sessionID) !== true) yield* report(state, sessionID, reason)
    } while (continues())
  }).pipe(
    Effect.onError(() => Effect.sync(() => woken.delete(sessionID))),
    Effect.withSpan("Drainer.run", { attributes: { sessionID } })
  )
}

const stuck = ({ reasons, watchers }: State, sessionID: SessionID): Effect.Effect<Refused> =>
  Effect.flatMap(Deferred.make<Refused>(), (watcher) =>
    Effect.ensuring(
      Effect.suspend(() => {
        const reason = reasons.get(sessionID)
        if (reason !== undefined) return Effect.succeed(reason)
        const present = watchers.get(sessionID)
        if (present === undefined) watchers.set(sessionID, new Set([watcher]))
        else present.add(watcher)
        return Deferred.await(watcher)
      }),
      Effect.sync(() => {
        const present = watchers.get(sessionID)
        present?.delete(watcher)
        if (present?.size === 0) watchers.delete(sessionID)
      })
    )
  )

export const make = (backend: Backend): Effect.Effect<Drainer, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const state: State = { closed: false, woken: new Map(), watchers: new Map(), reasons: new Map() }
    const { reasons, woken } = state
    return {
      wake: (sessionID) =>
        Effect.suspend(() => {
          if (state.closed) return Effect.void
          reasons.delete(sessionID)
          const hasFiber = woken.has(sessionID)
          woken.set(sessionID, true)
          return hasFiber
            ? Effect.void
            : Effect.asVoid(Effect.forkIn(Effect.interruptible(run(backend, state, sessionID)), scope))
        }),
      close: Effect.sync(() => void (state.closed = true)),
      busy: Effect.sync(() => [...woken.keys()]),
      stuck: (sessionID) => stuck(state, sessionID)
    }
  })
