/** The hubs of the followed sessions and of the feed: each exists while it has readers. Spec: HT-49 in specs/http.md. */
import { Context, Data, Effect, Layer, RcMap, type Scope } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import {
  type CursorAhead,
  type CursorExpired,
  EventLog,
  type EventUnreadable,
  type LogUnavailable,
  type ReadError
} from "@daybook/log/log/EventLog"
import * as Hub from "./Hub.ts"

export type FeedError = CursorAhead | CursorExpired | EventUnreadable | LogUnavailable

/** A life of a session. */
export interface Life {
  readonly sessionID: SessionID
  readonly incarnation: number
}

/** One hub for each followed life of a session, and one for the feed. A hub ends with the scope of its last reader. */
export class Hubs extends Context.Tag("@daybook/server/Hubs")<
  Hubs,
  {
    readonly session: (life: Life) => Effect.Effect<Hub.Hub<ReadError>, ReadError, Scope.Scope>
    readonly feed: Effect.Effect<Hub.Hub<FeedError>, FeedError, Scope.Scope>
    /** The position of the latest event of all sessions. */
    readonly latest: Effect.Effect<number, EventUnreadable | LogUnavailable>
  }
>() {}

class Key extends Data.Class<Life> {}

const make = Effect.gen(function* () {
  const log = yield* EventLog
  // A cursor ahead of the latest event names it.
  const latest = log.readFeed({ after: Number.MAX_SAFE_INTEGER, gaps: true, limit: 1 }).pipe(
    Effect.map(({ position }) => position),
    Effect.catchTags({
      CursorAhead: ({ latest }) => Effect.succeed(latest),
      CursorExpired: ({ floor }) => Effect.succeed(floor)
    })
  )
  const sessions = yield* RcMap.make({
    lookup: ({ incarnation, sessionID }: Key) =>
      Hub.make<ReadError>({
        latest: Effect.map(log.head(sessionID), ({ seq }) => seq),
        tail: (after) => log.tail({ sessionID, incarnation, after }),
        positionOf: ({ seq }) => seq
      })
  })
  const feeds = yield* RcMap.make({
    lookup: (_key: "feed") =>
      Hub.make<FeedError>({ latest, tail: (after) => log.feed({ after }), positionOf: ({ position }) => position })
  })
  return Hubs.of({
    session: ({ incarnation, sessionID }) => RcMap.get(sessions, new Key({ incarnation, sessionID })),
    feed: RcMap.get(feeds, "feed"),
    latest
  })
})

/** No hub exists at first. */
export const layer = Layer.scoped(Hubs, make)
