/**
 * Takes back files and history, as undo and redo do: looks at what there is, restores the files, then moves the leaf, under
 * the session's ownership while nothing runs. `Undoing.ts` and `Redoing.ts` say what is taken back. Spec: UN-26..UN-32.
 */
import { Effect, Schema } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { EventLog, type OwnerToken } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { SnapshotUnavailable } from "../snapshot/SnapshotError.ts"
import type { RestoreRequest } from "../snapshot/Snapshots.ts"
import { SessionExecution } from "./SessionExecution.ts"
import { accountOf, draftsOf, type Files, untouched, type Way } from "./UndoAccount.ts"
import type { Undone, UndoOptions } from "./UndoOptions.ts"

/** Retries of a move after lost races; bounded, to end a livelock. */
const attempts = 100

const isConflict = Schema.is(Schema.Struct({ _tag: Schema.Literal("SeqConflict") }))

/** Without snapshots only the history moves, and the account says so. */
const isGone = (error: unknown): error is SnapshotUnavailable =>
  error instanceof SnapshotUnavailable && (error.reason === "no-git" || error.reason === "missing")

/** One kind of taking back. */
export interface Kind<Found, Missing, Refused, Unread> {
  /** What is taken back. */
  readonly find: Effect.Effect<Found, Missing>
  readonly restore: (found: Found, request: Omit<RestoreRequest, "turns">) => Effect.Effect<Files, Refused>
  readonly wayOf: (found: Found) => Way
  /** What else the account says. */
  readonly tell: (found: Found) => Effect.Effect<Pick<Undone, "omitted" | "problems" | "prompt">, Unread>
}

export const make = Effect.gen(function* () {
  const log = yield* EventLog
  const store = yield* SessionStore
  const execution = yield* SessionExecution

  return <Found, Missing, Refused, Unread>(
    sessionID: SessionID,
    { dryRun = false, force = false }: Omit<UndoOptions, "sessionID">,
    { find, restore, tell, wayOf }: Kind<Found, Missing, Refused, Unread>
  ) => {
    /** Stores it. A conflict means that an event came between: look again. */
    const move = (owner: OwnerToken, files: Files) =>
      Effect.retry(
        Effect.gen(function* () {
          const expectedSeq = yield* log.latest(sessionID)
          yield* log.append(sessionID, draftsOf(files, wayOf(yield* find)), { expectedSeq, owner })
        }),
        { times: attempts, while: (error) => isConflict(error) }
      )

    /** Uninterruptible: the account of what happened to files must be stored. */
    const work = Effect.fnUntraced(function* (owner: OwnerToken | undefined) {
      const found = yield* find
      const { directory } = (yield* store.get(sessionID)).location
      const files = yield* Effect.catchAll(restore(found, { sessionID, directory, force, dryRun }), (error) =>
        isGone(error) ? Effect.succeed<Files>({ ...untouched, problem: error.details }) : Effect.fail(error)
      )
      if (owner !== undefined) yield* move(owner, files)
      const { to } = wayOf(found)
      const { problems, ...more } = yield* tell(found)
      const account: Undone = {
        undone: owner !== undefined,
        ...(to === undefined ? {} : { leafID: to }),
        ...accountOf(files, problems),
        ...more
      }
      return account
    }, Effect.uninterruptible)
    return Effect.suspend(() => (dryRun ? work(undefined) : execution.atRest(sessionID, work)))
  }
})
