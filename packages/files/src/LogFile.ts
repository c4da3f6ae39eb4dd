/**
 * A file that grows by whole lines. Its record says how far it was written; what lies behind that after a kill is ours
 * when it is what was about to be written, and is completed where it stands. Spec: FI-75 in specs/files.md (FL-7).
 */
import { crc32 } from "node:zlib"
import { Effect } from "effect"
import { same, type Folder, type Keeper, type KeepError } from "./Keeper.ts"
import type { FileRecord } from "./Ledger.ts"
import type { Stamp } from "./SafeFiles.ts"

/** How a log is found: in order, with so many bytes behind its record that are the next ones; gone; or not ours. */
export type LogState = { readonly is: "ours"; readonly surplus: number } | { readonly is: "missing" | "changed" }

/** The record of a log that nothing was written to. */
export const empty: FileRecord = { size: 0, crc: 0, stamp: "", next: null, lasting: true }

const recorded = (folder: Folder, name: string): FileRecord => folder.records.get(name) ?? empty

/** Compares the log with its record, and what lies behind that with the bytes that come next. */
export const look = Effect.fnUntraced(function* (
  { files }: Keeper,
  folder: Folder,
  name: string,
  next: Uint8Array
): Effect.fn.Return<LogState, KeepError> {
  const path = `${folder.path}/${name}`
  const record = recorded(folder, name)
  const found = yield* files.stamp(path)
  if (found === undefined) return record.stamp === "" ? { is: "ours", surplus: 0 } : { is: "missing" }
  if (found.text === record.stamp && found.size === record.size) return { is: "ours", surplus: 0 }
  if (found.size < record.size) return { is: "changed" }
  if (found.text !== record.stamp && !same(yield* files.sum(path, record.size), record)) return { is: "changed" }
  const surplus = found.size - record.size
  const length = Math.min(surplus, next.length)
  const there = yield* files.readRange(path, record.size, length)
  return Buffer.compare(there, next.subarray(0, length)) === 0 ? { is: "ours", surplus } : { is: "changed" }
})

/** Adds the bytes, but for those that are there already; gives the new record. */
export const append = Effect.fnUntraced(function* (
  { files, modes }: Keeper,
  folder: Folder,
  name: string,
  next: Uint8Array,
  surplus: number
): Effect.fn.Return<FileRecord, KeepError> {
  const record = recorded(folder, name)
  const rest = next.subarray(Math.min(surplus, next.length))
  const stamp: Stamp = yield* files.append(`${folder.path}/${name}`, rest, modes.file(folder.path))
  return {
    size: record.size + next.length,
    crc: crc32(next, record.crc),
    stamp: stamp.text,
    next: null,
    lasting: true
  }
})
