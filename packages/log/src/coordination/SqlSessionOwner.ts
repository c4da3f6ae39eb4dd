/** Implements session ownership on SQL. Contract: `SessionOwner.ts`. Spec: EX-O10, EX-O11. */
import * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import {
  Chunk,
  Clock,
  Duration,
  Effect,
  Either,
  Exit,
  Fiber,
  Layer,
  Option,
  Queue,
  Ref,
  Schedule,
  type Scope
} from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import { type LogUnavailable, OwnerLost, type OwnerToken } from "../log/EventLog.ts"
import { unavailable } from "../log/EventRow.ts"
import { ReadSql } from "../storage/Database.ts"
import { immediately, retryBusy } from "../storage/Transaction.ts"
import * as SessionRows from "../store/SessionRows.ts"
import type { Standing } from "../store/SessionStore.ts"
import * as OwnerID from "./OwnerID.ts"
import * as OwnerRows from "./OwnerRows.ts"
import { type Ownership, SessionBusy, SessionOwner } from "./SessionOwner.ts"

// Keeps sessions for a moment after their work is done, so that the next work of the same process takes them again
// without a write. A kept session is not renewed, and it counts as free in this process; other processes get it when
// the moment is over, or the process closes.

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

export interface Connections {
  readonly sql: SqlClient.SqlClient
  readonly readSql: SqlClient.SqlClient
}

/** Keeps sessions for `keepMs`; closing the scope releases them. `held` has the sessions that this process works on. */
const makeKeptSessions = Effect.fnUntraced(function* (
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

type Service = SessionOwner["Type"]

/** How often a process that waits for an owner looks again. */
const lookAgain = Schedule.spaced(Duration.millis(OwnerRows.lookMs))

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
const look = (sql: SqlClient.SqlClient, sessionID: SessionID, judge: OwnerRows.Judge) =>
  Effect.gen(function* () {
    const [found] = yield* OwnerRows.selectOwners(sql, [sessionID])
    const standing: OwnerRows.Standing = found === undefined ? "free" : judge(found, yield* Clock.currentTimeNanos)
    return { found, standing }
  })

type Heard = Either.Either<string | undefined, OwnerLost>

/** Holds sessions: renews their leases until the scope closes, then keeps or releases them. */
const makeHold = (sql: SqlClient.SqlClient, held: Map<SessionID, number>, leaseMs: number, keeping: KeptSessions) => {
  /** Renews the lease, and returns whether this epoch, or which of its activities, is asked to stop. */
  const renew = (sessionID: SessionID, token: OwnerToken) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const mine = yield* run("renew the lease", OwnerRows.renewLease(sql, sessionID, token, { now, leaseMs }))
      if (mine === undefined) return yield* new OwnerLost({ sessionID, ...token })
      return mine.interrupt_epoch === token.epoch
        ? { asked: true, activity: mine.interrupt_activity ?? undefined }
        : { asked: false, activity: undefined }
    })

  /** Renews until the session is lost. A failed renewal is retried: the lease outlasts several. */
  const renewals = (sessionID: SessionID, own: Ref.Ref<Held>, heard: Queue.Enqueue<Heard>) =>
    Effect.flatMap(Ref.get(own), ({ token }) =>
      renew(sessionID, token).pipe(
        Effect.tap(() => Effect.flatMap(Clock.currentTimeNanos, (renewed) => Ref.set(own, { token, renewed }))),
        Effect.flatMap(({ activity, asked }) =>
          asked ? Queue.offer(heard, Either.right(activity)) : Effect.succeed(false)
        ),
        Effect.catchTag("LogUnavailable", (error) =>
          Effect.annotateLogs(Effect.logWarning("the lease could not be renewed yet", error), { sessionID })
        ),
        Effect.zipRight(Effect.sleep(Duration.millis(OwnerRows.heartbeatMs(leaseMs)))),
        Effect.forever,
        Effect.catchTag("OwnerLost", (lost) => Queue.offer(heard, Either.left(lost)))
      )
    )

  /** The time until the next renewal: a kept session is renewed as if it had never been put aside. */
  const untilRenewal = ({ renewed }: Held) =>
    Effect.map(Clock.currentTimeNanos, (now) =>
      Duration.millis(Math.max(0, OwnerRows.heartbeatMs(leaseMs) - Number(now - renewed) / 1e6))
    )

  return (sessionID: SessionID, taken: Held, kept: Ownership["kept"]): Effect.Effect<Ownership, never, Scope.Scope> =>
    Effect.gen(function* () {
      const { token } = taken
      const own = yield* Ref.make(taken)
      held.set(sessionID, token.epoch)
      yield* Effect.addFinalizer((exit) =>
        Exit.isSuccess(exit)
          ? Effect.flatMap(Ref.get(own), (now) => keeping.keep(sessionID, now))
          : keeping.release(sessionID, token)
      )
      // Only the latest request counts.
      const heard = yield* Queue.sliding<Heard>(1)
      // Forked after the finalizer is added: the lease is renewed until the session is released, during any cleanup
      // before it.
      const later = Effect.delay(renewals(sessionID, own, heard), yield* untilRenewal(taken))
      yield* Effect.forkScoped(Effect.interruptible(later))
      return { token, kept, stopRequested: Effect.flatten(Queue.take(heard)) }
    })
}

/** Acquires sessions: claims a free one, or waits for its owner. */
const makeAcquire = ({ readSql, sql }: Connections, self: OwnerRows.Self, leaseMs: number, kept: KeptSessions) => {
  /** Claims the session if it is free. The epoch grows, so the previous owner's appends are refused from now on. */
  const claim = (sessionID: SessionID, judge: OwnerRows.Judge) =>
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
    const attempt = (sessionID: SessionID, judge: OwnerRows.Judge) =>
      Effect.uninterruptible(
        Effect.gen(function* () {
          const again = yield* kept.take(sessionID)
          if (again !== undefined) return yield* hold(sessionID, again.own, again.standing)
          const claimed = yield* claim(sessionID, judge)
          if (claimed.token === undefined) return claimed
          return yield* hold(sessionID, { token: claimed.token, renewed: yield* Clock.currentTimeNanos }, undefined)
        })
      )

    /** Waits by reading, which takes no lock. If several processes see the session free, the first claim succeeds. */
    const untilStanding = (
      sessionID: SessionID,
      judge: OwnerRows.Judge,
      until: (standing: OwnerRows.Standing) => boolean
    ) =>
      Effect.repeat(run("read the owner", look(readSql, sessionID, judge)), {
        schedule: lookAgain,
        until: ({ standing }) => until(standing)
      })

    return {
      acquire: Effect.fnUntraced(function* (sessionID) {
        const judge = OwnerRows.makeJudge(self)
        for (;;) {
          const result = yield* attempt(sessionID, judge)
          if (result.token !== undefined) return result
          yield* untilStanding(sessionID, judge, (standing) => standing === "free")
        }
      }),
      acquireUnlessBusy: Effect.fnUntraced(function* (sessionID) {
        const judge = OwnerRows.makeJudge(self)
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
const makeOwned = (readSql: SqlClient.SqlClient, self: OwnerRows.Self): Service["owned"] =>
  Effect.fn("SessionOwner.owned")(function* (sessionIDs) {
    const judge = OwnerRows.makeJudge(self)
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
      yield* Effect.sleep(Duration.millis(OwnerRows.lookMs))
      undecided = yield* lookAt(undecided)
    }
    return living
  })

/** Asks another process to stop, and waits until it has. */
const makeRequestStop = (
  sql: SqlClient.SqlClient,
  readSql: SqlClient.SqlClient,
  self: OwnerRows.Self
): Service["requestStop"] =>
  Effect.fnUntraced(function* (sessionID, token, activityID) {
    yield* run("ask the owner to stop", OwnerRows.askToStop(sql, sessionID, token, activityID))
    const working = Effect.map(
      run("read the owner", look(readSql, sessionID, OwnerRows.makeJudge(self))),
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
  const kept = yield* makeKeptSessions({ sql, readSql }, held, options.keepMs ?? 0)
  const self: OwnerRows.Self = { process, ownerID: process.ownerID(), held }
  const leaseMs = OwnerRows.clamp(options.leaseMs ?? OwnerRows.standardMs)
  const owned = makeOwned(readSql, self)

  const foreign: Service["foreign"] = (sessionID) =>
    Effect.map(run("read the owner", look(readSql, sessionID, OwnerRows.makeJudge(self))), ({ found, standing }) =>
      standing === "free" || found === undefined || found.owner_id === null || found.owner_id === self.ownerID
        ? Option.none()
        : Option.some({ ownerID: found.owner_id, epoch: found.owner_epoch })
    )

  return SessionOwner.of({
    ...makeAcquire({ sql, readSql }, self, leaseMs, kept)(makeHold(sql, held, leaseMs, kept)),
    foreign,
    requestStop: makeRequestStop(sql, readSql, self),
    owned,
    isOwned: (sessionID) => Effect.map(owned([sessionID]), (living) => living.has(sessionID))
  })
})

/** Stores ownership in the database. */
export const layer = (options: OwnerOptions = {}) => Layer.scoped(SessionOwner, make(options))
