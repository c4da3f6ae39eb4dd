/**
 * Keeps the queues of sessions running. The runtime ends a drain after a failed activity or an interrupt; the keeper
 * then runs the next waiting prompt, even if its client has gone, until none waits. If a prompt cannot begin, its
 * waiting clients get the reason, and the next ring retries it. Each session with waiting prompts has one fiber. Spec:
 * SO-32, SO-33 in specs/socket.md (DC-20).
 */
import { Deferred, Effect, type Scope } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { Refused } from "../support/Refused.ts"
import type { Backend } from "./Backend.ts"

export interface Keeper {
  /** Runs waiting prompts of the session until none is left. Returns immediately. */
  readonly ring: (sessionID: SessionID) => Effect.Effect<void>
  /** Starts no further runs; current ones continue. */
  readonly close: Effect.Effect<void>
  /** Sessions in which something waits or runs. */
  readonly busy: Effect.Effect<ReadonlyArray<SessionID>>
  /**
   * Completes with the reason once a waiting prompt of the session cannot begin, immediately if the last attempt
   * failed.
   */
  readonly stuck: (sessionID: SessionID) => Effect.Effect<Refused>
}

/** Unproductive drains before an error is reported. */
const patience = 3

export const make = Effect.fnUntraced(function* ({
  execution,
  inbox,
  sessions,
  store
}: Backend): Effect.fn.Return<Keeper, never, Scope.Scope> {
  const scope = yield* Effect.scope
  /** Sessions with a fiber, and whether they were rung since its last check. */
  const rung = new Map<SessionID, boolean>()
  const watchers = new Map<SessionID, Set<Deferred.Deferred<Refused>>>()
  /** Why the last attempt in a session failed. */
  const reasons = new Map<SessionID, Refused>()

  /** A value that changes with every productive drain. */
  const standing = Effect.fnUntraced(function* (sessionID: SessionID) {
    const [head] = yield* inbox.waiting(sessionID, { limit: 1 })
    if (head === undefined) return undefined
    const { activity } = yield* store.get(sessionID)
    return `${activity?.id} ${head.id}`
  })

  const state = { closed: false }

  const drain = Effect.fnUntraced(function* (sessionID: SessionID) {
    let before = yield* standing(sessionID)
    let idle = 0
    while (before !== undefined && !state.closed) {
      yield* execution.wake(sessionID)
      yield* sessions.wait(sessionID)
      const now = yield* standing(sessionID)
      idle = now === before ? idle + 1 : 0
      before = now
      if (now === undefined || idle === 0 || state.closed) continue
      // The preview of the next request fails with the cause of the drain's failure.
      const shown = yield* Effect.either(sessions.request({ sessionID }))
      if (shown._tag === "Left") {
        return new Refused({ code: "EIO", message: `the prompt waits and could not be run: ${shown.left.message}` })
      }
      if (idle === patience) return new Refused({ code: "EIO", message: "the prompt waits and could not be run" })
    }
    return undefined
  })

  /** Whether the session was rung meanwhile. If not, it is removed in the same step, so that no ring is lost. */
  const goesOn = (sessionID: SessionID): boolean => rung.get(sessionID) === true || !rung.delete(sessionID)

  const keep = (sessionID: SessionID): Effect.Effect<void> =>
    Effect.gen(function* () {
      do {
        rung.set(sessionID, false)
        const refused = yield* Effect.catchAll(drain(sessionID), (error) =>
          // A removed session has no waiting prompts, and its followers see its end.
          error._tag === "SessionNotFound"
            ? Effect.succeed(undefined)
            : Effect.as(
                Effect.logWarning("the waiting prompts could not be run", error),
                new Refused({ code: "EIO", message: error.message })
              )
        )
        if (refused === undefined || rung.get(sessionID) === true) continue
        reasons.set(sessionID, refused)
        const told = watchers.get(sessionID) ?? []
        watchers.delete(sessionID)
        for (const watcher of told) yield* Deferred.succeed(watcher, refused)
      } while (goesOn(sessionID))
    }).pipe(
      Effect.onError(() => Effect.sync(() => rung.delete(sessionID))),
      Effect.withSpan("Keeper.keep", { attributes: { sessionID } })
    )

  const ring = (sessionID: SessionID) =>
    Effect.suspend(() => {
      if (state.closed) return Effect.void
      reasons.delete(sessionID)
      if (rung.has(sessionID)) return Effect.sync(() => void rung.set(sessionID, true))
      rung.set(sessionID, true)
      return Effect.asVoid(Effect.forkIn(Effect.interruptible(keep(sessionID)), scope))
    })

  const stuck = (sessionID: SessionID) =>
    Effect.flatMap(Deferred.make<Refused>(), (watcher) =>
      Effect.ensuring(
        Effect.suspend(() => {
          const reason = reasons.get(sessionID)
          if (reason !== undefined) return Effect.succeed(reason)
          const known = watchers.get(sessionID)
          if (known === undefined) watchers.set(sessionID, new Set([watcher]))
          else known.add(watcher)
          return Deferred.await(watcher)
        }),
        Effect.sync(() => {
          const known = watchers.get(sessionID)
          known?.delete(watcher)
          if (known?.size === 0) watchers.delete(sessionID)
        })
      )
    )

  return {
    ring,
    close: Effect.sync(() => void (state.closed = true)),
    busy: Effect.sync(() => [...rung.keys()]),
    stuck
  }
})
