/**
 * Runs consumers over a client: code that applies the events of a session, or of all sessions, and continues after a
 * restart where it stopped. Each consumer has a name and a cursor in a storage of the caller. Spec: HT-67 in
 * specs/http.md.
 *
 * @module @daybook/client/Consumer
 */
import { Chunk, Effect, Stream } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import type { ConnectionError } from "./ClientError.ts"
import { DaybookClient } from "./DaybookClient.ts"
import type { Item, StreamError } from "./Streams.ts"

/** Keeps the cursors of consumers. A cursor that was stored is there after a crash, whole or as it was before. */
export interface Storage<E = never> {
  readonly load: (name: string) => Effect.Effect<string | undefined, E>
  /** `before`: the cursor that the consumer stored last, or loaded. A storage with transactions fails if it has another one. */
  readonly store: (name: string, cursor: string, before: string | undefined) => Effect.Effect<void, E>
  /** Does the work, the application of events and the storing of their cursor, completely or not at all. */
  readonly together?: <A, E2, R>(work: Effect.Effect<A, E2, R>) => Effect.Effect<A, E | E2, R>
}

/** What a consumer follows, and how it applies it. */
export interface Options<E, R, E2> {
  /** Names its cursor in the storage. */
  readonly name: string
  /** The session to follow. Default: the feed of all sessions. */
  readonly sessionID?: SessionID | undefined
  /** False: it returns when the stored events are applied. */
  readonly follow?: boolean | undefined
  /**
   * Applies events, in order. The cursor is stored afterwards, so a crash in between delivers them again: use their
   * positions as idempotency keys. With `SqlStorage`, its writes to the same database and the cursor are one transaction.
   */
  readonly apply: (events: NonEmptyReadonlyArray<SessionEvent>) => Effect.Effect<unknown, E, R>
  readonly storage: Storage<E2>
}

/**
 * Follows and applies. It returns only without `follow`, and fails otherwise: with `SessionNotFound` if its session is
 * removed, with `CursorExpired` if its next events were pruned, with the error of `apply`, and with that of the storage, such
 * as `ConsumerReplaced`.
 */
export const run = <E, R, E2>({
  apply,
  follow,
  name,
  sessionID,
  storage
}: Options<E, R, E2>): Effect.Effect<void, E | E2 | StreamError | ConnectionError, R | DaybookClient> =>
  Effect.gen(function* () {
    const client = yield* DaybookClient
    let cursor = yield* storage.load(name)
    const items = client.follow({ sessionID, after: cursor, follow })
    const { together = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E | E2, R> => work } = storage
    const applied = Effect.fnUntraced(function* (chunk: Chunk.Chunk<Item>) {
      const [first, ...rest] = Chunk.toReadonlyArray(chunk).flatMap((item) =>
        item.frame === "event" ? [item.event] : []
      )
      if (first !== undefined) yield* apply([first, ...rest])
      const last = Chunk.findLast(chunk, ({ frame }) => frame !== "live")
      const next = last._tag === "Some" && "cursor" in last.value ? last.value.cursor : cursor
      if (next !== undefined && next !== cursor) yield* storage.store(name, next, cursor)
      return next
    })
    yield* Stream.runForEachChunk(items, (chunk) =>
      Effect.map(together(applied(chunk)), (next) => {
        cursor = next
      })
    )
  }).pipe(Effect.withSpan("Consumer.run", { attributes: { name } }))

// Keeps the cursors of consumers as long as the process, for state that is lost with it too.

/** A storage of its own. */
export const memoryStorage: Effect.Effect<Storage> = Effect.sync(() => {
  const cursors = new Map<string, string>()
  return {
    load: (name) => Effect.sync(() => cursors.get(name)),
    store: (name, cursor) => Effect.sync(() => void cursors.set(name, cursor))
  }
})
