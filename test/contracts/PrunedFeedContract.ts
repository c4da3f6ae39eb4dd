/** The feed after old events were removed: LG-59 and LG-62 in specs/log.md. */
import { assert, it } from "@effect/vitest"
import { Chunk, Effect, Stream } from "effect"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { feedAll } from "./FeedContract.ts"
import type { LogStore } from "./LogStore.ts"
import { readAll, session } from "./Samples.ts"

/** The events of the feed that are left: those above their session's floor. */
const left = Effect.fnUntraced(function* (all: ReadonlyArray<SessionEvent>, sessions: ReadonlyArray<SessionID>) {
  const log = yield* EventLog
  const floors = new Map<string, number>()
  for (const id of sessions) {
    const expired = yield* Effect.flip(log.read({ sessionID: id }))
    floors.set(id, expired._tag === "CursorExpired" ? expired.floor : -1)
  }
  return all.filter(({ seq, sessionID }) => seq > (floors.get(sessionID) ?? -1))
})

/** The greatest position of a removed event. */
const floorOf = (all: ReadonlyArray<SessionEvent>, rest: ReadonlyArray<SessionEvent>): number =>
  Math.max(...all.filter((event) => !rest.includes(event)).map(({ position }) => position))

const readFailed = (after: number) => Effect.flatMap(EventLog, (log) => Effect.flip(log.readFeed({ after })))
const feedFailed = (after: number) =>
  Effect.flatMap(EventLog, (log) => Effect.flip(Stream.runDrain(log.feed({ after }))))

/** Registers the tests of this contract for one kind of store. */
export const prunedFeedContract = <R, E>({ layer, name, retention }: LogStore<R, E>): void => {
  if (retention === undefined) return

  it.scoped(`LG-59: a reader behind a pruned event gets CursorExpired and the floor, on ${name}`, () =>
    Effect.gen(function* () {
      const [log, one, two] = [yield* EventLog, session(), session()]
      yield* retention.begin(one, 3)
      yield* retention.begin(two, 3)
      const all = (yield* feedAll(0, 512)).events
      yield* retention.prune(one)
      yield* retention.prune(two, 30)
      const rest = yield* left(all, [one, two])
      const floor = floorOf(all, rest)
      for (const cursor of [-1, 0, 1, floor - 1]) {
        assert.deepInclude(yield* readFailed(cursor), { _tag: "CursorExpired", cursor, floor })
        assert.deepInclude(yield* feedFailed(cursor), { _tag: "CursorExpired", cursor, floor })
      }
      const above = rest.filter(({ position }) => position > floor)
      assert.isNotEmpty(above)
      assert.deepStrictEqual((yield* feedAll(floor, 7)).events, above)
      const fed = yield* Stream.runCollect(Stream.take(log.feed({ after: floor }), above.length))
      assert.deepStrictEqual(Chunk.toReadonlyArray(fed), above)
    }).pipe(Effect.provide(layer))
  )

  it.scoped(`LG-59: a reader gets CursorExpired also if no event is left after its cursor, on ${name}`, () =>
    Effect.gen(function* () {
      const id = session()
      yield* retention.begin(id, 2)
      const positions = (yield* readAll(id)).map(({ position }) => position)
      const floor = Math.max(...positions)
      yield* retention.prune(id)
      assert.deepInclude(yield* readFailed(floor - 1), { _tag: "CursorExpired", floor })
      assert.deepInclude(yield* feedFailed(floor - 1), { _tag: "CursorExpired", floor })
      const { position } = yield* feedAll(floor, 1)
      assert.strictEqual(position, floor)
    }).pipe(Effect.provide(layer))
  )

  it.scoped(`LG-59: a feed that pruning overtakes fails instead of leaving out events, on ${name}`, () =>
    Effect.gen(function* () {
      const [log, id] = [yield* EventLog, session()]
      yield* retention.begin(id, 60)
      const all = yield* readAll(id)
      const seen: Array<number> = []
      const collect = (event: SessionEvent) =>
        Effect.zipRight(
          seen.length === 0 ? retention.prune(id) : Effect.void,
          Effect.sync(() => seen.push(event.position))
        )
      const failed = yield* Effect.flip(Stream.runForEach(log.feed(), collect))
      assert.deepStrictEqual(
        seen,
        all.slice(0, 512).map(({ position }) => position)
      )
      assert.deepInclude(failed, { _tag: "CursorExpired", cursor: seen.at(-1), floor: all.at(-1)?.position })
    }).pipe(Effect.provide(layer))
  )

  it.scoped(`LG-59: when the events are back, or their session is removed, the feed is whole, on ${name}`, () =>
    Effect.gen(function* () {
      const [log, one, two] = [yield* EventLog, session(), session()]
      yield* retention.begin(one, 3)
      yield* retention.begin(two, 3)
      const all = (yield* feedAll(0, 512)).events
      const putBack = yield* retention.prune(one)
      yield* retention.prune(two)
      yield* log.remove(two)
      assert.strictEqual((yield* readFailed(0))._tag, "CursorExpired")
      yield* putBack
      assert.deepStrictEqual(
        (yield* feedAll(0, 5)).events,
        all.filter(({ sessionID }) => sessionID === one)
      )
    }).pipe(Effect.provide(layer))
  )

  it.scoped(`LG-62: with gaps, a reader gets the events that are left, on ${name}`, () =>
    Effect.gen(function* () {
      const [log, one, two] = [yield* EventLog, session(), session()]
      yield* retention.begin(one, 3)
      yield* retention.begin(two, 3)
      const all = (yield* feedAll(0, 512)).events
      yield* retention.prune(one, 30)
      yield* retention.prune(two, 30)
      const page = yield* log.readFeed({ gaps: true })
      assert.deepStrictEqual(page.events, yield* left(all, [one, two]))
      const [first] = page.events
      const rest = yield* log.readFeed({ after: first?.position, limit: 1, gaps: true })
      assert.deepStrictEqual([rest.events, rest.hasMore], [page.events.slice(1, 2), true])
    }).pipe(Effect.provide(layer))
  )
}
