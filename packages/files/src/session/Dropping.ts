/**
 * Removes the files of a session that was removed or has another address. Each step can be killed and repeated. Spec:
 * FI-81, FI-82 in specs/files.md.
 */
import { Effect } from "effect"
import type { SafeFiles } from "../disk/SafeFiles.ts"
import type { FileRecord } from "../record/Records.ts"
import * as TrackedFolder from "../record/TrackedFolder.ts"
import { isLog } from "../render/Rendering.ts"
import { contextFolders, contextPrefix } from "../render/SessionContext.ts"
import { forget, type Writer } from "./Writer.ts"

/**
 * Whether the file holds the recorded or the intended content; for a log, its recorded beginning counts. Undefined if
 * it is absent.
 */
const isOurs = Effect.fnUntraced(function* (files: SafeFiles, path: string, name: string, record: FileRecord) {
  const found = yield* files.stamp(path)
  if (found === undefined) return undefined
  if (found.text === record.stamp) return true
  if (isLog(name)) return TrackedFolder.same(yield* files.sum(path, record.size), record)
  const sum = yield* files.sum(path)
  return TrackedFolder.same(sum, record) || TrackedFolder.same(sum, record.next)
})

/** Removes one file of a removed session. A refused path is reported and left, and does not stop the others. */
const removeFile = (tracker: TrackedFolder.Tracker, folder: TrackedFolder.Folder, name: string, record: FileRecord) =>
  Effect.gen(function* () {
    const path = `${folder.path}/${name}`
    if (!(yield* tracker.files.reach(path.slice(0, path.lastIndexOf("/"))))) return
    const ours = yield* isOurs(tracker.files, path, name, record)
    if (ours === true) yield* tracker.files.remove(path)
    else if (ours === false) yield* TrackedFolder.setAside(tracker, folder, name)
  }).pipe(
    Effect.catchTag("PathRefused", (error) => TrackedFolder.report(tracker, folder, name, "refused", error.message))
  )

/** Removes the session's own files, and then its record. */
export const drop = Effect.fnUntraced(function* (
  writer: Writer,
  id: string
): Effect.fn.Return<void, TrackedFolder.TrackError> {
  const { tracker } = writer
  const { files, ledger } = tracker
  forget(writer, id)
  const record = yield* ledger.session(id)
  if (record === undefined) return
  writer.indexes.add(record.index)
  const folder: TrackedFolder.Folder = {
    path: record.folder,
    sessionID: id,
    records: new Map(yield* ledger.files(record.folder))
  }
  if (yield* files.reach(folder.path)) {
    yield* TrackedFolder.sweepLeftovers(tracker, folder)
    for (const [name, file] of folder.records) yield* removeFile(tracker, folder, name, file)
    for (const path of contextFolders) yield* files.removeFolder(`${folder.path}/${path}`)
    yield* files.removeFolder(`${folder.path}/${contextPrefix}`)
    yield* files.removeEmpty(folder.path)
  }
  yield* ledger.keep(folder.path, new Map([...folder.records.keys()].map((name) => [name, undefined])))
  yield* ledger.forget(id)
})
