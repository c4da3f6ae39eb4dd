/**
 * Writes the index of one house from the sessions' entries in the ledger. Spec: FI-80 in specs/files.md (IX-1..IX-4).
 */
import { Effect, Schema } from "effect"
import { LedgerFailed } from "./Errors.ts"
import { type IndexEntry, indexFiles } from "./IndexFiles.ts"
import * as Keeper from "./Keeper.ts"
import { type FileRecord, recordOf } from "./Ledger.ts"
import { isPermitted } from "./Modes.ts"

const Entry = Schema.parseJson(
  Schema.Struct({
    session: Schema.String,
    cwd: Schema.String,
    updatedAtMs: Schema.Number,
    position: Schema.Number,
    createdPosition: Schema.Number,
    runStartedPosition: Schema.optionalWith(Schema.Number, { exact: true })
  })
)
const decode = Schema.decode(Entry)

/** Whether the files of the index are unchanged since they were written. */
export const intact = Effect.fn("IndexWriter.intact")(function* (
  keeper: Keeper.Keeper,
  path: string
): Effect.fn.Return<boolean, Keeper.KeepError> {
  const { files, ledger, modes } = keeper
  const records = new Map(yield* ledger.files(path))
  if (!(yield* files.reach(path))) return false
  yield* Keeper.ensureFolders(keeper, { path, records }, records.keys())
  for (const [name, { next, stamp }] of records) {
    const found = yield* files.stamp(`${path}/${name}`)
    if (found?.text !== stamp || next !== null || !isPermitted(modes, path, found)) return false
  }
  return true
})

/** Adopts unrecorded index files that match the entries of adopted sessions. */
const adopt = Effect.fnUntraced(function* (
  { files, ...keeper }: Keeper.Keeper,
  folder: Keeper.Folder,
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
      return content !== undefined && Keeper.same(Keeper.sumOf(content), sum)
    })
    if (isOurs) found.set(name, recordOf(sum, stamp))
  }
  yield* Keeper.remember({ files, ...keeper }, folder, found)
})

/**
 * Brings the index in this folder up to date. `anew` compares contents instead of stamps. `adopted` holds the former
 * entries of adopted sessions.
 */
export const write = Effect.fn("IndexWriter.write")(function* (
  keeper: Keeper.Keeper,
  path: string,
  { adopted = [], anew = false }: { readonly anew?: boolean; readonly adopted?: ReadonlyArray<IndexEntry> } = {}
): Effect.fn.Return<void, Keeper.KeepError> {
  const { files, ledger } = keeper
  const entries = yield* Effect.forEach(yield* ledger.entries(path), (text) => decode(text)).pipe(
    Effect.mapError((cause) => new LedgerFailed({ path: files.root, cause }))
  )
  const records = new Map(
    [...(yield* ledger.files(path))].map(([name, record]) => [name, anew ? { ...record, stamp: "?" } : record])
  )
  const folder: Keeper.Folder = { path, records }
  const wanted = indexFiles(entries)
  if (wanted.size > 0) yield* Keeper.ensureFolders(keeper, folder, wanted.keys())
  else if (!(yield* files.reach(path))) {
    return yield* Keeper.remember(keeper, folder, new Map([...records.keys()].map((name) => [name, undefined])))
  }
  yield* Keeper.sweepLeftovers(keeper, folder)
  if (adopted.length > 0) yield* adopt(keeper, folder, entries, adopted)
  const sums = new Map([...wanted].map(([name, content]) => [name, Keeper.sumOf(content)]))
  const inspection = yield* Keeper.inspect(keeper, folder, [...records.keys(), ...wanted.keys()], sums)
  yield* Keeper.bring(keeper, folder, wanted, inspection)
  if (wanted.size > 0) return
  for (const empty of [`${path}/by-cwd`, path]) yield* files.removeEmpty(empty)
})
