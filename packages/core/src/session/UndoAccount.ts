/** What undo and redo say of the files that they restored, for callers and for the log. Pure. Spec: UN-27. */
import { draft } from "@daybook/log/events/SessionEvents"
import type { HistoryPath } from "@daybook/log/domain/HistoryPath"
import type { MessageID } from "@daybook/log/domain/Identifiers"
import type { Restored } from "../snapshot/Snapshots.ts"
import type { Undone } from "./UndoOptions.ts"

/** Paths in an event, and in an account. */
export const listed = { event: 100, account: 10_000 }

/** What became of the files; `problem` says why they were left. */
export type Files = Restored & { readonly problem?: string }

export const untouched: Files = { outcomes: [], before: undefined, after: undefined }

/** The paths that were left, or those that were not. Paths without work are neither. */
export const pathsOf = ({ outcomes }: Files, isLeft: boolean): ReadonlyArray<string> =>
  outcomes.flatMap(({ action, path }) => (action !== "already" && (action === "conflict") === isLeft ? [path] : []))

/** The account, without what only one of undo and redo says. */
export const accountOf = ({ outcomes, problem }: Files, problems: ReadonlyArray<string> = []) => {
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

/** A move of the leaf. */
export interface Way {
  readonly from: MessageID | undefined
  readonly to: MessageID | undefined
  /** The history that continues. */
  readonly path: HistoryPath
  /** The undo that a redo takes back. */
  readonly redoes?: number
}

/** The events of an undo or a redo: what happened to files, then the move of the leaf. */
export const draftsOf = (files: Files, { from, path, redoes, to }: Way) => {
  const [changed, left] = [pathsOf(files, false), pathsOf(files, true)]
  const restored = draft("session.next.files.restored", {
    ...(files.before === undefined ? {} : { before: files.before }),
    ...(files.after === undefined ? {} : { after: files.after }),
    ...(redoes === undefined ? {} : { redoes }),
    ...(from === undefined ? {} : { leafID: from }),
    files: changed.slice(0, listed.event),
    left: left.slice(0, listed.event),
    counts: { changed: changed.length, conflicts: left.length }
  })
  const moved = draft("session.next.leaf.moved", { ...(to === undefined ? {} : { messageID: to }), path })
  return [restored, moved] as const
}
