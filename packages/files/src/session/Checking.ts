/**
 * Checks whether a session's files are unchanged since they were written, and rewrites them from the log. Spec: FI-64,
 * FI-71, FI-89 in specs/files.md.
 */
import { Effect } from "effect"
import type { SafeFiles } from "../disk/SafeFiles.ts"
import type { Sum } from "../disk/Stamp.ts"
import { isPermitted } from "../layout/Modes.ts"
import type { SessionRecord } from "../record/Records.ts"
import * as TrackedFolder from "../record/TrackedFolder.ts"
import { isLog, logs } from "../render/Rendering.ts"
import { blobFile, contextFolders, contextPrefix } from "../render/SessionContext.ts"
import { advance } from "./Appending.ts"
import type { WriteError } from "./CachedSession.ts"
import * as Repair from "./Repair.ts"
import type * as Writer from "./Writer.ts"

/** Equals no file's content. */
const noContent: Sum = { size: -1, crc: 0 }

/** Removes context folders that became empty. */
export const removeEmptied = (files: SafeFiles, folder: TrackedFolder.Folder) =>
  Effect.forEach(
    contextFolders.filter((path) => ![...folder.records.keys()].some((name) => name.startsWith(`${path}/`))),
    (path) => files.removeFolder(`${folder.path}/${path}`),
    { discard: true }
  )

/** Whether all files of a recorded session are unchanged since they were written. */
export const intact = Effect.fnUntraced(function* (
  { tracker }: Pick<Writer.Writer, "tracker">,
  record: SessionRecord
): Effect.fn.Return<boolean, TrackedFolder.TrackError> {
  const { files, ledger, modes } = tracker
  if (record.behind || record.shown !== record.seq) return false
  const folder = { path: record.folder, records: new Map(yield* ledger.files(record.folder)) }
  if (!(yield* files.reach(`${folder.path}/context`))) return false
  yield* TrackedFolder.sweepLeftovers(tracker, folder)
  yield* TrackedFolder.ensureFolders(tracker, folder, [contextPrefix, ...folder.records.keys()])
  yield* removeEmptied(files, folder)
  for (const [name, { next, size, stamp }] of folder.records) {
    const found = yield* files.stamp(`${folder.path}/${name}`)
    if (found?.text !== stamp || found.size !== size || next !== null) return false
    if (!isPermitted(modes, folder.path, found)) return false
  }
  return true
})

/** Whether the blob's content has the hash in its name. */
const isNamedByContent = Effect.fnUntraced(function* (files: SafeFiles, folder: TrackedFolder.Folder, name: string) {
  const path = `${folder.path}/${name}`
  const found = yield* files.stamp(path)
  return found !== undefined && name === blobFile(`sha256-${yield* files.digest(path, 0, found.size)}`)
})

/** Renders the logs again and replaces those that differ; `finish` does the same for the other files. */
export const rewrite = Effect.fnUntraced(function* (writer: Writer.Writer, id: string): Effect.fn.Return<void, WriteError> {
  yield* advance(writer, id)
  const session = yield* writer.cache.load(id)
  if (session === undefined) return
  for (const name of logs) yield* Repair.restore(writer, session, name, "unknown")
  // Forces a comparison of contents instead of stamps, and a new context.
  for (const [name, record] of session.folder.records) {
    if (isLog(name)) continue
    const unknown = record.lasting && !(yield* isNamedByContent(writer.tracker.files, session.folder, name))
    session.folder.records.set(name, { ...record, ...(unknown ? noContent : {}), stamp: "?" })
  }
  session.record = { ...session.record, shown: -1 }
})
