/**
 * Writes a batch of appends in one synchronous transaction, without an effect: events, heads, projections and checks.
 * Other hooks and projectors are effects. After a failure `Batches.ts` continues. Spec: LG-47.
 */
import * as SqlError from "@effect/sql/SqlError"
import { Cause, Exit } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { connectionOf, type Statements } from "../storage/Connection.ts"
import { reasonOf } from "../storage/Transaction.ts"
import {
  type BatchError,
  HookFailed,
  hooksAfter,
  isRefusal,
  type Request,
  type Result,
  type Target,
  writeEvents
} from "./Appends.ts"
import * as SqlHook from "./SqlHook.ts"

/** The results of the requests, or why the transaction was rolled back. */
export type Attempt = Exit.Exit<ReadonlyArray<Result>, BatchError>

const isFailure = (thrown: unknown): thrown is BatchError => thrown instanceof SqlError.SqlError || isRefusal(thrown)

const causeOf = (thrown: unknown): Cause.Cause<BatchError> =>
  isFailure(thrown) ? Cause.fail(thrown) : Cause.die(thrown)

/** Returns whether the transaction began. Busy is a failure; what else prevents it is left to the caller. */
const begin = (statements: Statements): Attempt | "begun" | undefined => {
  try {
    statements.run("BEGIN IMMEDIATE", [])
    return "begun"
  } catch (thrown) {
    return thrown instanceof SqlError.SqlError && reasonOf(thrown) === "busy"
      ? Exit.failCause(causeOf(thrown))
      : undefined
  }
}

/** After some errors (disk full) SQLite has already ended the transaction, so there is nothing to roll back. */
const undo = (statements: Statements): void => {
  for (let left = 2; left > 0; left--) {
    try {
      statements.run("ROLLBACK", [])
      return
    } catch {
      // The next transaction rolls this one back if it is still open (ST-16).
    }
  }
}

/** The first refusal of a check, in the order of the requests. */
const refusalOf = (statements: Statements, hooks: ReturnType<typeof hooksAfter>): HookFailed | undefined => {
  const checkOf = SqlHook.checksTogether()
  for (const { events, hook, sessionID } of hooks) {
    const refusal = checkOf(hook)?.(statements, sessionID, events)
    if (refusal !== undefined) return new HookFailed(refusal)
  }
  return undefined
}

/** Commits the batch, or rolls it back. Undefined if it cannot be written this way: nothing was tried then. */
export const attempt = (target: Target, requests: NonEmptyReadonlyArray<Request>): Attempt | undefined => {
  const connection = connectionOf(target.sql)
  if (connection === undefined || connection.isReserved() || target.projectors.length > 0) return undefined
  if (requests.some(({ commit }) => commit !== undefined && SqlHook.checkOf(commit) === undefined)) return undefined
  const { statements } = connection
  const begun = begin(statements)
  if (begun !== "begun") return begun
  try {
    target.types.begin()
    const written = writeEvents(target, statements, requests)
    const refusal = refusalOf(statements, hooksAfter(requests, written))
    if (refusal !== undefined) {
      undo(statements)
      return Exit.fail(refusal)
    }
    statements.run("COMMIT", [])
    return Exit.succeed(written.answers)
  } catch (thrown) {
    undo(statements)
    return Exit.failCause(causeOf(thrown))
  }
}
