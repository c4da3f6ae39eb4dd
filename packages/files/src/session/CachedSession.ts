/** Defines a cached session of a writer, and how the session's export fails. Spec: FI-65 in specs/files.md. */
import { Effect } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import type {
  CursorAhead,
  CursorExpired,
  EventLog,
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

export interface CachedState {
  record: SessionRecord
  rendering: Rendering.Rendering
  readonly settled?: Rendering.Rendering | undefined
  readonly folder: TrackedFolder.Folder
  /** Whether its whole log has been read since it was loaded. */
  whole: boolean
  /** Whether its files may hold more than the record, which was lost or is older. */
  ahead: boolean
}

// Renders a session's stored events again.

/** Renders the events after the rendering's up to a sequence number, page by page. */
export const replay = <E>(
  log: EventLog["Type"],
  id: string,
  from: Rendering.Rendering,
  through: number,
  use: (added: Rendering.RenderedPieces) => Effect.Effect<void, E>
): Effect.Effect<Rendering.Rendering, E | WriteError> =>
  Effect.gen(function* () {
    let rendering = from
    let after = from.fold.seq
    while (after < through) {
      const page = yield* log.read({ sessionID: SessionID.make(id), after })
      const next = Rendering.evolveAll(
        rendering,
        page.events.filter(({ seq }) => seq <= through)
      )
      yield* use(next.added)
      rendering = next.rendering
      if (!page.hasMore) break
      after = page.cursor
    }
    return rendering
  })
