/** Writes that another event may come before: each attempt reads the log's end again. */
import { Effect, Predicate } from "effect"

/** Attempts after a lost race; bounded, to end a livelock. */
export const attempts = 100

/** Runs it again while an event came between its read and its write. */
export const uncontested = <A, E, R>(write: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.retry(write, { times: attempts, while: Predicate.isTagged("SeqConflict") })
