/**
 * Decides which process may run a session. This file is the contract; `SqlSessionOwner.ts` implements it. One row holds
 * the owner, an epoch that grows with every change of owner, and a lease. The owner renews the lease while it owns the
 * session; its appends carry the epoch and are refused once another process has taken over. A lease ends when the owner
 * releases the lease, when an observer saw no renewal for the length of the lease (`OwnerRows.ts`), or immediately when
 * the owner's process is known to be gone (`OwnerID.ts`). Another process asks the owner to stop through the same row.
 * Spec: EX-O1..EX-O8.
 */
import { Context, type Effect, type Option, type Scope } from "effect"
import type { HandedOver } from "../domain/HandedOver.ts"
import type { SessionID } from "../domain/Identifiers.ts"
import type { SessionBusy } from "../domain/SessionBusy.ts"
import type { LogUnavailable, OwnerLost, OwnerToken } from "../log/EventLog.ts"
import type { Standing } from "../store/SessionStore.ts"

export { SessionBusy } from "../domain/SessionBusy.ts"

/** A session that this process owns, for the life of the scope. */
export interface Ownership {
  readonly token: OwnerToken
  /**
   * The session, as it was read when this process took it again: it was kept since the last work of this process, which
   * succeeded, so that nothing is left open in it. Undefined: it was claimed.
   */
  readonly kept: Standing | undefined
  /** What the owner before handed over. A scope that closes with a failure before `begun` hands it on. */
  readonly handed: HandedOver | undefined
  readonly begun: () => void
  /** Releases the session for the next owner, which goes on there. */
  readonly handOver: (next: HandedOver) => Effect.Effect<void, LogUnavailable>
  /**
   * Completes when another process asks this owner to stop. With an activity id, only that activity is to stop; run the
   * effect again to wait for the next request. Fails when another process has taken over the session.
   */
  readonly stopRequested: Effect.Effect<string | undefined, OwnerLost>
}

/** What `SessionOwner` offers. */
export interface Service {
  /**
   * Owns the session until the scope closes. Waits for a living owner to finish. An implementation may keep the
   * session for a moment after a scope that closed with a success (EX-O10).
   */
  readonly acquire: (sessionID: SessionID) => Effect.Effect<Ownership, LogUnavailable, Scope.Scope>
  /** Like `acquire`, but fails once the owner is known to be alive. A silent owner is replaced after its lease. */
  readonly acquireUnlessBusy: (
    sessionID: SessionID
  ) => Effect.Effect<Ownership, SessionBusy | LogUnavailable, Scope.Scope>
  /** The owner if it is another process and not known to be gone. Returns at once: it may be alive. */
  readonly foreign: (sessionID: SessionID) => Effect.Effect<Option.Option<OwnerToken>, LogUnavailable>
  /** Asks this owner to stop, and waits until it, or its activity, has ended. */
  readonly requestStop: (
    sessionID: SessionID,
    token: OwnerToken,
    activityID?: string
  ) => Effect.Effect<void, LogUnavailable>
  /**
   * Returns the sessions that a living process owns, including this one, or that wait for their next owner. Looks until
   * each is decided: immediately if the owner is this process or is gone, at the owner's next renewal, or at the latest
   * after a lease of silence.
   */
  readonly owned: (sessionIDs: ReadonlyArray<SessionID>) => Effect.Effect<ReadonlySet<SessionID>, LogUnavailable>
  /** The sessions that were handed over and wait for their next owner. */
  readonly handedOver: Effect.Effect<ReadonlyArray<SessionID>, LogUnavailable>
  /** `owned` for one session. */
  readonly isOwned: (sessionID: SessionID) => Effect.Effect<boolean, LogUnavailable>
}

/**
 * Records which process owns which session.
 *
 * @example
 * ```ts
 * import { type Identifiers, SessionOwner } from "@daybook/log"
 * import { Effect } from "effect"
 *
 * // Whether a living process runs the session, this one or another.
 * export const isRunning = (sessionID: Identifiers.SessionID) =>
 *   Effect.flatMap(SessionOwner.SessionOwner, (owners) => owners.isOwned(sessionID))
 * ```
 */
export class SessionOwner extends Context.Tag("@daybook/log/SessionOwner")<SessionOwner, Service>() {}
