/** Repairs a session's folder from its log: logs, blobs and permissions. Spec: FI-71..FI-75 in specs/files.md. */
import { Effect, Stream } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import type { EventLog, ReadError } from "@daybook/log/log/EventLog"
import { isPermitted } from "../layout/Layout.ts"
import { recordOf } from "../record/Records.ts"
import * as TrackedFolder from "../record/TrackedFolder.ts"
import { linesFrom, readerOf, type Source } from "../render/Pieces.ts"
import * as Rendering from "../render/Rendering.ts"
import { type LogName, piecesOf } from "../render/Rendering.ts"
import { blobFile } from "../render/SessionContext.ts"
import { type CachedState, replay } from "./CachedSession.ts"
import type { Writer } from "./Writer.ts"

export type RepairOptions = Pick<Writer, "log" | "tracker">

/** Fails with `CursorExpired` if the session was pruned: its files cannot be rendered again. */
export const isWhole = (log: EventLog["Type"], id: string): Effect.Effect<void, ReadError> =>
  Effect.asVoid(log.read({ sessionID: SessionID.make(id), limit: 1 }))

/** Renders a log up to the session's recorded event into a temporary file, and replaces the log if it differs. */
export const restore = Effect.fnUntraced(function* (
  { log, tracker }: RepairOptions,
  session: CachedState,
  name: LogName,
  found: "missing" | "changed" | "unknown"
) {
  const { files, modes } = tracker
  const { folder, record } = session
  const path = `${folder.path}/${name}`
  yield* Effect.scoped(
    Effect.gen(function* () {
      const replacement = yield* files.begin(path, modes.file(folder.path))
      yield* replay(log, record.id, Rendering.initial, record.seq, (added) =>
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
export const mend = Effect.fnUntraced(function* (
  repair: RepairOptions,
  session: CachedState,
  name: LogName,
  next: Source<ReadError>,
  atEnd: boolean
) {
  const state = yield* TrackedFolder.look(repair.tracker, session.folder, name, next)
  if (state.is === "ours" && !(atEnd && state.surplus > next.size)) return state.surplus
  yield* restore(repair, session, name, state.is === "ours" ? "changed" : state.is)
  return 0
})

/** Writes the blobs that rows name, each once. */
export const keepBlobs = Effect.fnUntraced(function* (
  { tracker }: Pick<RepairOptions, "tracker">,
  session: CachedState,
  blobs: Rendering.RenderedPieces["blobs"],
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

export const permitLog = Effect.fnUntraced(function* (
  { tracker }: Pick<RepairOptions, "tracker">,
  { folder }: CachedState,
  name: LogName
) {
  const { files, modes } = tracker
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

/** Writes missing or changed blobs again from the log; returns the blobs that were set aside. */
export const restoreBlobs = Effect.fnUntraced(function* (
  repair: RepairOptions,
  session: CachedState,
  { foreign }: TrackedFolder.Inspection,
  broken: ReadonlySet<string>
) {
  const blobs = new Set([...broken].filter((name) => name.startsWith(blobFile(""))))
  const aside = new Set<string>()
  if (blobs.size === 0) return aside
  yield* isWhole(repair.log, session.record.id)
  const { folder, record } = session
  for (const name of blobs) {
    const file = folder.records.get(name)
    if (!foreign.has(name) || file?.lasting !== true) continue
    yield* TrackedFolder.setAside(repair.tracker, folder, name)
    yield* TrackedFolder.remember(repair.tracker, folder, new Map([[name, { ...file, stamp: "" }]]))
    aside.add(name)
  }
  yield* replay(repair.log, record.id, Rendering.initial, record.seq, (added) =>
    keepBlobs(repair, session, added.blobs, (name) => blobs.has(name))
  )
  return aside
})
