/**
 * Takes back the last prompt of a session: the files that its turns changed, then the history, under the session's
 * ownership while nothing runs. Spec: specs/undo.md UN-13, UN-26..UN-30.
 */
import { Effect, Struct } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { PromptInput } from "@daybook/log/domain/Values"
import { EventLog, type OwnerToken } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import type { Undoable } from "@daybook/log/store/UndoRows"
import { Snapshots, type Turn } from "../snapshot/Snapshots.ts"
import type { Existing } from "./Existing.ts"
import { SessionExecution } from "./SessionExecution.ts"
import { accountOf, draftsOf, type Files, untouched } from "./UndoAccount.ts"
import { NothingToUndo, type Undone, type UndoOptions } from "./UndoOptions.ts"

/** Retries of a move after lost races; bounded, to end a livelock. */
const attempts = 100

const promptFields = Struct.keys(PromptInput.fields)

const turnsOf = ({ changes }: Undoable): ReadonlyArray<Turn> =>
  changes.flatMap(({ data: { after, before } }) =>
    before === undefined || after === undefined ? [] : [{ before, after }]
  )

const problemsOf = ({ changes }: Undoable) =>
  changes.flatMap(({ data }) => (data.problem === undefined ? [] : [data.problem]))

const wayOf = ({ leafID, place }: Undoable) => ({ from: leafID, to: place.parentID, path: place.before })

export const make = Effect.fnUntraced(function* ({ changes }: Existing) {
  const log = yield* EventLog
  const store = yield* SessionStore
  const execution = yield* SessionExecution
  const snapshots = yield* Snapshots

  const find = (sessionID: SessionID) =>
    Effect.filterOrFail(
      store.undoable(sessionID),
      (found) => found !== undefined,
      () => new NothingToUndo({ sessionID })
    )

  const promptOf = Effect.fnUntraced(function* (sessionID: SessionID, { place }: Undoable) {
    const message = yield* store.message(sessionID, place.id)
    return message?.type === "user" ? { prompt: Struct.pick(message, ...promptFields) } : {}
  })

  /** Without snapshots only the history goes back, and the account says so. */
  const restoreFiles = Effect.fnUntraced(function* (
    sessionID: SessionID,
    found: Undoable,
    { dryRun, force }: { readonly dryRun: boolean; readonly force: boolean }
  ) {
    const turns = turnsOf(found)
    if (turns.length === 0) return untouched
    const { location } = yield* store.get(sessionID)
    const request = { sessionID, directory: location.directory, turns, force, dryRun }
    return yield* Effect.catchIf(
      snapshots.restore(request),
      ({ reason }) => reason === "no-git" || reason === "missing",
      ({ details }) => Effect.succeed<Files>({ ...untouched, problem: details })
    )
  })

  /** Stores the undo. A conflict means that an event came between: look again. */
  const move = (sessionID: SessionID, owner: OwnerToken, files: Files) =>
    Effect.retry(
      Effect.gen(function* () {
        const expectedSeq = yield* log.latest(sessionID)
        const found = yield* find(sessionID)
        yield* log.append(sessionID, draftsOf(files, wayOf(found)), { expectedSeq, owner })
      }),
      { times: attempts, while: ({ _tag }) => _tag === "SeqConflict" }
    )

  const undo = Effect.fn("Sessions.undo")(function* (
    sessionID: SessionID,
    { dryRun = false, force = false }: Omit<UndoOptions, "sessionID">
  ) {
    /** Uninterruptible: the account of what happened to files must be stored. */
    const work = Effect.fnUntraced(function* (owner: OwnerToken | undefined) {
      const found = yield* find(sessionID)
      const files = yield* restoreFiles(sessionID, found, { dryRun, force })
      if (owner !== undefined) yield* move(sessionID, owner, files)
      const account: Undone = {
        undone: owner !== undefined,
        ...(found.place.parentID === undefined ? {} : { leafID: found.place.parentID }),
        ...accountOf(files, problemsOf(found)),
        omitted: [...new Set(found.changes.flatMap(({ data }) => data.omitted ?? []))],
        ...(yield* promptOf(sessionID, found))
      }
      return account
    }, Effect.uninterruptible)
    return yield* dryRun ? work(undefined) : execution.atRest(sessionID, work)
  })

  return { undo: ({ sessionID, ...options }: UndoOptions) => changes(undo)(sessionID, options) }
})
