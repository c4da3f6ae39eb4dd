/**
 * What a reader of the feed may assume about positions, on every store and with several writers: each log of one file has
 * its own connections, as a process of its own would have.
 */
import { assert, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Stream } from "effect"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { logAt, stores, temporaryDatabase } from "../support/Database.ts"
import { begin, created, readAll, renamed, session } from "../support/Logs.ts"

const positionsOf = (events: ReadonlyArray<SessionEvent>) => events.map(({ position }) => position)

const isGrowing = (numbers: ReadonlyArray<number>) =>
  numbers.every((number, index) => index === 0 || number > (numbers[index - 1] ?? number))

for (const [store, layer] of Object.entries(stores)) {
  it.layer(layer)(`positions, ${store}`, (it) => {
    it.effect(
      "LG-41: positions grow with a session's sequence numbers, and none is assigned again after a removal",
      () =>
        Effect.gen(function* () {
          const [log, id, other] = [yield* EventLog, session(), session()]
          yield* begin(id, 3)
          yield* begin(other, 2)
          const first = positionsOf([...(yield* readAll(id)), ...(yield* readAll(other))])
          assert.isTrue(isGrowing(first))
          yield* log.remove(other)
          yield* log.remove(id)
          yield* begin(id, 3)
          const again = positionsOf(yield* readAll(id))
          assert.isTrue(isGrowing(again))
          assert.isTrue(again.every((position) => first.every((earlier) => position > earlier)))
        })
    )
  })
}

/** A log with connections of its own, until the scope closes. */
const open = (filename: string) => Layer.build(logAt(filename))

it.scopedLive(
  "LG-42: while two writers append, no event appears at or below a position that the feed has returned",
  () =>
    Effect.gen(function* () {
      const filename = yield* temporaryDatabase
      const log = Context.get(yield* open(filename), EventLog)
      const [each, rounds] = [4, 60]
      const write = Effect.fnUntraced(function* (id: SessionID, writer: Context.Context<EventLog>) {
        const log = Context.get(writer, EventLog)
        yield* log.append(id, [created])
        for (let n = 1; n < rounds; n++) yield* log.append(id, [renamed(`${n}`)])
      })
      const paged: Array<SessionEvent> = []
      let after = 0
      /** Reads a page for each event of the feed, so that pages too are read between the commits. */
      const readPage = Effect.gen(function* () {
        const page = yield* log.readFeed({ after, limit: 3 })
        paged.push(...page.events)
        after = page.position
      })
      const total = 2 * each * rounds
      const following = yield* log.feed().pipe(
        Stream.take(total),
        Stream.tap(() => readPage),
        Stream.runCollect,
        Effect.fork
      )
      const writers = [yield* open(filename), yield* open(filename)]
      yield* Effect.forEach(
        writers.flatMap((writer) => Array.from({ length: each }, () => writer)),
        (writer) => write(session(), writer),
        { concurrency: "unbounded", discard: true }
      )
      const followed = [...(yield* Fiber.join(following))]
      const stored = positionsOf((yield* log.readFeed({ limit: 512 })).events)
      assert.strictEqual(stored.length, total)
      assert.deepStrictEqual(positionsOf(followed), stored)
      assert.deepStrictEqual(positionsOf(paged), stored)
    })
)

it.scopedLive("LG-43: an append that begins after another writer's returned gets greater positions", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    const writers = [yield* open(filename), yield* open(filename)]
    const [one, other] = [session(), session()]
    const positions: Array<number> = []
    for (let n = 0; n < 5; n++) {
      for (const [index, id] of [one, other].entries()) {
        const log = Context.get(writers[(n + index) % 2] ?? (yield* open(filename)), EventLog)
        positions.push(...positionsOf(yield* log.append(id, [n === 0 ? created : renamed(`${n}`), renamed("more")])))
      }
    }
    assert.isTrue(isGrowing(positions))
  })
)

for (const [store, layer] of Object.entries(stores)) {
  it.layer(layer)(`removals, ${store}`, (it) => {
    it.effect("LG-44: a number of a removal is a complete cursor: later removals have greater ones", () =>
      Effect.gen(function* () {
        const [log, one, other] = [yield* EventLog, session(), session()]
        yield* Effect.forEach([one, other], (id) => begin(id))
        yield* log.remove(one)
        const before = (yield* log.removals()).at(-1)?.number ?? 0
        yield* log.remove(other)
        const later = yield* log.removals({ after: before })
        assert.deepStrictEqual(
          later.map(({ sessionID }) => sessionID),
          [other]
        )
        assert.isTrue(later.every(({ number }) => number > before))
      })
    )
  })
}
