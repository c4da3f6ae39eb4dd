/**
 * Takes back the last undo of a session. A redo is the undo of an undo, so that the same restore decides about each path.
 * Spec: specs/undo.md UN-50..UN-53.
 */
import { Effect } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Redoable } from "@daybook/log/store/UndoRows"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { type RestoreRequest, Snapshots } from "../snapshot/Snapshots.ts"
import type { Existing } from "./Existing.ts"
import * as TakingBack from "./TakingBack.ts"
import { listed, pathsOf, untouched } from "./UndoAccount.ts"
import { NothingToRedo, RedoRefused, type UndoOptions } from "./UndoOptions.ts"

export const make = Effect.fnUntraced(function* ({ changes }: Existing) {
  const store = yield* SessionStore
  const snapshots = yield* Snapshots
  const takeBack = yield* TakingBack.make

  /** The undo to take back, if nothing but undos and redos followed it. */
  const find = Effect.fnUntraced(function* (sessionID: SessionID) {
    const found = yield* store.redoable(sessionID)
    if (found === undefined) return yield* new NothingToRedo({ sessionID })
    if (found.wentOn) return yield* new RedoRefused({ sessionID, reason: "history", paths: [] })
    return found
  })

  const restore = Effect.fnUntraced(function* ({ undo: { data } }: Redoable, given: Omit<RestoreRequest, "turns">) {
    const { after, before } = data
    if (before === undefined) return untouched
    if (after === undefined) return { ...untouched, problem: "there is no snapshot of the files after the undo" }
    const request = { ...given, turns: [{ before, after }] }
    const planned = yield* snapshots.restore({ ...request, dryRun: true })
    if (given.dryRun) return planned
    const paths = pathsOf(planned, true).slice(0, listed.event)
    if (paths.length > 0 && !given.force) {
      return yield* new RedoRefused({ sessionID: given.sessionID, reason: "files", paths })
    }
    return yield* snapshots.restore(request)
  })

  const redo = Effect.fn("Sessions.redo")((sessionID: SessionID, options: Omit<UndoOptions, "sessionID">) =>
    takeBack(sessionID, options, {
      find: find(sessionID),
      restore,
      wayOf: ({ leafID, path, undo }) => ({ from: leafID, to: undo.data.leafID, path, redoes: undo.seq }),
      tell: () => Effect.succeed({ omitted: [], problems: [] })
    })
  )

  return { redo: ({ sessionID, ...options }: UndoOptions) => changes(redo)(sessionID, options) }
})
