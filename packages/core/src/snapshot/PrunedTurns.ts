/** Says up to which time the turns of sessions are pruned, so that their snapshots can go. Spec: UN-44, UN-45. */
import { Effect } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { SessionStore } from "@daybook/log/store/SessionStore"

/** The time of the last pruned event of each session that has one. */
export const times = Effect.gen(function* () {
  const store = yield* SessionStore
  const found = new Map<SessionID, number>()
  for (let page = yield* store.snapshots(); page.length > 0;) {
    for (const { session, sessionID } of page) if (session !== undefined) found.set(sessionID, session.updatedAt)
    page = yield* store.snapshots(page.at(-1)?.sessionID)
  }
  return found
}).pipe(Effect.withSpan("Snapshots.prunedTurns"))
