/**
 * Decides which process may run a session. One row holds the owner, an epoch that grows with every change of owner, and
 * a lease. The owner renews the lease while it owns the session; its appends carry the epoch and are refused once
 * another process has taken over. A lease ends by release, when an observer saw no renewal for its whole length
 * (`Lease.ts`), or immediately when the owner's process is known to be gone (`OwnerID.ts`). Another process asks the
 * owner to stop through the same row. Spec: EX-O1..EX-O8.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import {
  Chunk,
  Clock,
  Context,
  Duration,
  Effect,
  Either,
  Layer,
  Option,
  Queue,
  Schedule,
  Schema,
  type Scope
} from "effect"
import { SessionID } from "../domain/Identifiers.ts"
import { type LogUnavailable, OwnerLost, type OwnerToken } from "../log/EventLog.ts"
import { unavailable } from "../log/EventRow.ts"
import { immediately, ReadSql, retryBusy } from "../storage/Database.ts"
import * as Lease from "./Lease.ts"
import * as OwnerID from "./OwnerID.ts"

/** How often a process that waits for an owner looks again. */
const lookAgain = Schedule.spaced(Duration.millis(Lease.lookMs))

/** Sessions per statement. */
const idsAtOnce = 256

export interface OwnerOptions {
  /** How long an owner that stopped renewing keeps its sessions, in milliseconds; 1,000 to 60,000. */
  readonly leaseMs?: number
  /** Identifies this process and checks other processes. */
  readonly process?: OwnerID.OwnProcess
}

/** A session that this process owns, for the life of the scope. */
export interface Ownership {
  readonly token: OwnerToken
  /**
   * Completes when another process asks this owner to stop. With an activity id, only that activity is to stop; run the
   * effect again to wait for the next request. Fails when another process has taken over the session.
   */
  readonly stopRequested: Effect.Effect<string | undefined, OwnerLost>
}

/** Records which process owns which session. */
export class SessionOwner extends Context.Tag("@daybook/log/SessionOwner")<
  SessionOwner,
  {
    /** Owns the session until the scope closes. Waits for a living owner to finish. */
    readonly acquire: (sessionID: SessionID) => Effect.Effect<Ownership, LogUnavailable, Scope.Scope>
    /**
     * Like `acquire`, but fails as soon as the owner is known to be alive: at its next renewal. An owner that stays
     * silent for its lease is replaced.
     */
    readonly acquireUnlessBusy: (
      sessionID: SessionID
    ) => Effect.Effect<Ownership, SessionBusy | LogUnavailable, Scope.Scope>
    /**
     * The owner if it is another process and not known to be gone. Returns immediately, so an owner that may be alive
     * counts.
     */
    readonly foreign: (sessionID: SessionID) => Effect.Effect<Option.Option<OwnerToken>, LogUnavailable>
    /**
     * Asks the owner with this token to stop, and waits until it has released the session or is gone. With an activity,
     * waits only until that has ended.
     */
    readonly requestStop: (
      sessionID: SessionID,
      token: OwnerToken,
      activityID?: string
    ) => Effect.Effect<void, LogUnavailable>
    /**
     * Returns the sessions that a living process owns, including this one. Looks until each is decided: immediately if
     * the owner is this process or is gone, at the owner's next renewal, or at the latest after a lease of silence.
     */
    readonly owned: (sessionIDs: ReadonlyArray<SessionID>) => Effect.Effect<ReadonlySet<SessionID>, LogUnavailable>
    /** `owned` for one session. */
    readonly isOwned: (sessionID: SessionID) => Effect.Effect<boolean, LogUnavailable>
  }
>() {}

type OwnerRow = {
  readonly session_id: SessionID
  readonly owner_id: string | null
  readonly owner_epoch: number
  readonly lease_until: number
  readonly lease_beat: number
  readonly lease_ms: number
}

/** Whether a session may be claimed: `unknown` until its owner renews or stays silent for its lease. */
type Standing = "free" | "owned" | "unknown"

/** Changes with each renewal. A process of 0.1.0 renews only `lease_until`. */
const signOf = ({ lease_beat, lease_until, owner_epoch, owner_id }: OwnerRow): string =>
  [owner_id, owner_epoch, lease_beat, lease_until].join(" ")

const make = Effect.fnUntraced(function* (options: OwnerOptions) {
  const sql = yield* SqlClient.SqlClient
  const readSql = yield* ReadSql
  const self = options.process ?? OwnerID.make()
  const ownerID = self.ownerID()
  const leaseMs = Lease.clamp(options.leaseMs ?? Lease.standardMs)
  /** The sessions that this process owns, with their epochs. */
  const held = new Map<SessionID, number>()

  const run = <A>(operation: string, effect: Effect.Effect<A, SqlError.SqlError>) =>
    Effect.mapError(retryBusy(effect), unavailable(operation))

  const rows = (from: SqlClient.SqlClient, sessionIDs: ReadonlyArray<SessionID>) =>
    from<OwnerRow>`SELECT session_id, owner_id, owner_epoch, lease_until, lease_beat, lease_ms FROM event_sequence
      WHERE session_id IN ${from.in(sessionIDs)}`

  /** Judges owners during one wait: remembers each row's earlier looks. */
  const judge = () => {
    const seen = new Map<SessionID, Lease.Sighting>()
    return (found: OwnerRow, at: bigint): Standing => {
      const { lease_ms, owner_epoch, owner_id, session_id } = found
      if (owner_id === null) return "free"
      // A row of this process that it does not hold could not be released.
      if (owner_id === ownerID) return held.get(session_id) === owner_epoch ? "owned" : "free"
      if (self.isGone(owner_id)) return "free"
      const sighting = Lease.observe(seen.get(session_id), signOf(found), at)
      seen.set(session_id, sighting)
      if (sighting.silentMs >= Lease.clamp(lease_ms)) return "free"
      return sighting.renewed ? "owned" : "unknown"
    }
  }
  type Judge = ReturnType<typeof judge>

  const look = (from: SqlClient.SqlClient, sessionID: SessionID, judged: Judge) =>
    Effect.gen(function* () {
      const [found] = yield* rows(from, [sessionID])
      const standing: Standing = found === undefined ? "free" : judged(found, yield* Clock.currentTimeNanos)
      return { found, standing }
    })

  /** Claims the session if it is free. The epoch grows, so the previous owner's appends are refused from now on. */
  const claim = (sessionID: SessionID, judged: Judge) =>
    run(
      "claim the session",
      immediately(sql)(
        Effect.gen(function* () {
          const { found, standing } = yield* look(sql, sessionID, judged)
          if (standing !== "free") return { token: undefined, standing, holder: found?.owner_id ?? "" }
          const now = yield* Clock.currentTimeMillis
          // `lease_until` is for processes of 0.1.0, which compare it with their clocks.
          const [claimed] = yield* sql<{ readonly owner_epoch: number }>`UPDATE event_sequence
            SET owner_id = ${ownerID}, owner_epoch = owner_epoch + 1, lease_until = ${now + leaseMs},
              lease_beat = lease_beat + 1, lease_ms = ${leaseMs}
            WHERE session_id = ${sessionID} RETURNING owner_epoch`
          return { token: { ownerID, epoch: claimed?.owner_epoch ?? 0 } }
        })
      )
    )

  const release = (sessionID: SessionID, token: OwnerToken) =>
    Effect.suspend(() => {
      if (held.get(sessionID) === token.epoch) held.delete(sessionID)
      return Effect.ignoreLogged(
        run(
          "release the session",
          sql`UPDATE event_sequence SET owner_id = NULL, lease_until = 0
            WHERE session_id = ${sessionID} AND owner_id = ${token.ownerID} AND owner_epoch = ${token.epoch}`
        )
      )
    })

  /** Renews the lease, and returns whether this epoch, or which of its activities, is asked to stop. */
  const renew = (sessionID: SessionID, token: OwnerToken) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const [mine] = yield* run(
        "renew the lease",
        sql<{
          readonly interrupt_epoch: number
          readonly interrupt_activity: string | null
        }>`UPDATE event_sequence SET lease_until = ${now + leaseMs}, lease_beat = lease_beat + 1
          WHERE session_id = ${sessionID} AND owner_id = ${token.ownerID} AND owner_epoch = ${token.epoch}
          RETURNING interrupt_epoch, interrupt_activity`
      )
      if (mine === undefined) return yield* new OwnerLost({ sessionID, ...token })
      return mine.interrupt_epoch === token.epoch
        ? { asked: true, activity: mine.interrupt_activity ?? undefined }
        : { asked: false, activity: undefined }
    })

  type Heard = Either.Either<string | undefined, OwnerLost>

  /** Renews until the session is lost. A failed renewal is retried: the lease outlasts several. */
  const renewals = (sessionID: SessionID, token: OwnerToken, heard: Queue.Enqueue<Heard>) =>
    renew(sessionID, token).pipe(
      Effect.flatMap(({ activity, asked }) =>
        asked ? Queue.offer(heard, Either.right(activity)) : Effect.succeed(false)
      ),
      Effect.catchTag("LogUnavailable", (error) =>
        Effect.annotateLogs(Effect.logWarning("the lease could not be renewed yet", error), { sessionID })
      ),
      Effect.delay(Duration.millis(Lease.heartbeatMs(leaseMs))),
      Effect.forever,
      Effect.catchTag("OwnerLost", (lost) => Queue.offer(heard, Either.left(lost)))
    )

  const own = (sessionID: SessionID, token: OwnerToken) =>
    Effect.gen(function* () {
      held.set(sessionID, token.epoch)
      yield* Effect.addFinalizer(() => release(sessionID, token))
      // Only the latest request counts.
      const heard = yield* Queue.sliding<Heard>(1)
      // Forked after the finalizer is added: the lease is renewed until the session is released, during any cleanup
      // before it.
      yield* Effect.forkScoped(Effect.interruptible(renewals(sessionID, token, heard)))
      return { token, stopRequested: Effect.flatten(Queue.take(heard)) } satisfies Ownership
    })

  const attempt = (sessionID: SessionID, judged: Judge) =>
    Effect.uninterruptible(
      Effect.gen(function* () {
        const claimed = yield* claim(sessionID, judged)
        return claimed.token === undefined ? claimed : yield* own(sessionID, claimed.token)
      })
    )

  /** Waits by reading, which takes no lock. If several processes see the session free, the first claim succeeds. */
  const untilStanding = (sessionID: SessionID, judged: Judge, until: (standing: Standing) => boolean) =>
    Effect.repeat(run("read the owner", look(readSql, sessionID, judged)), {
      schedule: lookAgain,
      until: ({ standing }) => until(standing)
    })

  const acquire = (sessionID: SessionID): Effect.Effect<Ownership, LogUnavailable, Scope.Scope> =>
    Effect.gen(function* () {
      const judged = judge()
      for (;;) {
        const result = yield* attempt(sessionID, judged)
        if (result.token !== undefined) return result
        yield* untilStanding(sessionID, judged, (standing) => standing === "free")
      }
    })

  const acquireUnlessBusy = (sessionID: SessionID) =>
    Effect.gen(function* () {
      const judged = judge()
      for (;;) {
        const result = yield* attempt(sessionID, judged)
        if (result.token !== undefined) return result
        if (result.standing === "owned") return yield* new SessionBusy({ sessionID, ownerID: result.holder })
        yield* untilStanding(sessionID, judged, (standing) => standing !== "unknown")
      }
    })

  const foreign = (sessionID: SessionID) =>
    Effect.map(run("read the owner", look(readSql, sessionID, judge())), ({ found, standing }) =>
      standing === "free" || found === undefined || found.owner_id === null || found.owner_id === ownerID
        ? Option.none()
        : Option.some({ ownerID: found.owner_id, epoch: found.owner_epoch })
    )

  const owned = Effect.fn("SessionOwner.owned")(function* (sessionIDs: ReadonlyArray<SessionID>) {
    const judged = judge()
    const living = new Set<SessionID>()
    const lookAt = (undecided: ReadonlyArray<SessionID>) =>
      Effect.gen(function* () {
        const found = yield* Effect.forEach(Chunk.chunksOf(Chunk.fromIterable(undecided), idsAtOnce), (ids) =>
          run("read the owner", rows(readSql, [...ids]))
        )
        const now = yield* Clock.currentTimeNanos
        return found.flat().flatMap((row) => {
          const standing = judged(row, now)
          if (standing === "owned") living.add(row.session_id)
          return standing === "unknown" ? [row.session_id] : []
        })
      })
    let undecided = yield* lookAt(sessionIDs)
    while (undecided.length > 0) {
      yield* Effect.sleep(Duration.millis(Lease.lookMs))
      undecided = yield* lookAt(undecided)
    }
    return living
  })

  /** One row if the log has this activity's start and not its end. */
  const runs = (from: SqlClient.SqlClient, sessionID: SessionID, activityID: string) =>
    from`SELECT 1 FROM session WHERE id = ${sessionID} AND activity_id = ${activityID} AND activity_state = 'running'`

  return SessionOwner.of({
    acquire,
    acquireUnlessBusy,
    foreign,
    requestStop: Effect.fnUntraced(function* (sessionID, token, activityID) {
      const mine = sql`session_id = ${sessionID} AND owner_id = ${token.ownerID} AND owner_epoch = ${token.epoch}`
      yield* run(
        "ask the owner to stop",
        activityID === undefined
          ? sql`UPDATE event_sequence SET interrupt_epoch = ${token.epoch}, interrupt_activity = NULL WHERE ${mine}`
          : // Does not replace a request to stop everything, and writes nothing if the activity has ended.
            sql`UPDATE event_sequence SET interrupt_epoch = ${token.epoch}, interrupt_activity = ${activityID}
              WHERE ${mine} AND NOT (interrupt_epoch = owner_epoch AND interrupt_activity IS NULL)
              AND EXISTS (${runs(sql, sessionID, activityID)})`
      )
      const judged = judge()
      const working = Effect.map(
        run("read the owner", look(readSql, sessionID, judged)),
        ({ found, standing }) =>
          standing !== "free" && found?.owner_id === token.ownerID && found.owner_epoch === token.epoch
      )
      const goesOn =
        activityID === undefined
          ? Effect.succeed(true)
          : Effect.map(run("read the activity", runs(readSql, sessionID, activityID)), (rows) => rows.length > 0)
      yield* Effect.repeat(
        Effect.zipWith(working, goesOn, (owned, going) => owned && going),
        { schedule: lookAgain, until: (busy) => !busy }
      )
    }),
    owned,
    isOwned: (sessionID) => Effect.map(owned([sessionID]), (living) => living.has(sessionID))
  })
})

/** Stores ownership in the database. */
export const layer = (options: OwnerOptions = {}) => Layer.effect(SessionOwner, make(options))

/** Another living process owns the session. */
export class SessionBusy extends Schema.TaggedError<SessionBusy>("@daybook/log/SessionBusy")("SessionBusy", {
  sessionID: SessionID,
  ownerID: Schema.String
}) {
  override get message() {
    return `${this.sessionID} is being worked on by ${OwnerID.describe(this.ownerID)}; follow its events, or interrupt it first`
  }
}
