/**
 * Holds the log's writer, so that appends gather behind it: a commit finds the database locked, as if another process had
 * it, until it is opened. The writer tries again meanwhile, with growing pauses of its clock, up to 250 ms.
 */
import { SqlError } from "@effect/sql"
import { Deferred, Effect } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { Draft, SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import type { Projector } from "../../packages/log/src/log/Appends.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as SqlHook from "../../packages/log/src/log/SqlHook.ts"

/** Enough rounds for forked appends to reach the writer. */
export const rounds = Effect.repeatN(Effect.yieldNow(), 20)

const locked = () =>
  new SqlError.SqlError({
    message: "Failed to execute statement",
    cause: Object.assign(new Error("database is locked"), { code: "SQLITE_BUSY" })
  })

const makeLock = Effect.map(Deferred.make<void>(), (reached) => {
  let isOpen = false
  return {
    /** Whether it is still closed. */
    meet: () => {
      if (!isOpen) Deferred.unsafeDone(reached, Effect.void)
      return !isOpen
    },
    reached: Deferred.await(reached),
    open: Effect.sync(() => void (isOpen = true))
  }
})

/** A projector that holds the commits of some events. */
export const holdingAt = (isHeld: (event: SessionEvent) => boolean) =>
  Effect.map(makeLock, ({ meet, open, reached }) => {
    const projector: Projector = {
      name: "holding",
      project: (events) => Effect.suspend(() => (events.some(isHeld) && meet() ? locked() : Effect.void))
    }
    return { projector, reached, open }
  })

/** An append that the writer has in hand and cannot commit until it is opened. */
export const heldAppend = Effect.fnUntraced(function* (id: SessionID, drafts: NonEmptyReadonlyArray<Draft>) {
  const [log, { meet, open, reached }] = [yield* EventLog, yield* makeLock]
  const commit = SqlHook.check(() => {
    if (meet()) throw locked()
    return undefined
  })
  const appending = yield* Effect.fork(log.append(id, drafts, { commit }))
  yield* reached
  return { appending, open }
})
