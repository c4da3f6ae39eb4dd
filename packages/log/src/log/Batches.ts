/**
 * Commits a batch of append requests and gives each its result. Usually one transaction; after a refusal or a database
 * failure a few more. Spec: LG-6, LG-21, LG-22.
 */
import * as SqlError from "@effect/sql/SqlError"
import { Array as Arr, Cause, Effect, Exit, Option } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { immediately, isBusy, reasonOf, retryBusy } from "../storage/Transaction.ts"
import {
  halves,
  isRefused,
  type Request,
  type Result,
  type Target,
  toResult,
  writeApart,
  writeBatch
} from "./Appends.ts"
import type { Attempt } from "./DirectBatch.ts"
import { unavailable } from "./EventRow.ts"
import type { Suspects } from "./Suspects.ts"

/** Commits requests, and returns their results in order. `first`: why a first transaction was rolled back. */
export type CommitBatch = (
  requests: NonEmptyReadonlyArray<Request>,
  first?: Attempt
) => Effect.Effect<ReadonlyArray<Result>>

/** Broken invariant: the batch writer must answer every request. */
export const unanswered: Result = Exit.die("the writer left an append unanswered")

/** How batches are written: each function is one transaction. */
const makeTransactions = (target: Target) => {
  /** One write transaction, which starts again while the database is busy. */
  const transaction = <A, E>(work: Effect.Effect<A, E>) =>
    retryBusy(
      immediately(target.sql)(
        Effect.suspend(() => {
          target.types.begin()
          return work
        })
      )
    )

  /** All requests in one transaction, unless the first attempt has decided. */
  const together = (requests: NonEmptyReadonlyArray<Request>, first: Attempt | undefined) => {
    const written = transaction(writeBatch(target, requests))
    return first === undefined ? written : Effect.catchIf(first, isBusy, () => written)
  }

  const alone = (request: Request, first?: Attempt): Effect.Effect<Result> =>
    together([request], first).pipe(
      Effect.matchCause({
        onFailure: (cause) => toResult(request.sessionID, cause),
        onSuccess: ([result]) => result ?? unanswered
      })
    )

  /** Writes the groups in order and leaves out the refused requests. */
  const apart = (groups: ReadonlyArray<NonEmptyReadonlyArray<Request>>) =>
    transaction(
      Effect.map(
        Effect.forEach(groups, (group) => writeApart(target, group)),
        Arr.flatten
      )
    )

  /** Writes all requests; if one is refused, again by halves. */
  const whole = (requests: NonEmptyReadonlyArray<Request>, first: Attempt | undefined) =>
    together(requests, first).pipe(
      Effect.catchAllCause((cause) => (isRefused(cause) ? apart(halves(requests)) : Effect.failCause(cause)))
    )

  /** Writes the suspects after the others, each separately, and returns the results in request order. */
  const split = (
    requests: NonEmptyReadonlyArray<Request>,
    trusted: ReadonlyArray<Request>,
    suspected: ReadonlyArray<Request>
  ) =>
    Effect.map(
      apart([trusted, ...suspected.map(Arr.of)].filter((group) => Arr.isNonEmptyReadonlyArray(group))),
      (results): ReadonlyArray<Result> => {
        const found = new Map([...trusted, ...suspected].map((request, index) => [request, results[index]]))
        return requests.map((request) => found.get(request) ?? unanswered)
      }
    )

  return { alone, split, whole }
}

export const make = (target: Target, suspects: Suspects): CommitBatch => {
  const { alone, split, whole } = makeTransactions(target)
  return (requests, first) => {
    if (requests.length === 1) return Effect.map(alone(requests[0], first), Arr.of)
    const [trusted, suspected] = Arr.partition(requests, ({ sessionID }) => suspects.has(sessionID))
    return Effect.catchAllCause(
      suspected.length === 0 ? whole(requests, first) : split(requests, trusted, suspected),
      (cause): Effect.Effect<ReadonlyArray<Result>> => {
        // Busy: retrying one by one would only repeat the wait.
        const failure = Option.getOrUndefined(Cause.failureOption(cause))
        return failure instanceof SqlError.SqlError && reasonOf(failure) === "busy"
          ? Effect.succeed(requests.map(() => Exit.fail(unavailable("append")(failure))))
          : Effect.forEach(requests, (request) => alone(request))
      }
    )
  }
}
