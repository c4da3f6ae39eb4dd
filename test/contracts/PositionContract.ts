/** What a reader of the feed may assume about positions (LG-41..LG-44). */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Stream, Struct } from "effect"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import type { LogStore } from "./LogStore.ts"
import { begin, created, readAll, renamed, session } from "./Samples.ts"

const positionsOf = (events: ReadonlyArray<SessionEvent>) => events.map(({ position }) => position)

const isGrowing = (numbers: ReadonlyArray<number>) =>
  numbers.every((number, index) => index === 0 || number > (numbers[index - 1] ?? number))

/** Registers the tests of this contract for one kind of store. */
export const positionContract = <R, E>({ layer, name }: LogStore<R, E>): void =>
  it.layer(layer)(`positions on ${name}`, (it) => {
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

    it.effect("LG-44: a number of a removal is a complete cursor: later removals have greater ones", () =>
      Effect.gen(function* () {
        const [log, one, other] = [yield* EventLog, session(), session()]
        yield* Effect.forEach([one, other], (id) => begin(id))
        yield* log.remove(one)
        const before = (yield* log.removals()).at(-1)?.number ?? 0
        yield* log.remove(other)
        const later = yield* log.removals({ after: before })
        assert.deepStrictEqual(later.map(Struct.get("sessionID")), [other])
        assert.isTrue(later.every(({ number }) => number > before))
      })
    )
  })

/** Sessions of each writer, and events of each session. */
const [sessions, rounds] = [4, 60]

const write = Effect.fnUntraced(function* (log: EventLog["Type"], id: SessionID) {
  yield* log.append(id, [created])
  for (let n = 1; n < rounds; n++) yield* log.append(id, [renamed(`${n}`)])
})

/** Registers the tests of positions with several writers. */
export const writersContract = <R, E>({ name, shared }: LogStore<R, E>): void => {
  if (shared === undefined) return

  it.scopedLive(
    `LG-42: while two writers append to ${name}, no event appears at or below a position that the feed has returned`,
    () =>
      Effect.gen(function* () {
        const open = yield* shared
        const [log, total] = [yield* open, 2 * sessions * rounds]
        const paged: Array<SessionEvent> = []
        let after = 0
        /** Reads a page for each event of the feed, so that pages too are read between the commits. */
        const readPage = Effect.gen(function* () {
          const page = yield* log.readFeed({ after, limit: 3 })
          paged.push(...page.events)
          after = page.position
        })
        const following = yield* log.feed().pipe(
          Stream.take(total),
          Stream.tap(() => readPage),
          Stream.runCollect,
          Effect.fork
        )
        const writers = [yield* open, yield* open]
        yield* Effect.forEach(
          writers.flatMap((writer) => Array.from({ length: sessions }, () => write(writer, session()))),
          (writing) => writing,
          { concurrency: "unbounded", discard: true }
        )
        const followed = [...(yield* Fiber.join(following))]
        const stored = positionsOf((yield* log.readFeed({ limit: 512 })).events)
        assert.strictEqual(stored.length, total)
        assert.deepStrictEqual(positionsOf(followed), stored)
        assert.deepStrictEqual(positionsOf(paged), stored)
      })
  )

  it.scopedLive(`LG-43: an append to ${name} that begins after another writer's returned gets greater positions`, () =>
    Effect.gen(function* () {
      const open = yield* shared
      const [one, other] = [yield* open, yield* open]
      const [first, second] = [session(), session()]
      const positions: Array<number> = []
      for (let n = 0; n < 5; n++) {
        // Each writer appends to each session in turn.
        const [left, right] = n % 2 === 0 ? [one, other] : [other, one]
        const drafts = [n === 0 ? created : renamed(`${n}`), renamed("more")] as const
        positions.push(...positionsOf(yield* left.append(first, drafts)))
        positions.push(...positionsOf(yield* right.append(second, drafts)))
      }
      assert.isTrue(isGrowing(positions))
    })
  )
}
