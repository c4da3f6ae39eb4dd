/**
 * Keeps sessions for a moment after their work is done, so that the next work of the same process takes them again
 * without a write. A kept session is not renewed, and it counts as free in this process; other processes get it when the
 * moment is over, or the process closes. Spec: EX-O10, EX-O11.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Clock, Duration, Effect, Fiber, type Scope } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import type { LogUnavailable, OwnerToken } from "../log/EventLog.ts"
import { unavailable } from "../log/EventRow.ts"
import { immediately, retryBusy } from "../storage/Transaction.ts"
import * as SessionRows from "../store/SessionRows.ts"
import type { Standing } from "../store/SessionStore.ts"
import * as OwnerRows from "./OwnerRows.ts"

/** A kept session that was taken again. One statement read it and its owner. */
export interface TakenAgain {
  readonly token: OwnerToken
  readonly standing: Standing
}

export interface KeptSessions {
  /** Keeps a session that its owner has finished with; releases it immediately if sessions are not kept. */
  readonly keep: (sessionID: SessionID, token: OwnerToken) => Effect.Effect<void>
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

interface Kept {
  readonly token: OwnerToken
  /** The end of its moment, in milliseconds of the clock. */
  readonly until: number
  timer?: Fiber.RuntimeFiber<void>
}

/** Kept sessions whose moments end within so many milliseconds are released together. */
const together = 250

/** Keeps sessions for `keepMs`; closing the scope releases them. `held` has the sessions that this process works on. */
export const make = Effect.fnUntraced(function* (
  { readSql, sql }: Connections,
  held: Map<SessionID, number>,
  keepMs: number
): Effect.fn.Return<KeptSessions, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const readStanding = SessionRows.standing(readSql)
  const kept = new Map<SessionID, Kept>()

  const release: KeptSessions["release"] = (sessionID, token) =>
    Effect.suspend(() => {
      if (held.get(sessionID) === token.epoch) held.delete(sessionID)
      return Effect.ignoreLogged(run("release the session", OwnerRows.releaseOwnership(sql, sessionID, token)))
    })

  /** Releases kept sessions with one commit. */
  const releaseAll = (all: ReadonlyArray<readonly [SessionID, Kept]>) =>
    Effect.suspend(() => {
      for (const [id] of all) kept.delete(id)
      const each = Effect.forEach(all, ([id, { token }]) => OwnerRows.releaseOwnership(sql, id, token), {
        discard: true
      })
      return all.length === 0 ? Effect.void : Effect.ignoreLogged(run("release the sessions", immediately(sql)(each)))
    })

  const keep: KeptSessions["keep"] = (sessionID, token) =>
    Effect.gen(function* () {
      if (keepMs === 0) return yield* release(sessionID, token)
      const now = yield* Clock.currentTimeMillis
      const entry: Kept = { token, until: now + keepMs }
      if (held.get(sessionID) === token.epoch) held.delete(sessionID)
      kept.set(sessionID, entry)
      const over = Effect.suspend(() =>
        // Race: it was taken again when its moment was just over, or released with another.
        kept.get(sessionID) === entry
          ? releaseAll([...kept].filter(([, { until }]) => until <= entry.until + together))
          : Effect.void
      )
      const timer = Effect.zipRight(Effect.interruptible(Effect.sleep(Duration.millis(keepMs))), over)
      entry.timer = yield* Effect.forkIn(timer, scope)
    })

  const take: KeptSessions["take"] = (sessionID) =>
    Effect.suspend(() => {
      const entry = kept.get(sessionID)
      if (entry === undefined) return Effect.succeed(undefined)
      const { token } = entry
      kept.delete(sessionID)
      // Race: another fiber acquires the session during the read below; it must find it owned.
      held.set(sessionID, token.epoch)
      return Effect.zipRight(
        entry.timer === undefined ? Effect.void : Fiber.interruptFork(entry.timer),
        readStanding(sessionID, token).pipe(
          Effect.map((standing) => ({ token, standing })),
          Effect.catchAll((error) =>
            error._tag === "LogUnavailable"
              ? Effect.zipRight(release(sessionID, token), error)
              : // It is not this owner's any more, or it cannot be decoded: the claim decides.
                Effect.sync(() => void held.delete(sessionID))
          )
        )
      )
    })

  yield* Effect.addFinalizer(() => Effect.suspend(() => releaseAll([...kept])))

  return { keep, take, release }
})
