/**
 * What the operations of an exporter share: its services, what it remembers of one record, and how the work of one
 * session fails without stopping the others. Spec: FI-80, FI-86 in specs/files.md (IX-1..IX-4).
 */
import { Effect, Schema } from "effect"
import type { EventLog } from "@daybook/log/log/EventLog"
import { type ExportError, type Finding, LedgerFailed } from "../layout/Errors.ts"
import { isPermitted } from "../layout/Layout.ts"
import { type FileRecord, recordOf } from "../record/Records.ts"
import * as TrackedFolder from "../record/TrackedFolder.ts"
import type { Tracker } from "../record/TrackedFolder.ts"
import { type IndexEntry, indexFiles } from "../render/Values.ts"
import type { WriteError } from "../session/CachedSession.ts"
import type { SessionWriter } from "../session/SessionWriter.ts"

// Writes the index of one house from the sessions' entries in the ledger.

const Entry = Schema.parseJson(
  Schema.Struct({
    session: Schema.String,
    cwd: Schema.String,
    updatedAtMs: Schema.Finite,
    position: Schema.Finite,
    createdPosition: Schema.Finite,
    runStartedPosition: Schema.optionalWith(Schema.Finite, { exact: true })
  })
)
const decode = Schema.decode(Entry)

/** Whether the files of the index are unchanged since they were written. */
export const intactIndex = Effect.fn("IndexWriter.intact")(function* (tracker: TrackedFolder.Tracker, path: string) {
  const { files, ledger, modes } = tracker
  const records = new Map(yield* ledger.files(path))
  if (!(yield* files.reach(path))) return false
  yield* TrackedFolder.ensureFolders(tracker, { path, records }, records.keys())
  for (const [name, { next, stamp }] of records) {
    const found = yield* files.stamp(`${path}/${name}`)
    if (found?.text !== stamp || next !== null || !isPermitted(modes, path, found)) return false
  }
  return true
})

/** Adopts unrecorded index files that match the entries of adopted sessions. */
const adopt = Effect.fnUntraced(function* (
  { files, ...tracker }: TrackedFolder.Tracker,
  folder: TrackedFolder.Folder,
  entries: ReadonlyArray<IndexEntry>,
  adopted: ReadonlyArray<IndexEntry>
) {
  const before = new Map(adopted.map((entry) => [entry.session, entry]))
  // Either no session of the house was recorded, or the others have their recorded entries.
  const candidates = [adopted, entries.map((entry) => before.get(entry.session) ?? entry)].map(indexFiles)
  const found = new Map<string, FileRecord>()
  for (const name of new Set(candidates.flatMap((candidate) => [...candidate.keys()]))) {
    const path = `${folder.path}/${name}`
    const stamp = yield* files.stamp(path)
    if (stamp === undefined || folder.records.get(name)?.stamp === stamp.text) continue
    const sum = yield* files.sum(path)
    const isOurs = candidates.some((candidate) => {
      const content = candidate.get(name)
      return content !== undefined && TrackedFolder.same(TrackedFolder.sumOf(content), sum)
    })
    if (isOurs) found.set(name, recordOf(sum, stamp))
  }
  yield* TrackedFolder.remember({ files, ...tracker }, folder, found)
})

/** Updates the index in this folder. `anew` compares contents. `adopted`: former entries of adopted sessions. */
const write = Effect.fn("IndexWriter.write")(function* (
  tracker: TrackedFolder.Tracker,
  path: string,
  { adopted = [], anew = false }: { readonly anew?: boolean; readonly adopted?: ReadonlyArray<IndexEntry> } = {}
) {
  const { files, ledger } = tracker
  const entries = yield* Effect.forEach(yield* ledger.entries(path), (text) => decode(text)).pipe(
    Effect.mapError((cause) => new LedgerFailed({ path: files.root, cause }))
  )
  const records = new Map(
    [...(yield* ledger.files(path))].map(([name, record]) => [name, anew ? { ...record, stamp: "?" } : record])
  )
  const folder: TrackedFolder.Folder = { path, records }
  const wanted = indexFiles(entries)
  if (wanted.size > 0) yield* TrackedFolder.ensureFolders(tracker, folder, wanted.keys())
  else if (!(yield* files.reach(path))) {
    return yield* TrackedFolder.remember(tracker, folder, new Map([...records.keys()].map((name) => [name, undefined])))
  }
  yield* TrackedFolder.sweepLeftovers(tracker, folder)
  if (adopted.length > 0) yield* adopt(tracker, folder, entries, adopted)
  const sums = new Map([...wanted].map(([name, content]) => [name, TrackedFolder.sumOf(content)]))
  const inspection = yield* TrackedFolder.inspect(tracker, folder, [...records.keys(), ...wanted.keys()], sums)
  yield* TrackedFolder.bring(tracker, folder, wanted, inspection)
  if (wanted.size > 0) return
  for (const empty of [`${path}/by-cwd`, path]) yield* files.removeEmpty(empty)
})

/** An exporter's services and state. The state is that of one record, so each record needs a new one. */
export interface Work {
  readonly tracker: Tracker
  readonly log: EventLog["Type"]
  readonly writer: SessionWriter
  /** Sessions whose failure was reported; each is reported once. */
  readonly said: Set<string>
  /** Whether the log was followed to its end. */
  caught: boolean
  /** Whether the folders of removed sessions that the record does not list were searched for. */
  looked: boolean
  /** Indexes found under the root without a recorded session; kept until their first write. */
  foundIndexes: ReadonlyArray<string>
  /** The cursor of the background sweep: after a session, or after an index once all sessions are checked. */
  round: { readonly sessions: string } | { readonly indexes: string }
}

export const tell = (work: Work, finding: Finding & { readonly sessionID: string }) => {
  if (work.said.has(finding.sessionID)) return Effect.void
  work.said.add(finding.sessionID)
  return work.tracker.report(finding)
}

const recovered = (work: Work, id: string) =>
  Effect.map(work.tracker.ledger.session(id), (record) => {
    if (record?.behind !== true) work.said.delete(id)
  })

/**
 * Runs `use`, the work of one session. If its folder is refused, an event cannot be read or was pruned, or it is being
 * removed, the session is marked behind and retried later; other sessions continue.
 */
export const attempt = (
  work: Work,
  id: string,
  use: Effect.Effect<void, WriteError>
): Effect.Effect<boolean, ExportError> => {
  const later = Effect.zipRight(
    Effect.sync(() => work.writer.forget(id)),
    Effect.as(work.tracker.ledger.setBehind(id), false)
  )
  const refused = (kind: "refused" | "behind" | "pruned", path: string, details: string) =>
    Effect.zipRight(tell(work, { kind, path, sessionID: id, details }), later)
  return Effect.as(use, true).pipe(
    Effect.tap(work.said.has(id) ? recovered(work, id) : Effect.void),
    Effect.catchTags({
      SessionNotFound: () => later,
      CursorAhead: () => later,
      PathRefused: (error) => refused("refused", error.path.slice(work.tracker.files.root.length + 1), error.message),
      EventUnreadable: (error) =>
        Effect.flatMap(work.tracker.ledger.session(id), (record) =>
          refused("behind", record?.folder ?? "", error.message)
        ),
      CursorExpired: ({ floor }) =>
        Effect.flatMap(work.tracker.ledger.session(id), (record) =>
          refused("pruned", record?.folder ?? "", prunedText(id, floor))
        )
    }),
    // The cached state may differ from the files.
    Effect.onError(() => Effect.sync(() => work.writer.forget(id)))
  )
}

/** Says that a session's files cannot be rendered. */
const prunedText = (id: string, floor: number): string =>
  `the events of ${id} up to ${floor} were pruned, so its files cannot be written from the log and stay as they are; ` +
  "if prune archived the events, daybook prune --restore FILE puts them back"

/** Writes the indexes; with `anew`, compares contents instead of stamps. */
export const writeIndexes = (work: Work, indexes: Iterable<string>, anew = false) =>
  Effect.forEach(
    new Set(indexes),
    (index) =>
      write(work.tracker, index, { anew, adopted: work.writer.adopted(index) }).pipe(
        Effect.catchTag("PathRefused", (error) =>
          work.tracker.report({
            kind: "refused",
            path: error.path.slice(work.tracker.files.root.length + 1),
            details: error.message
          })
        ),
        Effect.tap(() => Effect.sync(() => work.writer.written(index)))
      ),
    { discard: true }
  )

/** Brings values and context of the sessions up to their logs. */
export const finish = (work: Work, ids: Iterable<string>, atEnd: boolean) =>
  Effect.forEach(new Set(ids), (id) => attempt(work, id, work.writer.finish(id, { atEnd })), { discard: true })

export const flush = (work: Work) =>
  Effect.suspend(() =>
    Effect.forEach(work.writer.waiting(), (id) => attempt(work, id, work.writer.flush(id)), { discard: true })
  )
