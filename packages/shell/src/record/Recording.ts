/**
 * Records what happens in one shell, whatever the database does. A fact that cannot be stored waits, and is stored before anything
 * else runs in the shell: what has run is reported, and what cannot be recorded does not run. Spec: SL-580, SL-581.
 */
import { Effect } from "effect"
import type { Unrecorded } from "../domain/ExecResult.ts"
import type { ShellFact } from "./ShellFact.ts"
import type { ShellRecordFailed } from "./ShellRecord.ts"

/** What a result says after a failure of the record. */
export const unrecorded = (failure: ShellRecordFailed | undefined): Unrecorded =>
  failure === undefined ? {} : { recorded: false, not_recorded: failure.details }

export interface Recording {
  /** Stores what waits. Fails as long as that is not possible: nothing may run then. */
  readonly ready: Effect.Effect<void, ShellRecordFailed>
  /** Stores what has happened. Returns why it is not stored yet. */
  readonly add: (fact: ShellFact) => Effect.Effect<ShellRecordFailed | undefined>
}

/** Records one fact after the other: the caller writes in turn. */
export const make = (write: (fact: ShellFact) => Effect.Effect<void, ShellRecordFailed>): Recording => {
  let waiting: ReadonlyArray<ShellFact> = []
  const ready: Recording["ready"] = Effect.suspend(() => {
    const [first, ...rest] = waiting
    if (first === undefined) return Effect.void
    // An interruption between the two would store the fact twice.
    const stored = Effect.uninterruptible(Effect.tap(write(first), () => Effect.sync(() => (waiting = rest))))
    return Effect.zipRight(stored, ready)
  })
  return {
    ready,
    add: (fact) =>
      Effect.suspend(() => (waiting.length === 0 ? write(fact) : Effect.zipRight(ready, write(fact)))).pipe(
        Effect.as(undefined),
        Effect.catchAll((failure) =>
          Effect.sync(() => {
            // What does not fit its schema never will.
            if (failure.reason !== "invalid") waiting = [...waiting, fact]
            return failure
          })
        )
      )
  }
}
