/** Opens a log of any dialect as a conversation. `../detection` says which dialect a log has. Spec: IM-48. */
import { basename, dirname } from "node:path"
import type { FileSystem } from "@effect/platform/FileSystem"
import { Effect, Stream } from "effect"
import * as ClaudeReader from "../claude/ClaudeReader.ts"
import * as CodexReader from "../codex/CodexReader.ts"
import type { Piece } from "../conversation/Conversation.ts"
import type { Dialect } from "../conversation/Dialect.ts"
import { dialectOf, type UnknownDialect } from "../detection/Detection.ts"
import * as EntryReader from "../entry/EntryReader.ts"
import type { LogUnreadable } from "../lines/LogFile.ts"
import type { Ends } from "../reading/Outlet.ts"
import * as ThreadReader from "../thread/ThreadReader.ts"

/** The dialect of a log, or the one that its content shows. */
export type Choice = Dialect | "auto"

/** The conversation of a file. */
export type Source = Stream.Stream<Piece, EntryReader.ReadingError | UnknownDialect | LogUnreadable, FileSystem>

const entries = (path: string): Source => EntryReader.fromPath(path)

/** The entry logs of one family have one reader, which finds the dialect. */
const readers: Readonly<Record<Dialect, (path: string, ends: Ends) => Source>> = {
  pi: entries,
  xcsh: entries,
  omp: entries,
  thread: (path) => ThreadReader.read(basename(path) === "session.jsonl" ? dirname(path) : path),
  "claude-code": (path, ends) => ClaudeReader.file(path, { ends }),
  codex: (path, ends) => CodexReader.file(path, { ends })
}

/** Opens a log, which is only read. `ends`: after how many items earlier imports of it ended (IM-420). */
export const open = (path: string, dialect: Choice = "auto", ends: Ends = []): Source =>
  dialect === "auto"
    ? Stream.unwrap(Effect.map(dialectOf(path), (found) => readers[found](path, ends)))
    : readers[dialect](path, ends)
