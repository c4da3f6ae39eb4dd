/** The entries of the exporter's record: its cursor, sessions and files. Spec: FI-65..FI-68 in specs/files.md. */
import type { Stamp, Sum } from "../disk/FileCalls.ts"

export interface Cursor {
  readonly position: number
  /** The event at that position and its session. Another store has a different event there. */
  readonly eventID: string | null
  readonly sessionID: string | null
  /** The number of the last removal followed. */
  readonly removals: number
}

export interface SessionRecord {
  readonly id: string
  readonly folder: string
  /** The folder of its index. */
  readonly index: string
  readonly seq: number
  readonly position: number
  readonly first: string
  /** The last event that the single values reflect. */
  readonly shown: number
  /** The event of the stored checkpoint and its length; -1 and 0 without one. */
  readonly checkpointSeq: number
  readonly checkpointSize: number
  /** Its index entry as JSON; null before its values are first written. */
  readonly entry: string | null
  /** The export failed; it is retried from the log. */
  readonly behind: boolean
}

export interface FileRecord extends Sum {
  /** Its stamp; empty if the content must be checked. */
  readonly stamp: string
  /** The content about to be written; after a kill the file may already hold it. */
  readonly next: Sum | null
  /** It is written once, from the log, and not again with the values. */
  readonly lasting: boolean
}

export type FileRecords = ReadonlyMap<string, FileRecord>

export const recordOf = ({ crc, size }: Sum, stamp: Stamp, lasting = false): FileRecord => ({
  crc,
  size,
  stamp: stamp.text,
  next: null,
  lasting
})
