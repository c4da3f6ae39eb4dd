/**
 * Finds a session by its title, or creates one. Titles need not be unique. Of concurrent callers with one title, one
 * creates the session, and the commit decides which. Spec: IB-13, IB-44.
 */
import { Effect } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { TitleAmbiguous } from "@daybook/log/domain/NameError"
import type { Draft } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { TitleTaken } from "@daybook/log/store/SessionChecks"
import { SessionStore } from "@daybook/log/store/SessionStore"

/** Retries after lost races; bounded, to end a livelock. */
const attempts = 100

/** Another caller created a session with the title first: look again. */
const isTaken = (error: unknown): error is TitleTaken => error instanceof TitleTaken

export const make = Effect.gen(function* () {
  const log = yield* EventLog
  const store = yield* SessionStore

  /** The only session with the title in the folder, else the only one anywhere. */
  const find = Effect.fnUntraced(function* (title: string, directory: string) {
    const here = yield* store.titled(title, { directory })
    const found = here.length > 0 ? here : yield* store.titled(title)
    if (found.length > 1) return yield* new TitleAmbiguous({ title, sessionIDs: found.map(({ id }) => id) })
    return found[0]
  })

  /** Creates the session unless another one has its title. */
  const begin = (sessionID: SessionID, created: Draft, title: string) =>
    log.append(sessionID, [created], { expectedSeq: -1, commit: store.isOnlyOne(title) }).pipe(
      Effect.zipRight(store.get(sessionID)),
      // Already removed again.
      Effect.catchTag("SessionNotFound", () => new TitleTaken({ title })),
      Effect.map((session) => ({ session, isNew: true }))
    )

  /** Runs `creation` only if there is no such session. */
  const findOrBegin = <E, R>(
    title: string,
    directory: string,
    creation: Effect.Effect<{ readonly sessionID: SessionID; readonly created: Draft }, E, R>
  ) =>
    Effect.gen(function* () {
      const session = yield* find(title, directory)
      if (session !== undefined) return { session, isNew: false }
      const { created, sessionID } = yield* creation
      return yield* begin(sessionID, created, title)
    }).pipe(Effect.retry({ times: attempts, while: isTaken }), Effect.catchIf(isTaken, Effect.die))

  return { findOrBegin }
})
