/**
 * Takes back the last prompt of a session: the files that its turns changed, then the history, under the session's
 * ownership while nothing runs. Spec: specs/undo.md UN-13, UN-26..UN-30.
 */
import { Effect, Struct } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { PromptInput } from "@daybook/log/domain/Values"
import { draft } from "@daybook/log/events/SessionEvents"
import { EventLog, type OwnerToken } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import type { Undoable } from "@daybook/log/store/UndoRows"
import { type Restored, Snapshots, type Turn } from "../snapshot/Snapshots.ts"
import type { Existing } from "./Existing.ts"
import { SessionExecution } from "./SessionExecution.ts"
import { NothingToUndo, type Undone, type UndoOptions } from "./UndoOptions.ts"

/** Retries of a move after lost races; bounded, to end a livelock. */
const attempts = 100

/** Paths in an event, and in an account. */
const listed = { event: 100, account: 10_000 }

const promptFields = Struct.keys(PromptInput.fields)

/** What became of the files; `problem` says why they were left. */
type Files = Restored & { readonly problem?: string }

const untouched: Files = { outcomes: [], before: undefined, after: undefined }

const turnsOf = ({ changes }: Undoable): ReadonlyArray<Turn> =>
  changes.flatMap(({ data: { after, before } }) =>
    before === undefined || after === undefined ? [] : [{ before, after }]
  )

const accountOf = ({ changes, place }: Undoable, { outcomes, problem }: Files) => {
  const count = (wanted: string) => outcomes.filter(({ action }) => action === wanted).length
  const problems = changes.flatMap(({ data }) => (data.problem === undefined ? [] : [data.problem]))
  return {
    ...(place.parentID === undefined ? {} : { leafID: place.parentID }),
    files: outcomes.slice(0, listed.account),
    counts: {
      restored: count("restored"),
      recreated: count("recreated"),
      deleted: count("deleted"),
      already: count("already"),
      conflicts: count("conflict")
    },
    omitted: [...new Set(changes.flatMap(({ data }) => data.omitted ?? []))],
    problems: [...new Set(problem === undefined ? problems : [...problems, problem])]
  } satisfies Partial<Undone>
}

/** The events of an undo: what happened to files, if anything did, then the move of the leaf. */
const draftsOf = ({ leafID, place }: Undoable, { before, outcomes }: Files) => {
  const paths = (isLeft: boolean) =>
    outcomes.flatMap(({ action, path }) => (action !== "already" && (action === "conflict") === isLeft ? [path] : []))
  const [files, left] = [paths(false), paths(true)]
  const restored = draft("session.next.files.restored", {
    ...(before === undefined ? {} : { before }),
    ...(leafID === undefined ? {} : { leafID }),
    files: files.slice(0, listed.event),
    left: left.slice(0, listed.event),
    counts: { changed: files.length, conflicts: left.length }
  })
  const moved = draft("session.next.leaf.moved", {
    ...(place.parentID === undefined ? {} : { messageID: place.parentID }),
    path: place.before
  })
  return outcomes.length === 0 ? ([moved] as const) : ([restored, moved] as const)
}

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
        yield* log.append(sessionID, draftsOf(found, files), { expectedSeq, owner })
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
        ...accountOf(found, files),
        ...(yield* promptOf(sessionID, found))
      }
      return account
    }, Effect.uninterruptible)
    return yield* dryRun ? work(undefined) : execution.atRest(sessionID, work)
  })

  return { undo: ({ sessionID, ...options }: UndoOptions) => changes(undo)(sessionID, options) }
})
