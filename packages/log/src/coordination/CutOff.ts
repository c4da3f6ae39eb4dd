/** Tells the activities that run from those whose process died, at one look. Spec: EX-404. */
import { Clock, Effect, Option } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import type { Session } from "../domain/Message.ts"
import type { StoredError } from "../domain/Values.ts"
import type { LogUnavailable } from "../log/EventLog.ts"
import { unavailable } from "../log/EventRow.ts"
import { ReadSql } from "../storage/Database.ts"
import { retryBusy } from "../storage/Transaction.ts"
import { SessionStore } from "../store/SessionStore.ts"
import type { StoreError } from "../store/StoreError.ts"
import * as OwnerID from "./OwnerID.ts"
import * as OwnerRows from "./OwnerRows.ts"
import { selectOwners } from "./OwnerRows.ts"

/** Why work that a dead process left has ended. */
export const processEnded: StoredError = {
  type: "process.ended",
  message: "the process that worked on this ended before it was done"
}

export const isRunning = ({ activity }: Session): boolean => activity?.state === "running"

/** The session as it is once its activity is settled: interrupted, because its process ended. */
export const asInterrupted = (session: Session): Session =>
  session.activity === undefined
    ? session
    : { ...session, activity: { ...session.activity, state: "interrupted", error: processEnded } }

/** Of these sessions, those with an owner that may be alive. Answers at once. */
const owned = Effect.fnUntraced(function* (ids: ReadonlyArray<SessionID>) {
  const rows = yield* Effect.mapError(retryBusy(selectOwners(yield* ReadSql, ids)), unavailable("read the owners"))
  const judge = OwnerRows.makeJudge({ process: OwnerID.make(), ownerID: "", held: new Map() })
  const now = yield* Clock.currentTimeNanos
  return new Set(rows.filter((row) => judge(row, now) !== "free").map(({ session_id }) => session_id))
})

/** The sessions, with `asInterrupted` for those whose activity runs without a process that may be alive. */
export const find = (
  sessions: ReadonlyArray<Session>
): Effect.Effect<ReadonlyArray<Session>, StoreError | LogUnavailable, ReadSql | SessionStore> =>
  Effect.gen(function* () {
    const store = yield* SessionStore
    const running = sessions.filter(isRunning).map(({ id }) => id)
    if (running.length === 0) return sessions
    const living = yield* owned(running)
    return yield* Effect.forEach(sessions, (session) => {
      if (!isRunning(session) || living.has(session.id)) return Effect.succeed(session)
      // Its owner may have settled it and released the session since it was listed.
      return store.get(session.id).pipe(
        Effect.map((now) => (isRunning(now) && now.activity?.id === session.activity?.id ? asInterrupted(now) : now)),
        Effect.catchTag("SessionNotFound", () => Effect.succeed(session))
      )
    })
  })

/** `find` with this process's database, for readers that have no connection of their own. */
export const make = Effect.map(
  Effect.context<ReadSql | SessionStore>(),
  (context) => (sessions: ReadonlyArray<Session>) => Effect.provide(find(sessions), context)
)

/** `find` where this process has the database. Sessions of a server are what it says. */
export const findHere = (sessions: ReadonlyArray<Session>) =>
  Effect.flatMap(
    Effect.serviceOption(ReadSql),
    Option.match({
      onNone: () => Effect.succeed(sessions),
      onSome: (sql) => Effect.provideService(find(sessions), ReadSql, sql)
    })
  )
