/**
 * Who may run a session. One row holds its owner, an epoch that grows with every change of owner, and a lease. The
 * owner renews the lease while it works; its appends carry the epoch and are refused once somebody else has taken over.
 * A lease ends by release, by time, or at once when its process is known to be dead on this machine. Another process
 * asks the owner to stop through the same row. Spec: EX-O1..EX-O6.
 */
import { SqlClient, type SqlError } from "@effect/sql"
import { hostname } from "node:os"
import { Clock, Context, Effect, Layer, Option, Schedule, type Scope } from "effect"
import type { SessionID } from "../Identifiers.ts"
import { OwnerLost, type LogUnavailable, type OwnerToken } from "../log/EventLog.ts"
import { unavailable } from "../log/EventRow.ts"
import { immediately, ReadSql, retryBusy } from "../storage/Database.ts"
import { SessionBusy } from "./RunError.ts"

/** How long an owner that stopped answering keeps its sessions. */
const leaseMs = 15_000
/** How often an owner renews, and looks whether it was asked to stop. */
const heartbeat = "1 second"
/** How often somebody who waits for a session looks again. */
const retryEvery = Schedule.spaced("100 millis")

/** A session that this process works on, for as long as its scope. */
export interface Ownership {
  readonly token: OwnerToken
  /**
   * Keeps the lease while it runs. Completes when another process asked this owner to stop: with the activity, if it is
   * to stop only that; then it is run again to go on. Fails when another process has taken the session over, after a
   * pause longer than the lease.
   */
  readonly stopRequested: Effect.Effect<string | undefined, OwnerLost | LogUnavailable>
}

/** Which process works on which session. */
export class SessionOwner extends Context.Tag("@daybook/core/SessionOwner")<
  SessionOwner,
  {
    /** Owns the session until the scope closes, waiting for a living owner to finish. */
    readonly acquire: (sessionID: SessionID) => Effect.Effect<Ownership, LogUnavailable, Scope.Scope>
    /** The same, but fails at once when a living owner has it. */
    readonly acquireNow: (sessionID: SessionID) => Effect.Effect<Ownership, SessionBusy | LogUnavailable, Scope.Scope>
    /** The living owner other than this process, if there is one. */
    readonly foreign: (sessionID: SessionID) => Effect.Effect<Option.Option<OwnerToken>, LogUnavailable>
    /** Asks the owner with this token to stop, and waits until it has let go or is gone; or only until an activity has ended. */
    readonly requestStop: (
      sessionID: SessionID,
      token: OwnerToken,
      activityID?: string
    ) => Effect.Effect<void, LogUnavailable>
    /** Whether a living process, this one included, owns the session. */
    readonly isOwned: (sessionID: SessionID) => Effect.Effect<boolean, LogUnavailable>
  }
>() {}

type OwnerRow = {
  readonly owner_id: string | null
  readonly owner_epoch: number
  readonly lease_until: number
  readonly interrupt_epoch: number
}

/** False only when the owner is a process of this machine that is certainly gone. */
const mayLive = (ownerID: string): boolean => {
  const [host, pid] = ownerID.split("/")
  if (host !== hostname() || pid === undefined) return true
  try {
    process.kill(Number(pid), 0)
    return true
  } catch (cause) {
    // EPERM: it lives, and belongs to somebody else.
    return cause instanceof Error && "code" in cause && cause.code === "EPERM"
  }
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const readSql = yield* ReadSql
  const ownerID = `${hostname()}/${process.pid}/${globalThis.crypto.randomUUID().slice(0, 8)}`

  const run = <A>(operation: string, effect: Effect.Effect<A, SqlError.SqlError>) =>
    Effect.mapError(retryBusy(effect), unavailable(operation))

  const row = (from: SqlClient.SqlClient, sessionID: SessionID) =>
    Effect.map(
      from<OwnerRow>`SELECT owner_id, owner_epoch, lease_until, interrupt_epoch FROM event_sequence
        WHERE session_id = ${sessionID}`,
      ([found]) => found
    )

  const living = (found: OwnerRow | undefined, now: number): string | undefined =>
    found?.owner_id != null && found.lease_until > now && mayLive(found.owner_id) ? found.owner_id : undefined

  /** Takes the session over unless a living owner has it; the epoch grows, so the one before is refused from now on. */
  const claim = (sessionID: SessionID) =>
    run(
      "claim the session",
      immediately(sql)(
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const holder = living(yield* row(sql, sessionID), now)
          if (holder !== undefined) return { holder }
          const [claimed] = yield* sql<{ readonly owner_epoch: number }>`UPDATE event_sequence
            SET owner_id = ${ownerID}, owner_epoch = owner_epoch + 1, lease_until = ${now + leaseMs}
            WHERE session_id = ${sessionID} RETURNING owner_epoch`
          return { token: { ownerID, epoch: claimed?.owner_epoch ?? 0 } }
        })
      )
    )

  const release = (sessionID: SessionID, token: OwnerToken) =>
    Effect.ignoreLogged(
      run(
        "release the session",
        sql`UPDATE event_sequence SET owner_id = NULL, lease_until = 0
          WHERE session_id = ${sessionID} AND owner_id = ${token.ownerID} AND owner_epoch = ${token.epoch}`
      )
    )

  /** Renews, and tells whether this epoch, or what activity of it, was asked to stop. */
  const renew = (sessionID: SessionID, token: OwnerToken) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const [mine] = yield* run(
        "renew the lease",
        sql<{
          readonly interrupt_epoch: number
          readonly interrupt_activity: string | null
        }>`UPDATE event_sequence SET lease_until = ${now + leaseMs}
          WHERE session_id = ${sessionID} AND owner_id = ${token.ownerID} AND owner_epoch = ${token.epoch}
          RETURNING interrupt_epoch, interrupt_activity`
      )
      if (mine === undefined) return yield* new OwnerLost({ sessionID, ...token })
      return mine.interrupt_epoch === token.epoch
        ? { asked: true, activity: mine.interrupt_activity ?? undefined }
        : { asked: false, activity: undefined }
    })

  const own = (sessionID: SessionID, token: OwnerToken) =>
    Effect.as(
      Effect.addFinalizer(() => release(sessionID, token)),
      {
        token,
        stopRequested: Effect.map(
          Effect.repeat(Effect.delay(renew(sessionID, token), heartbeat), { until: ({ asked }) => asked }),
          ({ activity }) => activity
        )
      } satisfies Ownership
    )

  const acquireNow = (sessionID: SessionID) =>
    Effect.uninterruptible(
      Effect.flatMap(claim(sessionID), (claimed): Effect.Effect<Ownership, SessionBusy, Scope.Scope> =>
        "token" in claimed ? own(sessionID, claimed.token) : new SessionBusy({ sessionID, ownerID: claimed.holder })
      )
    )

  const foreign = (sessionID: SessionID) =>
    Effect.gen(function* () {
      const found = yield* run("read the owner", row(readSql, sessionID))
      const holder = living(found, yield* Clock.currentTimeMillis)
      return holder === undefined || holder === ownerID || found === undefined
        ? Option.none()
        : Option.some({ ownerID: holder, epoch: found.owner_epoch })
    })

  /** Waits by reading, so that waiting takes no lock; whoever sees the session free first claims it. */
  const acquire = (sessionID: SessionID): Effect.Effect<Ownership, LogUnavailable, Scope.Scope> =>
    Effect.catchTag(acquireNow(sessionID), "SessionBusy", () =>
      Effect.repeat(isFree(sessionID), { schedule: retryEvery, until: (free) => free }).pipe(
        Effect.zipRight(Effect.suspend(() => acquire(sessionID)))
      )
    )

  const isFree = (sessionID: SessionID) =>
    Effect.gen(function* () {
      const found = yield* run("read the owner", row(readSql, sessionID))
      return living(found, yield* Clock.currentTimeMillis) === undefined
    })

  /** A row, when the log has the start of this activity and not its end. */
  const runs = (from: SqlClient.SqlClient, sessionID: SessionID, activityID: string) =>
    from`SELECT 1 FROM session WHERE id = ${sessionID} AND activity_id = ${activityID} AND activity_state = 'running'`

  return SessionOwner.of({
    acquire,
    acquireNow,
    foreign,
    requestStop: Effect.fnUntraced(function* (sessionID, token, activityID) {
      const mine = sql`session_id = ${sessionID} AND owner_id = ${token.ownerID} AND owner_epoch = ${token.epoch}`
      yield* run(
        "ask the owner to stop",
        activityID === undefined
          ? sql`UPDATE event_sequence SET interrupt_epoch = ${token.epoch}, interrupt_activity = NULL WHERE ${mine}`
          : // Who was asked to stop altogether is not asked for less, and nobody for what has ended.
            sql`UPDATE event_sequence SET interrupt_epoch = ${token.epoch}, interrupt_activity = ${activityID}
              WHERE ${mine} AND NOT (interrupt_epoch = owner_epoch AND interrupt_activity IS NULL)
              AND EXISTS (${runs(sql, sessionID, activityID)})`
      )
      const working = Effect.map(
        foreign(sessionID),
        (owner) => Option.isSome(owner) && owner.value.epoch === token.epoch
      )
      const goesOn =
        activityID === undefined
          ? Effect.succeed(true)
          : Effect.map(run("read the activity", runs(readSql, sessionID, activityID)), (rows) => rows.length > 0)
      yield* Effect.repeat(
        Effect.zipWith(working, goesOn, (owned, going) => owned && going),
        {
          schedule: retryEvery,
          until: (busy) => !busy
        }
      )
    }),
    isOwned: (sessionID) => Effect.map(isFree(sessionID), (free) => !free)
  })
})

/** Ownership in the database. */
export const layer = Layer.effect(SessionOwner, make)
