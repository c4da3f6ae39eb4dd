/**
 * Brings a session's values and context up to its logs, and restores changed files. Spec: FI-70..FI-72, FI-95 in
 * specs/files.md.
 */
import { Effect, Stream } from "effect"
import { EventLog, type ReadError } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { isStored, type Text } from "@daybook/transcript/Fold"
import type { PackState } from "../context/PackState.ts"
import type { Sum } from "../disk/Stamp.ts"
import * as TrackedFolder from "../record/TrackedFolder.ts"
import { entryOf, type IndexEntry } from "../render/IndexFiles.ts"
import { answerFrom, keptReaderOf, type Source, sumOfStream } from "../render/Pieces.ts"
import { isLog, logs } from "../render/Rendering.ts"
import * as SessionContext from "../render/SessionContext.ts"
import { contextPrefix } from "../render/SessionContext.ts"
import { valueFiles } from "../render/Values.ts"
import { adopt } from "./Adoption.ts"
import { advance, flush } from "./Appending.ts"
import type { Known, WriteError } from "./CachedSession.ts"
import { removeEmptied } from "./Checking.ts"
import { drop } from "./Dropping.ts"
import * as Repair from "./Repair.ts"
import * as Writer from "./Writer.ts"

const nothing: Source = { size: 0, bytes: Stream.empty }

/** The context that the last step was shown. Swapped lines are read from the logs, which are repaired by now. */
const contextAt = (writer: Writer.Writer, session: Known, name: string, pack: PackState) =>
  SessionContext.contextOf(session.record.id, name, pack, (at, bytes) =>
    writer.tracker.files.digest(`${session.folder.path}/messages.jsonl`, at, bytes)
  ).pipe(Effect.provideService(EventLog, writer.log), Effect.provideService(SessionStore, writer.store))

/** The context at the session's end; keeps the hashes that it computes. */
const contextOf = (writer: Writer.Writer, session: Known, name: string) =>
  Effect.map(contextAt(writer, session, name, session.rendering.pack), ({ files, state }) => {
    session.rendering = { ...session.rendering, pack: state }
    return files
  })

/** Adopts the session's unrecorded files at the end of its log, so that no value goes back to an earlier one. */
const takeOver = Effect.fnUntraced(function* (
  writer: Writer.Writer,
  id: string
): Effect.fn.Return<Known | undefined, WriteError> {
  yield* advance(writer, id)
  const session = yield* writer.cache.load(id)
  if (session === undefined || session.record.seq < 0) return session
  const { fold } = session.rendering
  const address = Writer.addressAt(writer, id, fold)
  if (address === undefined) return session
  const entry = yield* adopt(
    {
      tracker: writer.tracker,
      log: writer.log,
      contextOf: (session, name, pack) => Effect.map(contextAt(writer, session, name, pack), ({ files }) => files)
    },
    session,
    address
  )
  if (entry !== undefined) {
    const entries = writer.adopted.get(session.record.index) ?? new Map<string, IndexEntry>()
    writer.adopted.set(session.record.index, entries.set(id, entry))
  }
  session.ahead = false
  return session
})

/** A long answer, read from the log as it is written. */
const streamed = Effect.fnUntraced(function* (writer: Writer.Writer, id: string, latest: ReadonlyArray<Text>) {
  const bytes = answerFrom(latest, keptReaderOf(writer, id))
  const sum = writer.answers.get(latest) ?? (yield* sumOfStream(bytes))
  writer.answers.set(latest, sum)
  return { sum, bytes }
})

/**
 * Brings values and context up to the logs and restores changed files. `atEnd` says that the session's log has no more
 * events, so that surplus bytes in a file are not ours.
 */
export const finish = Effect.fnUntraced(function* (
  writer: Writer.Writer,
  id: string,
  { atEnd }: { readonly atEnd: boolean }
): Effect.fn.Return<void, WriteError> {
  const { tracker } = writer
  const { files } = tracker
  yield* flush(writer, id)
  const loaded = yield* writer.cache.load(id)
  const session = loaded?.ahead === true ? yield* takeOver(writer, id) : loaded
  // Nothing was written of it yet.
  if (session === undefined || session.record.seq < 0) return
  const { folder, record, rendering } = session
  const { fold, pack } = rendering
  const address = Writer.addressAt(writer, id, fold)
  if (address === undefined) return yield* drop(writer, id)
  yield* TrackedFolder.ensureFolders(tracker, folder, [contextPrefix, ...folder.records.keys()])
  // Refuses anything but a regular file before anything changes.
  for (const name of folder.records.keys()) yield* files.stamp(`${folder.path}/${name}`)
  for (const name of logs) {
    yield* Repair.mend(writer, session, name, nothing, atEnd)
    yield* Repair.permitLog(writer, session, name)
  }
  const long = fold.latest?.some(isStored) === true ? yield* streamed(writer, id, fold.latest) : ""
  const values = valueFiles(fold, address, () => long)
  // The context is that of the last step and changes only with a later one.
  let due = (pack.step?.seq ?? -1) > record.shown
  let context = due ? yield* contextOf(writer, session, address.session) : new Map<string, TrackedFolder.Content>()
  const sums = new Map<string, Sum>(
    [...context, ...values].map(([name, content]) => [name, TrackedFolder.sumOf(content)])
  )
  const names = [...folder.records.keys(), ...sums.keys()].filter((name) => !isLog(name))
  const inspection = yield* TrackedFolder.inspect(tracker, folder, names, sums)
  const broken = new Set([...inspection.foreign, ...inspection.missing])
  const restored = yield* Repair.restoreBlobs(writer, session, inspection, broken)
  const foreign = new Set([...inspection.foreign].filter((name) => !restored.has(name)))
  if (!due && [...broken].some((name) => name.startsWith(contextPrefix))) {
    due = true
    context = yield* contextOf(writer, session, address.session)
  }
  const spared = (name: string): boolean =>
    isLog(name) ||
    folder.records.get(name)?.lasting === true ||
    (!due && name.startsWith(contextPrefix) && !foreign.has(name))
  yield* TrackedFolder.bring(
    tracker,
    folder,
    new Map<string, TrackedFolder.Content<ReadError>>([...context, ...values]),
    { ...inspection, foreign },
    spared
  )
  // Before the session is recorded as shown, so that a kill repeats it.
  if (due) yield* removeEmptied(files, folder)
  const entry = JSON.stringify(entryOf(fold, address.session))
  const follows = entry !== record.entry
  // It is no longer behind once its whole log was read.
  const behind = record.behind && !session.whole
  if (follows || record.shown !== record.seq || record.behind !== behind) {
    session.record = { ...record, shown: record.seq, entry, behind }
    // With a checkpoint, because retention may remove the events before it.
    yield* writer.cache.keep(session, new Map(), 1)
  }
  if (follows) writer.indexes.add(record.index)
})
