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
  FiberRef,
  HashMap,
  Layer,
  Option,
  Schedule,
  type Scope
} from "effect"
import { type HandedOver, handedOverIn } from "../domain/HandedOver.ts"
import type { SessionID } from "../domain/Identifiers.ts"
import { type LogUnavailable, OwnerLost, type OwnerToken } from "../log/EventLog.ts"
import { unavailable } from "../log/EventRow.ts"
import { ReadSql } from "../storage/Database.ts"
import { onClose } from "../support/Closing.ts"
import { loggedOnce } from "../support/LoggedOnce.ts"
import { type Steps, written } from "../storage/Steps.ts"
import { retryBusy } from "../storage/Transaction.ts"
import * as SessionRows from "../store/SessionRows.ts"
import type { Standing } from "../store/SessionStore.ts"
import { Moves, type Service as Hints } from "./Moves.ts"
import * as OwnerID from "./OwnerID.ts"
import * as OwnerRows from "./OwnerRows.ts"
import { type Ownership, SessionBusy, SessionOwner } from "./SessionOwner.ts"

// Keeps a session for a moment after its work, so that the process's next work needs no write. A kept session is not
// renewed; other processes get it when the moment is over, or the process closes.

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
  readonly release: (sessionID: SessionID, token: OwnerToken, next?: HandedOver) => Effect.Effect<void>
}

export interface Connections {
  readonly sql: SqlClient.SqlClient
  readonly readSql: SqlClient.SqlClient
}

interface KeptSession {
  readonly token: OwnerToken
  /** The end of its moment, in milliseconds of the clock. */
  readonly until: number
  timer?: Fiber.RuntimeFiber<void>
}

/** Kept sessions whose moments end within so many milliseconds are released together. */
const together = 250

/** Keeps sessions for `keepMs`; closing the scope releases them. `held` has the sessions that this process works on. */
const makeKeptSessions = Effect.fnUntraced(function* (
  { readSql, sql }: Connections,
  held: Map<SessionID, number>,
  keepMs: number,
  moves: Hints
): Effect.fn.Return<KeptSessions, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const readStanding = SessionRows.standing(readSql)
  const kept = new Map<SessionID, KeptSession>()

  const release: KeptSessions["release"] = (sessionID, token, next) =>
    Effect.suspend(() => {
      if (held.get(sessionID) === token.epoch) held.delete(sessionID)
      return Effect.ignoreLogged(
        Effect.zipRight(
          write("release the session", sql, () => OwnerRows.releaseOwnership(sessionID, token, next)),
          next === undefined ? Effect.void : moves.tell
        )
      )
    })

  const releaseAll = (all: ReadonlyArray<readonly [SessionID, KeptSession]>) =>
    Effect.suspend(() => {
      for (const [id] of all) kept.delete(id)
      // In the order of ids, in which every transaction locks several heads.
      const ordered = all.toSorted(([a], [b]) => (a < b ? -1 : 1))
      return all.length === 0
        ? Effect.void
        : Effect.ignoreLogged(
            write("release the sessions", sql, function* () {
              for (const [id, { token }] of ordered) yield* OwnerRows.releaseOwnership(id, token)
            })
          )
    })

  const keep: KeptSessions["keep"] = (sessionID, token) =>
    Effect.gen(function* () {
      if (keepMs === 0) return yield* release(sessionID, token)
      const now = yield* Clock.currentTimeMillis
      const entry: KeptSession = { token, until: now + keepMs }
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

/** Writes in the next commit, with the appends and the other writes that wait for it. */
const write = <A>(operation: string, sql: SqlClient.SqlClient, steps: () => Steps<A>) =>
  Effect.mapError(written(sql, steps), unavailable(operation))

/** Reads the row of one session and judges it. */
const look = (sql: SqlClient.SqlClient, sessionID: SessionID, judge: OwnerRows.Judge) =>
  Effect.gen(function* () {
    const [found] = yield* OwnerRows.selectOwners(sql, [sessionID])
    const standing: OwnerRows.ClaimState = found === undefined ? "free" : judge(found, yield* Clock.currentTimeNanos)
    return { found, standing }
  })

type Heard = Either.Either<string | undefined, OwnerLost>

/** Keeps the latest news for an owner until it asks. A queue takes several kilobytes for each session. */
const makeHeard = () => {
  let latest: Heard | undefined
  let asked: ((heard: Heard) => void) | undefined
  const next = Effect.async<string | undefined, OwnerLost>((resume) => {
    const before = latest
    latest = undefined
    if (before !== undefined) return resume(before)
    asked = resume
    return Effect.sync(() => void (asked = undefined))
  })
  const hear = (heard: Heard): void => {
    const give = asked
    asked = undefined
    if (give === undefined) latest = heard
    else give(heard)
  }
  return { hear, next }
}

/** A session that this process owns, and what its owner hears with each renewal. */
interface Lease {
  readonly token: OwnerToken
  readonly hear: (heard: Heard) => void
}

interface Renewals {
  readonly begin: (sessionID: SessionID, lease: Lease) => Effect.Effect<void>
  readonly end: (sessionID: SessionID, lease: Lease) => void
}

/**
 * Renews the leases of all sessions at each heartbeat, in one fiber and one transaction: each commit waits for the disk. A renewal
 * that fails is tried again at the next heartbeat: the lease outlasts several.
 */
const makeRenewals = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  ownerID: string,
  leaseMs: number
): Effect.fn.Return<Renewals, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const renewing = new Map<SessionID, Lease>()
  let beats = false
  const end: Renewals["end"] = (sessionID, lease) => {
    if (renewing.get(sessionID) === lease) renewing.delete(sessionID)
  }

  /** Heartbeats are at multiples of their period: the time that a renewal takes delays no later one. */
  const untilHeartbeat = Effect.flatMap(Clock.currentTimeNanos, (now) => {
    const every = OwnerRows.heartbeatMs(leaseMs)
    return Effect.sleep(Duration.millis(every - ((Number(now) / 1e6) % every)))
  })

  const renew = (all: ReadonlyMap<SessionID, Lease>) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      write("renew the leases", sql, function* () {
        const rows = yield* OwnerRows.renewLeases(sql, [...all.keys()], ownerID, { now, leaseMs })
        return new Map(rows.map((row) => [row.session_id, row]))
      })
    )

  const heartbeat = Effect.gen(function* () {
    const all = new Map(renewing)
    const rows = yield* renew(all)
    for (const [sessionID, lease] of all) {
      const { hear, token } = lease
      const row = rows.get(sessionID)
      if (row?.owner_epoch !== token.epoch) {
        end(sessionID, lease)
        hear(Either.left(new OwnerLost({ sessionID, ...token })))
      } else if (row.interrupt_epoch === token.epoch) {
        hear(Either.right(row.interrupt_activity ?? undefined))
      }
    }
  })

  const logged = loggedOnce("the leases could not be renewed yet")
  /** Stops when no session is left to renew. */
  const beating: Effect.Effect<void> = Effect.flatMap(untilHeartbeat, () => {
    beats = renewing.size > 0
    // Also after a defect: all sessions depend on this fiber.
    return beats ? Effect.zipRight(logged(heartbeat, undefined), beating) : Effect.void
  })

  return {
    begin: (sessionID, lease) =>
      Effect.suspend(() => {
        renewing.set(sessionID, lease)
        if (beats) return Effect.void
        beats = true
        // The annotations are those of one session.
        const unnamed = Effect.locally(beating, FiberRef.currentLogAnnotations, HashMap.empty())
        return Effect.forkIn(Effect.interruptible(unnamed), scope)
      }),
    end
  }
})

/** Holds sessions: renews their leases until the scope closes, then keeps or releases them. */
const makeHold =
  (sql: SqlClient.SqlClient, held: Map<SessionID, number>, renewals: Renewals, keeping: KeptSessions, moves: Hints) =>
  (
    sessionID: SessionID,
    token: OwnerToken,
    { handed, kept }: Pick<Ownership, "handed" | "kept">
  ): Effect.Effect<Ownership, never, Scope.Scope> =>
    Effect.gen(function* () {
      held.set(sessionID, token.epoch)
      let next = handed
      const { hear, next: stopRequested } = makeHeard()
      const lease: Lease = { token, hear }
      // The lease is renewed until the session is released, also during the cleanup before.
      yield* onClose((exit) => {
        renewals.end(sessionID, lease)
        return Exit.isSuccess(exit) ? keeping.keep(sessionID, token) : keeping.release(sessionID, token, next)
      })
      yield* renewals.begin(sessionID, lease)
      const handOver: Ownership["handOver"] = (next) =>
        Effect.zipLeft(
          write("hand the session over", sql, () => OwnerRows.releaseOwnership(sessionID, token, next)),
          moves.tell
        )
      const begun = () => void (next = undefined)
      return { token, kept, handed, begun, handOver, stopRequested }
    })

/** Acquires sessions: claims a free one, or waits for its owner. */
const makeAcquire = (
  { readSql, sql }: Connections,
  self: OwnerRows.Self,
  held: Map<SessionID, number>,
  leaseMs: number,
  kept: KeptSessions
) => {
  /** Claims the session if it is free. The epoch grows, so the previous owner's appends are refused from now on. */
  const claim = (sessionID: SessionID, judge: OwnerRows.Judge) =>
    Effect.clockWith((clock) => {
      let taken: number | undefined
      let handed: HandedOver | undefined
      const forget = () => {
        if (taken !== undefined && held.get(sessionID) === taken) held.delete(sessionID)
      }
      return write("claim the session", sql, function* () {
        const found = yield* OwnerRows.ownerOf(sql, sessionID)
        // This write runs again when its connection broke: its first run may have been committed.
        if (taken !== undefined && found?.owner_id === self.ownerID && found.owner_epoch === taken) {
          return { token: { ownerID: self.ownerID, epoch: taken }, handed }
        }
        forget()
        const standing = found === undefined ? "free" : judge(found, clock.unsafeCurrentTimeNanos())
        if (standing !== "free") return { token: undefined, standing, holder: found?.owner_id ?? "" }
        const now = clock.unsafeCurrentTimeMillis()
        handed = handedOverIn(found?.owner_id ?? null)
        const epoch = yield* OwnerRows.takeOwnership(sessionID, self.ownerID, { now, leaseMs })
        // At once: another claim of this process may wait in the same commit.
        held.set(sessionID, (taken = epoch))
        return { token: { ownerID: self.ownerID, epoch }, handed }
      }).pipe(Effect.tapErrorCause(() => Effect.sync(forget)))
    })

  return (hold: ReturnType<typeof makeHold>): Pick<Service, "acquire" | "acquireUnlessBusy"> => {
    const attempt = (sessionID: SessionID, judge: OwnerRows.Judge) =>
      Effect.uninterruptible(
        Effect.gen(function* () {
          const again = yield* kept.take(sessionID)
          if (again !== undefined) {
            return yield* hold(sessionID, again.token, { kept: again.standing, handed: undefined })
          }
          const claimed = yield* claim(sessionID, judge)
          if (claimed.token === undefined) return claimed
          return yield* hold(sessionID, claimed.token, { kept: undefined, handed: claimed.handed })
        })
      )

    /** Waits by reading, which takes no lock. If several processes see the session free, the first claim succeeds. */
    const untilStanding = (
      sessionID: SessionID,
      judge: OwnerRows.Judge,
      until: (standing: OwnerRows.ClaimState) => boolean
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
          if (standing === "owned" || handedOverIn(row.owner_id) !== undefined) living.add(row.session_id)
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
  const moves = yield* Moves
  const process = options.process ?? OwnerID.make()
  const held = new Map<SessionID, number>()
  const kept = yield* makeKeptSessions({ sql, readSql }, held, options.keepMs ?? 0, moves)
  const self: OwnerRows.Self = { process, ownerID: process.ownerID(), held, seen: new Map() }
  const leaseMs = OwnerRows.clamp(options.leaseMs ?? OwnerRows.standardMs)
  const renewals = yield* makeRenewals(sql, self.ownerID, leaseMs)
  const owned = makeOwned(readSql, self)

  const foreign: Service["foreign"] = (sessionID) =>
    Effect.map(run("read the owner", look(readSql, sessionID, OwnerRows.makeJudge(self))), ({ found, standing }) =>
      standing === "free" || found === undefined || found.owner_id === null || found.owner_id === self.ownerID
        ? Option.none()
        : Option.some({ ownerID: found.owner_id, epoch: found.owner_epoch })
    )

  return SessionOwner.of({
    ...makeAcquire({ sql, readSql }, self, held, leaseMs, kept)(makeHold(sql, held, renewals, kept, moves)),
    foreign,
    requestStop: makeRequestStop(sql, readSql, self),
    owned,
    handedOver: Effect.map(run("read the owners", OwnerRows.selectHandedOver(readSql)), (rows) =>
      rows.map(({ session_id }) => session_id)
    ),
    isOwned: (sessionID) => Effect.map(owned([sessionID]), (living) => living.has(sessionID))
  })
})

export const layer = (options: OwnerOptions = {}) => Layer.scoped(SessionOwner, make(options))
