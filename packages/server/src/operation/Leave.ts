/**
 * Ends the temp runs of a client that is gone, and removes temp sessions without users. Spec: SO-55, SO-56 in
 * specs/socket.md (SC-2, DC-17).
 */
import { Effect } from "effect"
import { addressKey } from "@daybook/log/domain/Address"
import { runsOf } from "../run/Runs.ts"
import type { Backend } from "../session/Backend.ts"
import type { Left } from "../session/TempSessions.ts"
import { refusedBy } from "../support/Refused.ts"
import { stopRun } from "./Cancel.ts"
import type { Endpoint } from "./Endpoint.ts"

const endSession = Effect.fnUntraced(function* ({ temps }: Endpoint, backend: Backend, { address, runs }: Left) {
  const { sessions } = backend
  const session = yield* Effect.mapError(sessions.addressed(address), refusedBy)
  if (session === undefined) return
  if (!temps.isUsed(address)) return yield* Effect.ignore(sessions.remove(session.id))
  const current = yield* Effect.mapError(runsOf(backend, session), refusedBy)
  for (const found of current) if (runs.has(found.run)) yield* stopRun(backend, session, found)
})

/** Ends what the connection used. The work continues in the background, after current admissions. */
export const leave = (endpoint: Endpoint, connection: number): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { admissions, scope, temp, temps } = endpoint
    const left = temps.leave(connection)
    if (left.length === 0) return Effect.void
    const end = Effect.fnUntraced(function* (backend: Backend, each: Left) {
      const turn = yield* admissions.lane.enter(addressKey(each.address), { always: true })
      if (turn === undefined) return
      const work = Effect.ignoreLogged(endSession(endpoint, backend, each))
      yield* Effect.asVoid(Effect.uninterruptible(Effect.forkIn(turn(work), scope)))
    })
    return Effect.ignoreLogged(
      Effect.flatMap(temp, ({ backend }) => Effect.forEach(left, (each) => end(backend, each), { discard: true }))
    )
  })
