/**
 * Takes back the last undo of a session: its files, then the history, under the session's ownership while nothing runs.
 * A redo is the undo of an undo, so that the same restore decides about each path. Spec: specs/undo.md UN-50..UN-53.
 */
import { Effect } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { EventLog, type OwnerToken } from "@daybook/log/log/EventLog"
import type { Redoable } from "@daybook/log/store/RedoRows"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { Snapshots } from "../snapshot/Snapshots.ts"
import type { Existing } from "./Existing.ts"
import { SessionExecution } from "./SessionExecution.ts"
import { accountOf, draftsOf, type Files, listed, pathsOf, untouched } from "./UndoAccount.ts"
import { NothingToRedo, RedoRefused, type Undone, type UndoOptions } from "./UndoOptions.ts"

/** Retries after lost races; bounded, to end a livelock. */
const attempts = 100

interface Options {
  readonly dryRun: boolean
  readonly force: boolean
}

export const make = Effect.fnUntraced(function* ({ changes }: Existing) {
  const log = yield* EventLog
  const store = yield* SessionStore
  const execution = yield* SessionExecution
  const snapshots = yield* Snapshots

  /** The undo to take back, if nothing but undos and redos followed it. */
  const find = Effect.fnUntraced(function* (sessionID: SessionID) {
    const found = yield* store.redoable(sessionID)
    if (found === undefined) return yield* new NothingToRedo({ sessionID })
    if (found.wentOn) return yield* new RedoRefused({ sessionID, reason: "history", paths: [] })
    return found
  })

  /** Without the undo's snapshots only the history returns, and the account says so. */
  const restoreFiles = Effect.fnUntraced(function* (
    sessionID: SessionID,
    { undo: { data } }: Redoable,
    { dryRun, force }: Options
  ) {
    const { after, before } = data
    if (before === undefined) return untouched
    if (after === undefined) return { ...untouched, problem: "there is no snapshot of the files after the undo" }
    const { location } = yield* store.get(sessionID)
    const request = { sessionID, directory: location.directory, turns: [{ before, after }], force }
    return yield* Effect.gen(function* () {
      const planned = yield* snapshots.restore({ ...request, dryRun: true })
      if (dryRun) return planned
      const paths = pathsOf(planned, true)
      if (paths.length > 0 && !force) {
        return yield* new RedoRefused({ sessionID, reason: "files", paths: paths.slice(0, listed.event) })
      }
      return yield* snapshots.restore({ ...request, dryRun: false })
    }).pipe(
      Effect.catchIf(
        (error) => error._tag === "SnapshotUnavailable" && (error.reason === "no-git" || error.reason === "missing"),
        ({ message }) => Effect.succeed<Files>({ ...untouched, problem: message })
      )
    )
  })

  /** Stores the redo. A conflict means that an event came between: look again. */
  const move = (sessionID: SessionID, owner: OwnerToken, files: Files) =>
    Effect.retry(
      Effect.gen(function* () {
        const expectedSeq = yield* log.latest(sessionID)
        const { leafID, path, undo } = yield* find(sessionID)
        const way = { from: leafID, to: undo.data.leafID, path, redoes: undo.seq }
        yield* log.append(sessionID, draftsOf(files, way), { expectedSeq, owner })
      }),
      { times: attempts, while: ({ _tag }) => _tag === "SeqConflict" }
    )

  const redo = Effect.fn("Sessions.redo")(function* (
    sessionID: SessionID,
    { dryRun = false, force = false }: Omit<UndoOptions, "sessionID">
  ) {
    /** Uninterruptible: the account of what happened to files must be stored. */
    const work = Effect.fnUntraced(function* (owner: OwnerToken | undefined) {
      const found = yield* find(sessionID)
      const files = yield* restoreFiles(sessionID, found, { dryRun, force })
      if (owner !== undefined) yield* move(sessionID, owner, files)
      const { leafID } = found.undo.data
      const account: Undone = {
        undone: owner !== undefined,
        ...(leafID === undefined ? {} : { leafID }),
        ...accountOf(files),
        omitted: []
      }
      return account
    }, Effect.uninterruptible)
    return yield* dryRun ? work(undefined) : execution.atRest(sessionID, work)
  })

  return { redo: ({ sessionID, ...options }: UndoOptions) => changes(redo)(sessionID, options) }
})
