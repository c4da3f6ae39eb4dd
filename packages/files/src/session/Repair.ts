/**
 * Repairs a session's folder: renders missing or changed logs and blobs again from the session's log, and restores
 * permissions. Spec: FI-71..FI-75 in specs/files.md.
 */
import { Effect, Stream } from "effect"
import type { EventLog, ReadError } from "@daybook/log/log/EventLog"
import { isPermitted } from "../layout/Modes.ts"
import { recordOf } from "../record/Ledger.ts"
import * as LogFile from "../record/LogFile.ts"
import * as TrackedFolder from "../record/TrackedFolder.ts"
import { linesFrom, readerOf, type Source } from "../render/Pieces.ts"
import * as Rendering from "../render/Rendering.ts"
import { type LogName, piecesOf } from "../render/Rendering.ts"
import { blobFile } from "../render/SessionContext.ts"
import type { Known, WriteError } from "./CachedSession.ts"
import type { SessionCache } from "./SessionCache.ts"

export type Repair = ReturnType<typeof make>

/** Repairs the folders of cached sessions. */
export const make = (tracker: TrackedFolder.Tracker, log: EventLog["Type"], { replay }: SessionCache) => {
  const { files, modes } = tracker

  /** Renders a log up to the session's recorded event into a temporary file, and replaces the log if it differs. */
  const restore = Effect.fnUntraced(function* (
    session: Known,
    name: LogName,
    found: "missing" | "changed" | "unknown"
  ) {
    const { folder, record } = session
    const path = `${folder.path}/${name}`
    yield* Effect.scoped(
      Effect.gen(function* () {
        const replacement = yield* files.begin(path, modes.file(folder.path))
        yield* replay(record.id, Rendering.initial, record.seq, (added) =>
          Stream.runForEach(linesFrom(piecesOf(added, name), readerOf(log, record.id)).bytes, replacement.write)
        )
        const sum = replacement.sum()
        if (found === "unknown") {
          const stamp = yield* files.stamp(path)
          if (stamp !== undefined) {
            const there = yield* files.sum(path)
            if (TrackedFolder.same(there, sum) && isPermitted(modes, path, stamp)) {
              return yield* TrackedFolder.remember(tracker, folder, new Map([[name, recordOf(sum, stamp, true)]]))
            }
            const written = folder.records.get(name)
            if (!TrackedFolder.same(there, sum) && !TrackedFolder.same(there, written))
              yield* TrackedFolder.setAside(tracker, folder, name)
          }
        } else if (found === "changed") yield* TrackedFolder.setAside(tracker, folder, name)
        else yield* TrackedFolder.report(tracker, folder, name, "missing", "the file was gone; it is written again")
        const stamp = yield* replacement.place
        yield* TrackedFolder.remember(tracker, folder, new Map([[name, recordOf(sum, stamp, true)]]))
      })
    )
  })

  /** Repairs the log if needed; returns how many of the next bytes it already holds. */
  const mend = Effect.fnUntraced(function* (session: Known, name: LogName, next: Source<ReadError>, atEnd: boolean) {
    const state = yield* LogFile.look(tracker, session.folder, name, next)
    if (state.is === "ours" && !(atEnd && state.surplus > next.size)) return state.surplus
    yield* restore(session, name, state.is === "ours" ? "changed" : state.is)
    return 0
  })

  /** Writes the blobs that rows name, each once. */
  const keepBlobs = Effect.fnUntraced(function* (
    session: Known,
    blobs: Rendering.Added["blobs"],
    wanted: (name: string) => boolean
  ) {
    for (const blob of blobs) {
      const name = blobFile(blob.hash)
      if (!wanted(name)) continue
      const record = session.folder.records.get(name)
      if (record !== undefined && record.stamp !== "") {
        // The pack wrote it; now it must also outlive the pack.
        if (!record.lasting) {
          yield* TrackedFolder.remember(tracker, session.folder, new Map([[name, { ...record, lasting: true }]]))
        }
        continue
      }
      const bytes = blob.bytes()
      const content = new Map([[name, bytes]])
      const inspection = yield* TrackedFolder.inspect(
        tracker,
        session.folder,
        [name],
        new Map([[name, TrackedFolder.sumOf(bytes)]])
      )
      yield* TrackedFolder.bring(tracker, session.folder, content, inspection, () => true, true)
      // The pack may have written it.
      const there = session.folder.records.get(name)
      if (there?.lasting === false) {
        yield* TrackedFolder.remember(tracker, session.folder, new Map([[name, { ...there, lasting: true }]]))
      }
    }
  })

  /** Restores a log's permissions. */
  const permitLog = Effect.fnUntraced(function* ({ folder }: Known, name: LogName) {
    const path = `${folder.path}/${name}`
    const record = folder.records.get(name)
    const stamp = yield* files.stamp(path)
    if (record === undefined || stamp === undefined) return
    const permitted = isPermitted(modes, path, stamp)
    if (permitted && (stamp.text === record.stamp || stamp.size !== record.size)) return
    const now = permitted ? stamp : yield* files.permit(path, modes.file(path), modes.group(path))
    if (!permitted) {
      yield* TrackedFolder.report(
        tracker,
        folder,
        name,
        "mode",
        "the file's permissions were changed; they were restored"
      )
    }
    // `mend` has compared the content.
    if (now.size === record.size) {
      yield* TrackedFolder.remember(tracker, folder, new Map([[name, { ...record, stamp: now.text }]]))
    }
  })

  /** Writes missing or changed blobs again from the log; returns those that were set aside. */
  const restoreBlobs = Effect.fnUntraced(function* (
    session: Known,
    { foreign }: TrackedFolder.Inspection,
    broken: ReadonlySet<string>
  ): Effect.fn.Return<ReadonlySet<string>, WriteError> {
    const blobs = new Set([...broken].filter((name) => name.startsWith(blobFile(""))))
    const aside = new Set<string>()
    if (blobs.size === 0) return aside
    const { folder, record } = session
    for (const name of blobs) {
      const file = folder.records.get(name)
      if (!foreign.has(name) || file?.lasting !== true) continue
      yield* TrackedFolder.setAside(tracker, folder, name)
      yield* TrackedFolder.remember(tracker, folder, new Map([[name, { ...file, stamp: "" }]]))
      aside.add(name)
    }
    yield* replay(record.id, Rendering.initial, record.seq, (added) =>
      keepBlobs(session, added.blobs, (name) => blobs.has(name))
    )
    return aside
  })

  return { restore, mend, keepBlobs, permitLog, restoreBlobs }
}
