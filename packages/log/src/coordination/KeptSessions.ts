/**
 * Keeps sessions for a moment after their work is done, so that the next work of the same process takes them again
 * without a write. A kept session is not renewed, and it counts as free in this process; other processes get it when the
 * moment is over, or the process closes. Spec: EX-O10, EX-O11.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Duration, Effect, Fiber, type Scope } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import type { LogUnavailable, OwnerToken } from "../log/EventLog.ts"
import { unavailable } from "../log/EventRow.ts"
import { immediately, retryBusy } from "../storage/Transaction.ts"
import * as SessionRows from "../store/SessionRows.ts"
import type { Standing } from "../store/SessionStore.ts"
import * as OwnerRows from "./OwnerRows.ts"

/** A session that this process owns, and when its lease was renewed last, on the monotonic clock. */
export interface Held {
  readonly token: OwnerToken
  readonly renewed: bigint
}

/** A kept session that was taken again. One statement read it and its owner. */
export interface TakenAgain {
  readonly own: Held
  readonly standing: Standing
}

export interface KeptSessions {
  /** Keeps a session that its owner has finished with; releases it immediately if sessions are not kept. */
  readonly keep: (sessionID: SessionID, own: Held) => Effect.Effect<void>
  /** Takes a kept session again, and reads it, unless it was lost, removed or asked to stop meanwhile. */
  readonly take: (sessionID: SessionID) => Effect.Effect<TakenAgain | undefined, LogUnavailable>
  /** Gives the session up now. */
  readonly release: (sessionID: SessionID, token: OwnerToken) => Effect.Effect<void>
}

const run = <A>(operation: string, effect: Effect.Effect<A, SqlError.SqlError>) =>
  Effect.mapError(retryBusy(effect), unavailable(operation))

export interface Connections {
  readonly sql: SqlClient.SqlClient
  readonly readSql: SqlClient.SqlClient
}

/** Keeps sessions for `keepMs`; closing the scope releases them. `held` has the sessions that this process works on. */
export const make = Effect.fnUntraced(function* (
  { readSql, sql }: Connections,
  held: Map<SessionID, number>,
  keepMs: number
): Effect.fn.Return<KeptSessions, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const readStanding = SessionRows.standing(readSql)
  const kept = new Map<SessionID, { readonly own: Held; timer?: Fiber.RuntimeFiber<void> }>()

  const release: KeptSessions["release"] = (sessionID, token) =>
    Effect.suspend(() => {
      if (held.get(sessionID) === token.epoch) held.delete(sessionID)
      return Effect.ignoreLogged(run("release the session", OwnerRows.releaseOwnership(sql, sessionID, token)))
    })

  const keep: KeptSessions["keep"] = (sessionID, own) =>
    Effect.suspend(() => {
      if (keepMs === 0) return release(sessionID, own.token)
      const entry: { readonly own: Held; timer?: Fiber.RuntimeFiber<void> } = { own }
      if (held.get(sessionID) === own.token.epoch) held.delete(sessionID)
      kept.set(sessionID, entry)
      const over = Effect.suspend(() => {
        // Race: it was taken again when its moment was just over.
        if (kept.get(sessionID) !== entry) return Effect.void
        kept.delete(sessionID)
        return release(sessionID, own.token)
      })
      const timer = Effect.zipRight(Effect.interruptible(Effect.sleep(Duration.millis(keepMs))), over)
      return Effect.map(Effect.forkIn(timer, scope), (fiber) => void (entry.timer = fiber))
    })

  const take: KeptSessions["take"] = (sessionID) =>
    Effect.suspend(() => {
      const entry = kept.get(sessionID)
      if (entry === undefined) return Effect.succeed(undefined)
      const { token } = entry.own
      kept.delete(sessionID)
      // Race: another fiber acquires the session during the read below; it must find it owned.
      held.set(sessionID, token.epoch)
      return Effect.zipRight(
        entry.timer === undefined ? Effect.void : Fiber.interruptFork(entry.timer),
        readStanding(sessionID, token).pipe(
          Effect.map((standing) => ({ own: entry.own, standing })),
          Effect.catchAll((error) =>
            error._tag === "LogUnavailable"
              ? Effect.zipRight(release(sessionID, token), error)
              : // It is not this owner's any more, or it cannot be decoded: the claim decides.
                Effect.sync(() => void held.delete(sessionID))
          )
        )
      )
    })

  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      const all = [...kept]
      kept.clear()
      if (all.length === 0) return Effect.void
      const each = Effect.forEach(all, ([id, { own }]) => OwnerRows.releaseOwnership(sql, id, own.token))
      return Effect.ignoreLogged(run("release the sessions", immediately(sql)(each)))
    })
  )

  return { keep, take, release }
})
