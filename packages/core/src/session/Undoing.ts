/** Takes back the last prompt and the files that its turns changed. Spec: UN-13, UN-26..UN-32, UN-50..UN-53. */
import { Effect } from "effect"
import type { HistoryPath } from "@daybook/log/domain/HistoryPath"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { draft } from "@daybook/log/events/SessionEvents"
import { EventLog, type OwnerToken } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { present } from "@daybook/log/support/Optional"
import type { Redoable, Undoable } from "@daybook/log/store/UndoRows"
import { SnapshotUnavailable } from "../snapshot/SnapshotError.ts"
import { type RestoreAccount, type RestoreRequest, Snapshots, type Turn } from "../snapshot/Snapshots.ts"
import { uncontested } from "../support/Contested.ts"
import { makePlaces } from "./Branching.ts"
import type { Existing } from "./Placement.ts"
import { SessionExecution } from "./SessionExecution.ts"
import { NothingToRedo, NothingToUndo, RedoRefused, type Undone, type UndoOptions } from "./SessionOptions.ts"

// What undo and redo say of the files that they restored, for callers and for the log.

const listed = { event: 100, account: 10_000 }

/** What became of the files; `problem` says why they were left. */
type Files = RestoreAccount & { readonly problem?: string }

const untouched: Files = { outcomes: [], before: undefined, after: undefined }

/** Paths that were skipped, or paths that were restored. Paths without work are neither. */
const pathsOf = ({ outcomes }: Files, isLeft: boolean): ReadonlyArray<string> =>
  outcomes.flatMap(({ action, path }) => (action !== "already" && (action === "conflict") === isLeft ? [path] : []))

/** The account, without what only one of undo and redo says. */
const accountOf = ({ outcomes, problem }: Files, problems: ReadonlyArray<string> = []) => {
  const count = (wanted: string) => outcomes.filter(({ action }) => action === wanted).length
  return {
    files: outcomes.slice(0, listed.account),
    counts: {
      restored: count("restored"),
      recreated: count("recreated"),
      deleted: count("deleted"),
      already: count("already"),
      conflicts: count("conflict")
    },
    problems: [...new Set(problem === undefined ? problems : [...problems, problem])]
  } satisfies Partial<Undone>
}

interface LeafMove {
  readonly from: MessageID | undefined
  readonly to: MessageID | undefined
  /** The history that continues. */
  readonly path: HistoryPath
  /** The undo that a redo takes back. */
  readonly redoes?: number
}

/** The events of an undo or a redo: what happened to files, then the move of the leaf. */
const draftsOf = (files: Files, { from, path, redoes, to }: LeafMove) => {
  const [changed, left] = [pathsOf(files, false), pathsOf(files, true)]
  const restored = draft("session.next.files.restored", {
    ...present({ before: files.before, after: files.after, redoes, leafID: from }),
    files: changed.slice(0, listed.event),
    left: left.slice(0, listed.event),
    counts: { changed: changed.length, conflicts: left.length }
  })
  const moved = draft("session.next.leaf.moved", { ...(to === undefined ? {} : { messageID: to }), path })
  return [restored, moved] as const
}

// Takes back files and history while nothing runs: restores the files, then moves the leaf.

/** Without snapshots only the history moves, and the account says so. */
const isGone = (error: unknown): error is SnapshotUnavailable =>
  error instanceof SnapshotUnavailable && (error.reason === "no-git" || error.reason === "missing")

interface Direction<Found, Missing, Refused, Unread> {
  readonly find: Effect.Effect<Found, Missing>
  readonly restore: (found: Found, request: Omit<RestoreRequest, "turns">) => Effect.Effect<Files, Refused>
  readonly wayOf: (found: Found) => LeafMove
  /** What else the account says. */
  readonly tell: (found: Found) => Effect.Effect<Pick<Undone, "omitted" | "problems" | "prompt">, Unread>
}

const makeTakingBack = Effect.gen(function* () {
  const log = yield* EventLog
  const store = yield* SessionStore
  const execution = yield* SessionExecution

  return <Found, Missing, Refused, Unread>(
    sessionID: SessionID,
    { dryRun = false, force = false }: Omit<UndoOptions, "sessionID">,
    { find, restore, tell, wayOf }: Direction<Found, Missing, Refused, Unread>
  ) => {
    /** Stores it. A conflict means that an event came between: look again. */
    const move = (owner: OwnerToken, files: Files) =>
      uncontested(
        Effect.gen(function* () {
          const expectedSeq = yield* log.latest(sessionID)
          yield* log.append(sessionID, draftsOf(files, wayOf(yield* find)), { expectedSeq, owner })
        })
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

const turnsOf = ({ changes }: Undoable): ReadonlyArray<Turn> =>
  changes.flatMap(({ data: { after, before } }) =>
    before === undefined || after === undefined ? [] : [{ before, after }]
  )

export const make = Effect.fnUntraced(function* ({ changes }: Existing) {
  const store = yield* SessionStore
  const snapshots = yield* Snapshots
  const takeBack = yield* makeTakingBack
  const { promptOf } = yield* makePlaces

  /** What the account says beside the files: the prompt, and turns without a snapshot. */
  const tell = (sessionID: SessionID) =>
    Effect.fnUntraced(function* ({ changes, place }: Undoable) {
      return {
        omitted: [...new Set(changes.flatMap(({ data }) => data.omitted ?? []))],
        problems: changes.flatMap(({ data }) => (data.problem === undefined ? [] : [data.problem])),
        ...(yield* promptOf(sessionID, place))
      }
    })

  const undo = Effect.fn("Sessions.undo")((sessionID: SessionID, options: Omit<UndoOptions, "sessionID">) =>
    takeBack(sessionID, options, {
      find: Effect.filterOrFail(
        store.undoable(sessionID),
        (found) => found !== undefined,
        () => new NothingToUndo({ sessionID })
      ),
      restore: (found, request) => {
        const turns = turnsOf(found)
        return turns.length === 0 ? Effect.succeed(untouched) : snapshots.restore({ ...request, turns })
      },
      wayOf: ({ leafID, place }) => ({ from: leafID, to: place.parentID, path: place.before }),
      tell: tell(sessionID)
    })
  )

  return { undo: ({ sessionID, ...options }: UndoOptions) => changes(undo)(sessionID, options) }
})

// Takes back the last undo of a session: a redo is the undo of an undo.

export const makeRedoing = Effect.fnUntraced(function* ({ changes }: Existing) {
  const store = yield* SessionStore
  const snapshots = yield* Snapshots
  const takeBack = yield* makeTakingBack

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
