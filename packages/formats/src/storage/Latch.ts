/** Keeps the first error of a file: every later operation on the file fails with it. Spec: FM-75. */
import { Effect, Option } from "effect"
import { StorageFailed } from "./StorageError.ts"

export interface Latch {
  /** Runs the operation unless an earlier one failed. */
  readonly guard: <A, E, R>(use: Effect.Effect<A, E, R>) => Effect.Effect<A, E | StorageFailed, R>
  readonly error: Effect.Effect<Option.Option<StorageFailed>>
}

/** A latch; `onFirst` runs once, for the error that it keeps. */
export const make = (onFirst: (error: StorageFailed) => Effect.Effect<void> = () => Effect.void): Latch => {
  let first: StorageFailed | undefined
  const keep = (error: unknown) =>
    Effect.suspend(() => {
      if (first !== undefined || !(error instanceof StorageFailed)) return Effect.void
      first = error
      return onFirst(error)
    })
  return {
    guard: <A, E, R>(use: Effect.Effect<A, E, R>) =>
      Effect.suspend((): Effect.Effect<A, E | StorageFailed, R> =>
        first === undefined ? Effect.tapError(use, keep) : Effect.fail(first)
      ),
    error: Effect.sync(() => Option.fromNullable(first))
  }
}

/** A latch that logs its error with the file. */
export const logged = (path: string): Latch =>
  make((error) => Effect.logError(`${path} is not written any more: ${error.message}`))
