/** Imports entry logs into a store and exports sessions again. */
import { Chunk, Effect, Stream } from "effect"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { SessionStore } from "../../../packages/log/src/store/SessionStore.ts"
import type { Piece } from "../../../packages/formats/src/conversation/Conversation.ts"
import * as EntryReader from "../../../packages/formats/src/entry/EntryReader.ts"
import { entryLines, type ExportReport } from "../../../packages/formats/src/export/EntryExport.ts"
import type { EntryDialect } from "../../../packages/formats/src/export/EntryRecord.ts"
import { type ThreadFiles, threadLines } from "../../../packages/formats/src/export/ThreadExport.ts"
import { importLog, type ImportOptions } from "../../../packages/formats/src/import/Import.ts"

/** The conversation of a text. */
export const piecesOf = (text: string) => EntryReader.fromBytes()(Stream.make(Buffer.from(text)))

export const importPieces = (pieces: Iterable<Piece>, options: Partial<ImportOptions> = {}) =>
  importLog(() => Stream.fromIterable(pieces), { directory: "/tmp", ...options })

export const importText = (text: string, options: Partial<ImportOptions> = {}) =>
  importLog(() => piecesOf(text), { directory: "/tmp", ...options })

/** All events of a session. */
export const eventsOf = Effect.fnUntraced(function* (id: string) {
  const log = yield* EventLog
  const sessionID = SessionID.make(id)
  const { seq } = yield* log.head(sessionID)
  return Chunk.toReadonlyArray(yield* Stream.runCollect(Stream.take(log.tail({ sessionID }), seq + 1)))
})

/** The session as an entry log, and what the export left out. */
export const exported = Effect.fnUntraced(function* (id: string, dialect: EntryDialect) {
  const session = yield* (yield* SessionStore).get(SessionID.make(id))
  let report: ExportReport | undefined
  const lines = entryLines(session, dialect, Stream.fromIterable(yield* eventsOf(id)), (done) => (report = done))
  const text = Chunk.join(yield* Stream.runCollect(lines), "")
  return { text, report }
})

/** The session as a thread. */
export const exportedThread = Effect.fnUntraced(function* (id: string) {
  const session = yield* (yield* SessionStore).get(SessionID.make(id))
  let files: ThreadFiles | undefined
  const lines = threadLines(session, Stream.fromIterable(yield* eventsOf(id)), (found) => (files = found))
  return { text: Chunk.join(yield* Stream.runCollect(lines), ""), files }
})
