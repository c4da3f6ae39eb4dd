/** Describes a kind of event log to the contracts' tests. */
import type { Effect, Layer, Scope } from "effect"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { EventLog } from "../../packages/log/src/log/EventLog.ts"

/** One implementation of `EventLog`, with what the tests need besides it. */
export interface LogStore<R, E> {
  /** For the titles: `memory`, `file`, `postgres`. */
  readonly name: string
  /** A new, empty store. It needs no clock but the test's. */
  readonly layer: Layer.Layer<EventLog | R, E>
  /** Everything that the store keeps, with derived rows, in a fixed order: tests compare it before and after. */
  readonly contents: Effect.Effect<unknown, unknown, EventLog | R>
  /**
   * A new, empty store that several logs write, each with connections of its own, as a process has: the inner effect
   * opens one of them. Without it the tests with several writers do not run.
   */
  readonly shared?: Effect.Effect<Effect.Effect<EventLog["Type"], unknown, Scope.Scope>, unknown, Scope.Scope>
  /** Without it the tests of pruned feeds do not run. */
  readonly retention?: Retention<R>
}

/** How a store removes old events. */
export interface Retention<R> {
  /** Begins a session of so many turns, of more than ten events each. */
  readonly begin: (sessionID: SessionID, turns: number) => Effect.Effect<unknown, unknown, EventLog | R>
  /**
   * Removes the session's events up to the last possible one at or before `to`, by default of all; the inner effect puts
   * them back.
   */
  readonly prune: (
    sessionID: SessionID,
    to?: number
  ) => Effect.Effect<Effect.Effect<unknown, unknown, EventLog | R>, unknown, EventLog | R | Scope.Scope>
}
