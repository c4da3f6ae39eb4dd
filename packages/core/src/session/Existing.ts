/**
 * Verbs on an existing session. If the session does not exist, or was removed meanwhile, a verb fails with
 * `SessionNotFound`, whatever error came first (IB-9). A session whose import is not complete is not changed (IM-23).
 */
import { Effect } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { unfinished } from "@daybook/log/domain/Imported"
import { SessionStore } from "@daybook/log/store/SessionStore"

type Tagged = { readonly _tag: string }

export const make = Effect.gen(function* () {
  const store = yield* SessionStore

  const unlessRemoved = <A, E extends Tagged>(sessionID: SessionID, effect: Effect.Effect<A, E>) =>
    Effect.tapError(effect, ({ _tag }) =>
      _tag === "RunInterrupted"
        ? Effect.void
        : Effect.catchAll(store.get(sessionID), (error) =>
            error._tag === "SessionNotFound" ? Effect.fail(error) : Effect.void
          )
    )

  /** An event between those of an import would end the import for good (IM-43). */
  const imported = Effect.fnUntraced(function* (sessionID: SessionID) {
    const refused = unfinished(sessionID, (yield* store.get(sessionID)).imported)
    if (refused !== undefined) return yield* refused
  })

  return {
    unlessRemoved,
    imported,
    /** A verb that changes a session. */
    changes:
      <A, E extends Tagged, Rest extends ReadonlyArray<unknown>>(
        run: (sessionID: SessionID, ...rest: Rest) => Effect.Effect<A, E>
      ) =>
      (sessionID: SessionID, ...rest: Rest) =>
        unlessRemoved(sessionID, Effect.zipRight(imported(sessionID), run(sessionID, ...rest))),
    /**
     * A verb that reads. It looks the session up last, so that a session removed meanwhile is not returned as empty.
     */
    reads:
      <A, E extends Tagged, Rest extends ReadonlyArray<unknown>>(
        run: (sessionID: SessionID, ...rest: Rest) => Effect.Effect<A, E>
      ) =>
      (sessionID: SessionID, ...rest: Rest) =>
        Effect.zipLeft(unlessRemoved(sessionID, run(sessionID, ...rest)), store.get(sessionID))
  }
})

export type Existing = Effect.Effect.Success<typeof make>
