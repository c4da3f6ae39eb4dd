/** Follows the events of all sessions into the outbox, and texts that are being written. Spec: DI-13, DI-17. */
import { Chunk, Duration, Effect, FiberMap, Stream } from "effect"
import type { ConnectionError, Item } from "@daybook/client"
import type { StreamError } from "@daybook/client/Streams"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { Book, whenever } from "./Book.ts"
import { threadOf } from "../domain/Names.ts"
import { Outbox } from "../outbox/Outbox.ts"
import type { OutboxFailed } from "../outbox/OutboxFile.ts"
import { Sender } from "./Sender.ts"
import { publishableSoFar, split } from "../post/Text.ts"

/** How often a growing text is updated. */
const pace = Duration.millis(1_500)

/** The texts of a running session, as far as they are written. */
const growing = (session: SessionID, since: number, secrets: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const [book, outbox, sender] = [yield* Book, yield* Outbox, yield* Sender]
    const thread = threadOf(session) ?? ""
    const begun = new Map<string, { readonly event: string; text: string }>()
    const take = (items: Chunk.Chunk<Item>): ReadonlySet<string> => {
      const grown = new Set<string>()
      for (const item of items) {
        if (item.frame === "event" && item.event.type === "session.next.text.started") {
          const { assistantMessageID, textID } = item.event.data
          begun.set(`${assistantMessageID} ${textID}`, { event: item.event.id, text: "" })
        } else if (item.frame === "event" && item.event.type === "session.next.text.ended") {
          const key = `${item.event.data.assistantMessageID} ${item.event.data.textID}`
          begun.delete(key)
          grown.delete(key)
        } else if (item.frame === "live" && item.live.type === "session.next.text.delta") {
          const key = `${item.live.data.assistantMessageID} ${item.live.data.textID}`
          const open = begun.get(key)
          if (open === undefined) continue
          open.text += item.live.data.delta
          grown.add(key)
        }
      }
      return grown
    }
    yield* book.follow({ sessionID: session, after: String(since), live: true }).pipe(
      Stream.groupedWithin(4_096, pace),
      Stream.runForEach((items) =>
        Effect.forEach(take(items), (key) => {
          const open = begun.get(key)
          const [content] = open === undefined ? [] : split(publishableSoFar(open.text, secrets))
          return open === undefined || content === undefined
            ? Effect.void
            : Effect.flatMap(outbox.grow({ sessionID: session, event: open.event, chunk: 0 }, { content }), (grew) =>
                grew ? sender.wake(thread) : Effect.void
              )
        })
      )
    )
  }).pipe(
    // A text that was not shown while it grew is shown when it is settled.
    Effect.catchAll((error) => Effect.logDebug(`texts of ${session} are not followed: ${String(error)}`))
  )

/** Begins at the end of the feed. */
const begin = Effect.gen(function* () {
  const [book, outbox] = [yield* Book, yield* Outbox]
  const head = yield* whenever(book.feedHead)
  yield* outbox.begin(head)
  return head
})

const again = <E, R>(why: string, cursor: Effect.Effect<unknown, E, R>) =>
  Effect.zipRight(Effect.logWarning(`${why}: what happened in between is not published`), cursor)

/** Starts over if the server refuses the cursor. */
const renewed = <A, R>(work: Effect.Effect<A, StreamError | ConnectionError | OutboxFailed, R>) =>
  Effect.flatMap(Outbox, (outbox) =>
    Effect.catchTags(work, {
      ForeignCursor: () => again("the server has another database", begin),
      CursorAhead: () => again("the server's database is an older copy", begin),
      CursorExpired: ({ floorCursor }) => again("the server has pruned events", outbox.begin(floorCursor))
    })
  )

/** Makes sure that the server accepts the cursor. No prompt may be admitted before: its answer would be skipped. */
export const prepare = Effect.gen(function* () {
  const [book, outbox] = [yield* Book, yield* Outbox]
  const after = yield* outbox.cursor
  if (after === undefined) return yield* begin
  yield* book.follow({ after, follow: false }).pipe(Stream.take(1), Stream.runDrain, renewed, whenever)
})

/** Follows forever. Fails if the server refuses to be followed. */
export const follow = Effect.fn("FeedFollower.follow")(function* (secrets: ReadonlyArray<string>) {
  const [book, outbox, sender] = [yield* Book, yield* Outbox, yield* Sender]
  const texts = yield* FiberMap.make<string>()
  const grow = (session: SessionID, since: number) =>
    FiberMap.run(texts, session, growing(session, since, secrets), { onlyIfMissing: true })

  const applied = Effect.fnUntraced(function* (items: Chunk.Chunk<Item>) {
    const last = Chunk.findLast(items, (item) => item.frame !== "live")
    if (last._tag === "None" || !("cursor" in last.value)) return
    const events = Chunk.toReadonlyArray(items).flatMap((item) => (item.frame === "event" ? [item.event] : []))
    const channels = yield* outbox.apply(events, last.value.cursor)
    yield* Effect.forEach(channels, sender.wake, { discard: true })
    for (const event of events) {
      if (threadOf(event.sessionID) === undefined) continue
      if (event.type === "session.next.activity.started") yield* grow(event.sessionID, event.seq)
      if (event.type === "session.next.activity.settled") yield* FiberMap.remove(texts, event.sessionID)
    }
  })

  const once = Effect.gen(function* () {
    const after = (yield* outbox.cursor) ?? (yield* begin)
    for (const { session, since } of yield* outbox.running) {
      if (threadOf(session) !== undefined) yield* grow(SessionID.make(session), since)
    }
    yield* Stream.runForEachChunk(book.follow({ after }), applied)
  })
  return yield* Effect.forever(whenever(renewed(once)))
})
