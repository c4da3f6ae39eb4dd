/**
 * Writes the index of one house from the sessions' entries in the ledger. Spec: FI-80 in specs/files.md (IX-1..IX-4).
 */
import { Effect, Schema } from "effect"
import { LedgerFailed } from "../layout/Errors.ts"
import { isPermitted } from "../layout/Modes.ts"
import { type FileRecord, recordOf } from "../record/Records.ts"
import * as TrackedFolder from "../record/TrackedFolder.ts"
import { type IndexEntry, indexFiles } from "../render/IndexFiles.ts"

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
export const intact = Effect.fn("IndexWriter.intact")(function* (
  tracker: TrackedFolder.Tracker,
  path: string
): Effect.fn.Return<boolean, TrackedFolder.TrackError> {
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

/**
 * Brings the index in this folder up to date. `anew` compares contents instead of stamps. `adopted` holds the former
 * entries of adopted sessions.
 */
export const write = Effect.fn("IndexWriter.write")(function* (
  tracker: TrackedFolder.Tracker,
  path: string,
  { adopted = [], anew = false }: { readonly anew?: boolean; readonly adopted?: ReadonlyArray<IndexEntry> } = {}
): Effect.fn.Return<void, TrackedFolder.TrackError> {
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
