/** Defines what the operations of one session writer share. Spec: FI-69 in specs/files.md. */
import type { EventLog } from "@daybook/log/log/EventLog"
import type { SessionStore } from "@daybook/log/store/SessionStore"
import type { State, Text } from "@daybook/transcript/Fold"
import type { Sum } from "../disk/Stamp.ts"
import { addressOf, indexFolder, type KeptAddress, sessionFolder } from "../layout/Layout.ts"
import * as LogFile from "../record/LogFile.ts"
import type { FileRecord, SessionRecord } from "../record/Records.ts"
import type { Tracker } from "../record/TrackedFolder.ts"
import type { IndexEntry } from "../render/IndexFiles.ts"
import type { Portion } from "../render/Portion.ts"
import { logs } from "../render/Rendering.ts"
import * as SessionCache from "./SessionCache.ts"

export interface WriterOptions {
  readonly tracker: Tracker
  readonly log: EventLog["Type"]
  readonly store: SessionStore["Type"]
  /** The owner of sessions without an address. */
  readonly uid: number
}

/** The services of a writer, and what it remembers between its operations. */
export interface Writer extends WriterOptions {
  readonly cache: SessionCache.SessionCache
  /** The folders of indexes to be written. */
  readonly indexes: Set<string>
  /** Pending portions by session. */
  readonly waiting: Map<string, Portion>
  /** The former index entries of adopted sessions, by index folder. */
  readonly adopted: Map<string, Map<string, IndexEntry>>
  /** Checksums of long answers: each is read once for its checksum and once to be written. */
  readonly answers: WeakMap<ReadonlyArray<Text>, Sum>
}

export const make = (options: WriterOptions): Writer => ({
  ...options,
  cache: SessionCache.make(options),
  indexes: new Set(),
  waiting: new Map(),
  adopted: new Map(),
  answers: new WeakMap()
})

/** Drops the cached state and the pending portion; written files stay. */
export const forget = ({ cache, waiting }: Writer, id: string): void => {
  waiting.delete(id)
  cache.forget(id)
}

/** The address that the session's files have now; undefined if it has none. */
export const addressAt = ({ uid }: Writer, id: string, fold: State): KeptAddress | undefined =>
  addressOf({ id, agent: fold.firstAgent }, fold.address, uid)

export const emptyLogs: ReadonlyMap<string, FileRecord> = new Map(logs.map((name) => [name, LogFile.empty]))

/** The record of a session before its first write. */
export const unwritten = (id: string, address: KeptAddress, first: string): SessionRecord => ({
  id,
  folder: sessionFolder(address),
  index: indexFolder(address),
  seq: -1,
  position: 0,
  first,
  shown: -1,
  checkpointSeq: -1,
  checkpointSize: 0,
  entry: null,
  behind: false
})
