/**
 * The index of one agent's or model's sessions, from what the ledger knows of them. Spec: FI-80 in specs/files.md
 * (IX-1..IX-4).
 */
import { Effect, Schema } from "effect"
import { LedgerFailed } from "./Errors.ts"
import { indexFiles } from "./IndexFiles.ts"
import * as Keeper from "./Keeper.ts"
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

/** Whether the files of the index are as they were left. */
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

/** Brings the index in this folder to what its sessions are. `anew`: contents are compared, whatever their stamps say. */
export const write = Effect.fn("IndexWriter.write")(function* (
  keeper: Keeper.Keeper,
  path: string,
  { anew = false }: { readonly anew?: boolean } = {}
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
  const sums = new Map([...wanted].map(([name, content]) => [name, Keeper.sumOf(content)]))
  const inspection = yield* Keeper.inspect(keeper, folder, [...records.keys(), ...wanted.keys()], sums)
  yield* Keeper.bring(keeper, folder, wanted, inspection)
  if (wanted.size > 0) return
  for (const empty of [`${path}/by-cwd`, path]) yield* files.removeEmpty(empty)
})
