/** Renders a session's stored events again. Spec: FI-65 in specs/files.md. */
import { Effect } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import type { EventLog } from "@daybook/log/log/EventLog"
import * as Rendering from "../render/Rendering.ts"
import type { WriteError } from "./CachedSession.ts"

/** Renders the events after the rendering's up to a sequence number, page by page. */
export const replay = <E>(
  log: EventLog["Type"],
  id: string,
  from: Rendering.Rendering,
  through: number,
  use: (added: Rendering.Added) => Effect.Effect<void, E>
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
