/** A session's id lives from creation to removal, and may live again (LG-23). */
import { assert, it } from "@effect/vitest"
import { Context, Effect, Exit, Option, Queue, Stream } from "effect"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { EventLog, type ReadError, SessionNotFound } from "../../packages/log/src/log/EventLog.ts"
import type { LogStore } from "./LogStore.ts"
import { begin, created, foreign, renamed, session } from "./Samples.ts"

export type Log = Context.Tag.Service<typeof EventLog>

export const isGone = (error: ReadError, id: string, how?: string) => {
  assert.instanceOf(error, SessionNotFound, how)
  assert.strictEqual(error.sessionID, id)
  assert.strictEqual(error.removed, true)
  assert.include(error.message, "was removed")
}

/** A tail that has given all of `events`; what comes next is taken one by one. */
export const caughtUp = Effect.fnUntraced(function* (log: Log, id: SessionID, events: number) {
  const tail = yield* log.tail({ sessionID: id }).pipe(Stream.toQueueOfElements())
  for (let n = 0; n < events; n++) yield* Effect.flatten(Queue.take(tail))
  return Effect.flip(Effect.flatten(Queue.take(tail))).pipe(Effect.map(Option.getOrThrow))
})

/** Registers the tests of this contract for one kind of store. */
export const incarnationContract = <R, E>({ layer, name }: LogStore<R, E>): void =>
  it.layer(layer)(`incarnations, ${name}`, (it) => {
    it.scoped("LG-23: a tail ends when its session is removed and made again in this process, wherever it stands", () =>
      Effect.gen(function* () {
        const log = yield* EventLog
        for (const taken of [0, 1, 3, 4]) {
          const id = session()
          yield* begin(id, 3)
          // Held back after so many events, and one that waits at the end.
          const held = yield* log.tail({ sessionID: id }).pipe(Stream.toQueueOfElements({ capacity: 1 }))
          for (let n = 0; n < taken; n++) yield* Effect.flatten(Queue.take(held))
          const next = yield* caughtUp(log, id, 4)
          const [first] = (yield* log.read({ sessionID: id })).events
          yield* log.remove(id)
          yield* begin(id, 3)
          yield* log.append(id, [renamed("of the new life")])
          isGone(yield* next, id)
          for (;;) {
            const item: Exit.Exit<{ readonly position: number }, Option.Option<ReadError>> = yield* Queue.take(held)
            if (Exit.isFailure(item)) break
            assert.isBelow(item.value.position, (first?.position ?? 0) + 4)
          }
        }
      })
    )

    it.effect("LG-23: a cursor with its incarnation is refused once that has ended, however the id lives on", () =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const lives = {
          "not at all": () => Effect.void,
          "with as many events": (id: SessionID) => begin(id, 5),
          "with fewer": (id: SessionID) => begin(id, 1),
          "with more": (id: SessionID) => begin(id, 20),
          "claimed for replay": (id: SessionID) => log.claimReplay(id, "importer")
        }
        for (const [how, live] of Object.entries(lives)) {
          const id = session()
          yield* begin(id, 5)
          const { cursor, incarnation } = yield* log.read({ sessionID: id, limit: 3 })
          assert.deepStrictEqual(yield* log.head(id), { seq: 5, incarnation })
          const here = { sessionID: id, after: cursor, incarnation }
          assert.strictEqual((yield* log.read(here)).cursor, 5)
          yield* log.remove(id)
          yield* live(id)
          for (const after of [-1, cursor, 5, 100]) {
            isGone(yield* Effect.flip(log.read({ ...here, after })), id, how)
            isGone(yield* Effect.flip(Stream.runHead(log.tail({ ...here, after }))), id, how)
          }
        }
      })
    )

    it.effect("LG-23: the same events replayed into a removed session are another incarnation", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id, 5)
        const before = yield* log.head(id)
        const events = yield* foreign(id)
        yield* log.remove(id)
        yield* log.replay(events)
        const after = yield* log.head(id)
        assert.strictEqual(after.seq, before.seq)
        assert.notStrictEqual(after.incarnation, before.incarnation)
        isGone(yield* Effect.flip(log.read({ sessionID: id, incarnation: before.incarnation })), id)
      })
    )

    it.effect("LG-23: appends, replays and claims within a life leave its incarnation as it is", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* log.claimReplay(id, "importer")
        assert.strictEqual((yield* Effect.flip(log.head(id)))._tag, "SessionNotFound")
        const [first] = yield* log.append(id, [created, renamed("a")])
        const { incarnation } = yield* log.head(id)
        assert.strictEqual(incarnation, first.position)
        yield* log.append(id, [renamed("b")])
        yield* log.replay(yield* foreign(id), { ownerID: "importer" })
        yield* log.claimReplay(id, "another")
        assert.deepStrictEqual(yield* log.head(id), { seq: 2, incarnation })
      })
    )

    it.scoped("LG-23: the feed gives each life its own events, and goes on", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const [{ position }] = yield* begin(id, 1)
        const feed = yield* log.feed({ after: position - 1 }).pipe(Stream.toQueueOfElements())
        const take = Effect.map(Effect.flatten(Queue.take(feed)), (event) => event.position - position)
        assert.deepStrictEqual(yield* Effect.replicateEffect(take, 2), [0, 1])
        yield* log.remove(id)
        yield* begin(id, 1)
        yield* log.append(id, [renamed("more")])
        assert.deepStrictEqual(yield* Effect.replicateEffect(take, 3), [2, 3, 4])
      })
    )
  })
