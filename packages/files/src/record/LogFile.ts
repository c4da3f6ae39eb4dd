/**
 * Appends to a file of whole lines. Its record says how far it was written. Surplus bytes after a kill are ours if they
 * are the start of the next rows, and are then completed in place. Spec: FI-75 in specs/files.md (FL-7).
 */
import { crc32 } from "node:zlib"
import { Effect, Stream } from "effect"
import type { Stamp } from "../disk/SafeFiles.ts"
import type { Source } from "../render/Pieces.ts"
import type { FileRecord } from "./Records.ts"
import { type Folder, same, type Tracker, type TrackError } from "./TrackedFolder.ts"

/** The state of a log: ours, with surplus bytes that are the next ones; missing; or changed. */
export type LogState = { readonly is: "ours"; readonly surplus: number } | { readonly is: "missing" | "changed" }

/** The record of an empty log. */
export const empty: FileRecord = { size: 0, crc: 0, stamp: "", next: null, lasting: true }

const recorded = (folder: Folder, name: string): FileRecord => folder.records.get(name) ?? empty

/** Compares the log with its record, and bytes after the recorded end with the next ones. */
export const look = <E>(
  { files }: Tracker,
  folder: Folder,
  name: string,
  next: Source<E>
): Effect.Effect<LogState, TrackError | E> =>
  Effect.gen(function* () {
    const path = `${folder.path}/${name}`
    const record = recorded(folder, name)
    const found = yield* files.stamp(path)
    if (found === undefined) return record.stamp === "" ? { is: "ours", surplus: 0 } : { is: "missing" }
    if (found.text === record.stamp && found.size === record.size) return { is: "ours", surplus: 0 }
    if (found.size < record.size) return { is: "changed" }
    if (found.text !== record.stamp && !same(yield* files.sum(path, record.size), record)) return { is: "changed" }
    const surplus = found.size - record.size
    const end = record.size + Math.min(surplus, next.size)
    let at = record.size
    if (at === end) return { is: "ours", surplus }
    const ours = yield* next.bytes.pipe(
      Stream.takeWhile(() => at < end),
      Stream.mapEffect((piece) =>
        Effect.gen(function* () {
          const bytes = piece.subarray(0, end - at)
          const there = yield* files.readRange(path, at, bytes.length)
          at += bytes.length
          return Buffer.compare(there, bytes) === 0
        })
      ),
      Stream.runFoldWhile(
        true,
        (right) => right,
        (_, right) => right
      )
    )
    return ours ? { is: "ours", surplus } : { is: "changed" }
  })

/** Appends the bytes that are not there yet; returns the new record. */
export const append = <E>(
  { files, modes }: Tracker,
  folder: Folder,
  name: string,
  next: Source<E>,
  surplus: number
): Effect.Effect<FileRecord, TrackError | E> =>
  Effect.gen(function* () {
    const [path, mode] = [`${folder.path}/${name}`, modes.file(folder.path)]
    let { crc, size } = recorded(folder, name)
    const there = size + Math.min(surplus, next.size)
    let stamp: Stamp | undefined
    yield* Stream.runForEach(next.bytes, (bytes) =>
      Effect.gen(function* () {
        const rest = bytes.subarray(Math.min(Math.max(0, there - size), bytes.length))
        crc = crc32(bytes, crc)
        size += bytes.length
        if (rest.length > 0) stamp = yield* files.append(path, rest, mode)
      })
    )
    stamp ??= yield* files.append(path, "", mode)
    return { size, crc, stamp: stamp.text, next: null, lasting: true }
  })
