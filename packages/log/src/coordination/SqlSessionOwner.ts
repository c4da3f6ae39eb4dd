/** Implements session ownership on SQL. Contract: `SessionOwner.ts`. */
import * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import {
  Chunk,
  Clock,
  Deferred,
  Duration,
  Effect,
  Either,
  Exit,
  Layer,
  Option,
  Queue,
  Schedule,
  type Scope
} from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import { type LogUnavailable, OwnerLost, type OwnerToken } from "../log/EventLog.ts"
import { unavailable } from "../log/EventRow.ts"
import { ReadSql } from "../storage/Database.ts"
import { immediately, retryBusy } from "../storage/Transaction.ts"
import * as Judge from "./Judge.ts"
import * as KeptSessions from "./KeptSessions.ts"
import * as Lease from "./Lease.ts"
import * as OwnerID from "./OwnerID.ts"
import * as OwnerRows from "./OwnerRows.ts"
import { type Ownership, SessionBusy, SessionOwner } from "./SessionOwner.ts"

type Service = SessionOwner["Type"]

/** How often a process that waits for an owner looks again. */
const lookAgain = Schedule.spaced(Duration.millis(Lease.lookMs))

/** Sessions per statement. */
const idsAtOnce = 256

export interface OwnerOptions {
  /** How long an owner that stopped renewing keeps its sessions, in milliseconds; 1,000 to 60,000. */
  readonly leaseMs?: number
  /** How long a session is kept after its work is done, in milliseconds (EX-O10). Default: not at all. */
  readonly keepMs?: number
  /** Identifies this process and checks other processes. */
  readonly process?: OwnerID.OwnProcess
}

const run = <A>(operation: string, effect: Effect.Effect<A, SqlError.SqlError>) =>
  Effect.mapError(retryBusy(effect), unavailable(operation))

/** Reads the row of one session and judges it. */
const look = (sql: SqlClient.SqlClient, sessionID: SessionID, judge: Judge.Judge) =>
  Effect.gen(function* () {
    const [found] = yield* OwnerRows.selectOwners(sql, [sessionID])
    const standing: Judge.Standing = found === undefined ? "free" : judge(found, yield* Clock.currentTimeNanos)
    return { found, standing }
  })

type Heard = Either.Either<string | undefined, OwnerLost>

interface Due {
  readonly token: OwnerToken
  readonly renewed: Deferred.Deferred<OwnerRows.RenewedRow, OwnerLost | LogUnavailable>
}

/**
 * Renews leases that are due together with one transaction: each commit waits for the disk, and a hundred owners must not
 * cost a hundred commits.
 */
const makeRenew = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, ownerID: string, leaseMs: number) {
  const scope = yield* Effect.scope
  let due = new Map<SessionID, Due>()

  const renewAll = (all: ReadonlyMap<SessionID, Due>) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const rows = yield* Effect.forEach(Chunk.chunksOf(Chunk.fromIterable(all.keys()), idsAtOnce), (ids) =>
        OwnerRows.renewLeases(sql, [...ids], ownerID, { now, leaseMs })
      )
      return new Map(rows.flat().map((row) => [row.session_id, row]))
    })

  const flush = Effect.gen(function* () {
    // Other timers of this moment come first.
    // Collects the sessions whose timers fire now.
    yield* Effect.sleep("1 millis")
    const all = due
    due = new Map()
    const rows = yield* Effect.exit(run("renew the leases", immediately(sql)(renewAll(all))))
    for (const [sessionID, { renewed, token }] of all) {
      const row = Exit.map(rows, (found) => found.get(sessionID))
      yield* Deferred.done(
        renewed,
        Exit.flatMap(row, (mine) =>
          mine?.owner_epoch === token.epoch ? Exit.succeed(mine) : Exit.fail(new OwnerLost({ sessionID, ...token }))
        )
      )
    }
  })

  return (sessionID: SessionID, token: OwnerToken) =>
    Effect.gen(function* () {
      const renewed = yield* Deferred.make<OwnerRows.RenewedRow, OwnerLost | LogUnavailable>()
      due.set(sessionID, { token, renewed })
      if (due.size === 1) yield* Effect.forkIn(flush, scope)
      return yield* Deferred.await(renewed)
    })
})

type Renew = Effect.Effect.Success<ReturnType<typeof makeRenew>>

/** Holds sessions: renews their leases until the scope closes, then keeps or releases them. */
const makeHold = (held: Map<SessionID, number>, leaseMs: number, renew: Renew, keeping: KeptSessions.KeptSessions) => {
  /** The heartbeats of all sessions fall together, so that their renewals do. */
  const untilHeartbeat = Effect.map(Clock.currentTimeNanos, (now) => {
    const every = Lease.heartbeatMs(leaseMs)
    return Duration.millis(every - ((Number(now) / 1e6) % every))
  })

  /** Renews until the session is lost. A failed renewal is retried: the lease outlasts several. */
  const renewals = (sessionID: SessionID, token: OwnerToken, heard: Queue.Enqueue<Heard>) =>
    Effect.flatMap(untilHeartbeat, Effect.sleep).pipe(
      Effect.zipRight(renew(sessionID, token)),
      Effect.flatMap((row) =>
        row.interrupt_epoch === token.epoch
          ? Queue.offer(heard, Either.right(row.interrupt_activity ?? undefined))
          : Effect.void
      ),
      Effect.catchTag("LogUnavailable", (error) =>
        Effect.annotateLogs(Effect.logWarning("the lease could not be renewed yet", error), { sessionID })
      ),
      Effect.forever,
      Effect.catchTag("OwnerLost", (lost) => Queue.offer(heard, Either.left(lost)))
    )

  return (
    sessionID: SessionID,
    token: OwnerToken,
    kept: Ownership["kept"]
  ): Effect.Effect<Ownership, never, Scope.Scope> =>
    Effect.gen(function* () {
      held.set(sessionID, token.epoch)
      yield* Effect.addFinalizer((exit) =>
        Exit.isSuccess(exit) ? keeping.keep(sessionID, token) : keeping.release(sessionID, token)
      )
      // Only the latest request counts.
      const heard = yield* Queue.sliding<Heard>(1)
      // Forked after the finalizer is added: the lease is renewed until the session is released, during any cleanup
      // before it.
      yield* Effect.forkScoped(Effect.interruptible(renewals(sessionID, token, heard)))
      return { token, kept, stopRequested: Effect.flatten(Queue.take(heard)) }
    })
}

/** Acquires sessions: claims a free one, or waits for its owner. */
const makeAcquire = (
  { readSql, sql }: KeptSessions.Connections,
  self: Judge.Self,
  leaseMs: number,
  kept: KeptSessions.KeptSessions
) => {
  /** Claims the session if it is free. The epoch grows, so the previous owner's appends are refused from now on. */
  const claim = (sessionID: SessionID, judge: Judge.Judge) =>
    run(
      "claim the session",
      immediately(sql)(
        Effect.gen(function* () {
          const { found, standing } = yield* look(sql, sessionID, judge)
          if (standing !== "free") return { token: undefined, standing, holder: found?.owner_id ?? "" }
          const now = yield* Clock.currentTimeMillis
          const epoch = yield* OwnerRows.takeOwnership(sql, sessionID, self.ownerID, { now, leaseMs })
          return { token: { ownerID: self.ownerID, epoch } }
        })
      )
    )

  return (hold: ReturnType<typeof makeHold>): Pick<Service, "acquire" | "acquireUnlessBusy"> => {
    const attempt = (sessionID: SessionID, judge: Judge.Judge) =>
      Effect.uninterruptible(
        Effect.gen(function* () {
          const again = yield* kept.take(sessionID)
          if (again !== undefined) return yield* hold(sessionID, again.token, again.standing)
          const claimed = yield* claim(sessionID, judge)
          if (claimed.token === undefined) return claimed
          return yield* hold(sessionID, claimed.token, undefined)
        })
      )

    /** Waits by reading, which takes no lock. If several processes see the session free, the first claim succeeds. */
    const untilStanding = (sessionID: SessionID, judge: Judge.Judge, until: (standing: Judge.Standing) => boolean) =>
      Effect.repeat(run("read the owner", look(readSql, sessionID, judge)), {
        schedule: lookAgain,
        until: ({ standing }) => until(standing)
      })

    return {
      acquire: Effect.fnUntraced(function* (sessionID) {
        const judge = Judge.make(self)
        for (;;) {
          const result = yield* attempt(sessionID, judge)
          if (result.token !== undefined) return result
          yield* untilStanding(sessionID, judge, (standing) => standing === "free")
        }
      }),
      acquireUnlessBusy: Effect.fnUntraced(function* (sessionID) {
        const judge = Judge.make(self)
        for (;;) {
          const result = yield* attempt(sessionID, judge)
          if (result.token !== undefined) return result
          if (result.standing === "owned") return yield* new SessionBusy({ sessionID, ownerID: result.holder })
          yield* untilStanding(sessionID, judge, (standing) => standing !== "unknown")
        }
      })
    }
  }
}

/** Returns the sessions with a living owner, once each is decided. */
const makeOwned = (readSql: SqlClient.SqlClient, self: Judge.Self): Service["owned"] =>
  Effect.fn("SessionOwner.owned")(function* (sessionIDs) {
    const judge = Judge.make(self)
    const living = new Set<SessionID>()
    const lookAt = (undecided: ReadonlyArray<SessionID>) =>
      Effect.gen(function* () {
        const found = yield* Effect.forEach(Chunk.chunksOf(Chunk.fromIterable(undecided), idsAtOnce), (ids) =>
          run("read the owner", OwnerRows.selectOwners(readSql, [...ids]))
        )
        const now = yield* Clock.currentTimeNanos
        return found.flat().flatMap((row) => {
          const standing = judge(row, now)
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

/** Asks another process to stop, and waits until it has. */
const makeRequestStop = (
  sql: SqlClient.SqlClient,
  readSql: SqlClient.SqlClient,
  self: Judge.Self
): Service["requestStop"] =>
  Effect.fnUntraced(function* (sessionID, token, activityID) {
    yield* run("ask the owner to stop", OwnerRows.askToStop(sql, sessionID, token, activityID))
    const working = Effect.map(
      run("read the owner", look(readSql, sessionID, Judge.make(self))),
      ({ found, standing }) =>
        standing !== "free" && found?.owner_id === token.ownerID && found.owner_epoch === token.epoch
    )
    const goesOn =
      activityID === undefined
        ? Effect.succeed(true)
        : Effect.map(
            run("read the activity", OwnerRows.selectRunning(readSql, sessionID, activityID)),
            (rows) => rows.length > 0
          )
    yield* Effect.repeat(
      Effect.zipWith(working, goesOn, (owned, going) => owned && going),
      { schedule: lookAgain, until: (busy) => !busy }
    )
  })

const make = Effect.fnUntraced(function* (options: OwnerOptions) {
  const sql = yield* SqlClient.SqlClient
  const readSql = yield* ReadSql
  const process = options.process ?? OwnerID.make()
  const held = new Map<SessionID, number>()
  const kept = yield* KeptSessions.make({ sql, readSql }, held, options.keepMs ?? 0)
  const self: Judge.Self = { process, ownerID: process.ownerID(), held }
  const leaseMs = Lease.clamp(options.leaseMs ?? Lease.standardMs)
  const renew = yield* makeRenew(sql, self.ownerID, leaseMs)
  const owned = makeOwned(readSql, self)

  const foreign: Service["foreign"] = (sessionID) =>
    Effect.map(run("read the owner", look(readSql, sessionID, Judge.make(self))), ({ found, standing }) =>
      standing === "free" || found === undefined || found.owner_id === null || found.owner_id === self.ownerID
        ? Option.none()
        : Option.some({ ownerID: found.owner_id, epoch: found.owner_epoch })
    )

  return SessionOwner.of({
    ...makeAcquire({ sql, readSql }, self, leaseMs, kept)(makeHold(held, leaseMs, renew, kept)),
    foreign,
    requestStop: makeRequestStop(sql, readSql, self),
    owned,
    isOwned: (sessionID) => Effect.map(owned([sessionID]), (living) => living.has(sessionID))
  })
})

/** Stores ownership in the database. */
export const layer = (options: OwnerOptions = {}) => Layer.scoped(SessionOwner, make(options))
