/**
 * Writes one session's folder: appends events to the logs in portions (`Appending.ts`), then brings values and context
 * up to the logs (`Finishing.ts`). `SessionCache.ts` caches sessions, `Repair.ts` repairs files. Every step
 * can be killed and repeated. The exporter calls one operation at a time. Spec: FI-69..FI-83 in specs/files.md (FL-6,
 * FL-8).
 */
import type { Effect } from "effect"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import type { SessionRecord } from "../record/Records.ts"
import type * as TrackedFolder from "../record/TrackedFolder.ts"
import type { IndexEntry } from "../render/IndexFiles.ts"
import * as Portion from "../render/Portion.ts"
import * as Appending from "./Appending.ts"
import type { WriteError } from "./CachedSession.ts"
import * as Checking from "./Checking.ts"
import { drop } from "./Dropping.ts"
import { finish } from "./Finishing.ts"
import { remembered } from "./SessionCache.ts"
import * as Writer from "./Writer.ts"

export interface SessionWriter {
  /**
   * Takes events of one session in order and skips known ones. They are written when a portion is full, or by `flush`
   * or `finish`.
   */
  readonly append: (id: string, events: ReadonlyArray<SessionEvent>) => Effect.Effect<void, WriteError>
  /** Writes the session's pending portion. */
  readonly flush: (id: string) => Effect.Effect<void, WriteError>
  /**
   * Writes the session's pending portion and marks the session behind, to be retried from the log; returns its folder.
   */
  readonly leave: (id: string) => Effect.Effect<string, WriteError>
  /** Sessions with a pending portion. */
  readonly waiting: () => ReadonlyArray<string>
  /** Whether the pending portions together have reached the memory bound. */
  readonly isFull: () => boolean
  /** Takes and writes all events of the session's log. */
  readonly advance: (id: string) => Effect.Effect<void, WriteError>
  /**
   * Brings values and context up to the logs and restores changed files. `atEnd` says that the session's log has no
   * more events, so that surplus bytes in a file are not ours.
   */
  readonly finish: (id: string, options: { readonly atEnd: boolean }) => Effect.Effect<void, WriteError>
  /** Whether all files of a recorded session are unchanged since they were written. */
  readonly intact: (record: SessionRecord) => Effect.Effect<boolean, TrackedFolder.TrackError>
  /** Renders the logs again and replaces those that differ; `finish` does the same for the other files. */
  readonly rewrite: (id: string) => Effect.Effect<void, WriteError>
  /** Removes the session's own files. */
  readonly drop: (id: string) => Effect.Effect<void, TrackedFolder.TrackError>
  /** The former entries in this index of adopted sessions. */
  readonly adopted: (index: string) => ReadonlyArray<IndexEntry>
  /** The folders of indexes to be written. */
  readonly dueIndexes: () => ReadonlyArray<string>
  /** Marks the index as written. */
  readonly written: (index: string) => void
  /** Drops the cached state and the pending portion; written files stay. */
  readonly forget: (id: string) => void
}

/** The writer of all sessions under one root. */
export const make = (options: Writer.WriterOptions): SessionWriter => {
  const writer = Writer.make(options)
  const { adopted, indexes, waiting } = writer
  return {
    append: (id, events) => Appending.append(writer, id, events),
    flush: (id) => Appending.flush(writer, id),
    leave: (id) => Appending.leave(writer, id),
    advance: (id) => Appending.advance(writer, id),
    finish: (id, options) => finish(writer, id, options),
    intact: (record) => Checking.intact(writer, record),
    rewrite: (id) => Checking.rewrite(writer, id),
    drop: (id) => drop(writer, id),
    forget: (id) => Writer.forget(writer, id),
    adopted: (index) => [...(adopted.get(index)?.values() ?? [])],
    dueIndexes: () => [...indexes],
    written: (index) => void indexes.delete(index),
    waiting: () => [...waiting.keys()],
    isFull: () =>
      waiting.size > remembered ||
      [...waiting.values()].reduce((sum, { size }) => sum + size, 0) >= Portion.portionLimit
  }
}
