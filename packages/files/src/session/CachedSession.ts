/** Defines a cached session of a writer, and how its export fails. */
import type {
  CursorAhead,
  CursorExpired,
  EventUnreadable,
  LogUnavailable,
  SessionNotFound
} from "@daybook/log/log/EventLog"
import type { StoreError } from "@daybook/log/store/StoreError"
import type { SessionRecord } from "../record/Records.ts"
import * as TrackedFolder from "../record/TrackedFolder.ts"
import * as Rendering from "../render/Rendering.ts"

/** The errors of a session's export. `SessionNotFound` means that the session was removed meanwhile. */
export type WriteError =
  | TrackedFolder.TrackError
  | SessionNotFound
  | CursorAhead
  | CursorExpired
  | EventUnreadable
  | LogUnavailable
  | StoreError

/** A cached session. */
export interface Known {
  record: SessionRecord
  rendering: Rendering.Rendering
  /** The rendering at the last end of a run that was written, if a run has begun since. */
  readonly settled?: Rendering.Rendering | undefined
  readonly folder: TrackedFolder.Folder
  /** Whether its whole log has been read since it was loaded. */
  whole: boolean
  /** Whether its files may hold more than the record, which was lost or is older. */
  ahead: boolean
}
