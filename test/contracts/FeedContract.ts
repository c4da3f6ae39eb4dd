/** Pages of the feed, and removed sessions (LG-18..LG-20). */
import { assert, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import type { SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import type { LogStore } from "./LogStore.ts"
import { begin, created, readAll, renamed, session } from "./Samples.ts"

const long = (name: string) => renamed(`${name} ${"x".repeat(100 * 1024)}`)

/** All events of the feed after a position, by pages of a size. */
export const feedAll = Effect.fnUntraced(function* (after: number, limit: number) {
  const log = yield* EventLog
  const events: Array<SessionEvent> = []
  let [position, pages] = [after, 0]
  for (;;) {
    const page = yield* log.readFeed({ after: position, limit })
    assert.isAtMost(page.events.length, limit)
    events.push(...page.events)
    pages += 1
    assert.isTrue(page.position > position || !page.hasMore)
    position = page.position
    if (!page.hasMore) return { events, position, pages }
  }
})

/** Where the feed ends now. */
export const end = Effect.map(feedAll(0, 512), ({ position }) => position)

/** Registers the tests of this contract for one kind of store. */
export const feedContract = <R, E>({ layer, name }: LogStore<R, E>): void =>
  it.layer(layer)(`the feed on ${name}`, (it) => {
    it.effect("LG-20: an event's place is found by its id, in its own session only", () =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const [one, two] = [session(), session()]
        yield* begin(one, 3)
        yield* begin(two, 1)
        const events = yield* readAll(one)
        for (const { id, seq } of events) {
          assert.strictEqual(yield* log.placeOf(one, id), seq)
          assert.isUndefined(yield* log.placeOf(two, id))
        }
        assert.isUndefined(yield* log.placeOf(one, "evt_none"))
      })
    )

    it.effect("LG-18: pages of any size give the events of all sessions once, in the order of positions", () =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const start = yield* end
        const [one, two] = [session(), session()]
        yield* begin(one, 3)
        yield* begin(two, 2)
        yield* log.append(one, [long("a"), renamed("b"), long("c"), long("d")])
        yield* log.append(two, [renamed("e")])
        const both = [...(yield* readAll(one)), ...(yield* readAll(two))].toSorted((a, b) => a.position - b.position)
        for (const limit of [1, 2, 3, 5, 12, 512]) {
          assert.deepStrictEqual((yield* feedAll(start, limit)).events, both)
        }
      })
    )

    it.effect("LG-18: a page ends before a long payload, which comes alone", () =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const start = yield* end
        yield* log.append(session(), [created, renamed("a"), long("b"), long("c"), renamed("d")])
        const sizes: Array<readonly [number, boolean]> = []
        let after = start
        for (let page = 0; page < 4; page += 1) {
          const { events, hasMore, position } = yield* log.readFeed({ after })
          sizes.push([events.length, hasMore])
          after = position
        }
        assert.deepStrictEqual(sizes, [
          [2, true],
          [1, true],
          [1, true],
          [1, false]
        ])
      })
    )

    it.effect("LG-18: a page that ends with the last row says that none follow, whatever was removed after it", () =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const start = yield* end
        const [one, gone] = [session(), session()]
        yield* begin(one, 4)
        yield* begin(gone, 4)
        yield* log.remove(gone)
        const { events, hasMore, position } = yield* log.readFeed({ after: start, limit: 5 })
        assert.deepStrictEqual([events.length, hasMore, position], [5, false, events.at(-1)?.position ?? 0])
        const empty = yield* log.readFeed({ after: position + 2 })
        assert.deepStrictEqual(empty, { events: [], position: position + 2, hasMore: false })
      })
    )

    it.effect(
      "LG-35, LG-18: a position beyond the newest is CursorAhead; a limit that is none is brought into bounds",
      () =>
        Effect.gen(function* () {
          const log = yield* EventLog
          yield* begin(session(), 2)
          const latest = yield* end
          for (const after of [latest + 1, Infinity, NaN]) {
            const refused = yield* Effect.flip(log.readFeed({ after }))
            assert.deepInclude(refused, { _tag: "CursorAhead", latest })
          }
          for (const limit of [0, -5, 0.5]) {
            assert.strictEqual((yield* log.readFeed({ after: latest - 2, limit })).events.length, 1)
          }
          for (const limit of [NaN, Infinity, 1e9]) {
            assert.strictEqual((yield* log.readFeed({ after: latest - 2, limit })).events.length, 2)
          }
        })
    )

    it.effect("LG-19: a removal is recorded with its number, its session and the newest position", () =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const before = (yield* log.removals()).at(-1)?.number ?? 0
        const [one, two] = [session(), session()]
        yield* begin(one, 2)
        const events = yield* begin(two, 2)
        yield* log.remove(one)
        yield* log.remove(two)
        const position = events.at(-1)?.position ?? 0
        const removals = yield* log.removals({ after: before })
        assert.deepStrictEqual(
          removals.map((removal) => ({ ...removal, number: 0 })),
          [one, two].map((sessionID) => ({ number: 0, sessionID, position }))
        )
        const [first, second] = removals.map(({ number }) => number)
        assert.isTrue(before < (first ?? 0) && (first ?? 0) < (second ?? 0))
        assert.deepStrictEqual(yield* log.removals({ after: first }), removals.slice(1))
        assert.deepStrictEqual(yield* log.removals({ after: second }), [])
      })
    )

    it.effect(
      "LG-19: of a session that was made again, what is up to the removal's position is gone, the rest is new",
      () =>
        Effect.gen(function* () {
          const [log, id] = [yield* EventLog, session()]
          const start = yield* end
          const before = (yield* log.removals()).at(-1)?.number
          yield* begin(id, 3)
          yield* log.remove(id)
          yield* begin(id, 1)
          yield* log.remove(id)
          yield* begin(id, 2)
          const removals = yield* log.removals({ after: before })
          assert.deepStrictEqual(removals.map(Struct.get("sessionID")), [id, id])
          const { events } = yield* log.readFeed({ after: start })
          assert.strictEqual(events.length, 3)
          for (const { position } of events) {
            assert.isTrue(removals.every((removal) => removal.position < position))
          }
        })
    )

    it.effect(
      "LG-19: what was only claimed for replay, was never there, or is removed twice leaves no further record",
      () =>
        Effect.gen(function* () {
          const [log, claimed, id] = [yield* EventLog, session(), session()]
          const before = (yield* log.removals()).at(-1)?.number
          yield* log.claimReplay(claimed, "somebody")
          assert.isFalse(yield* log.remove(claimed))
          assert.isFalse(yield* log.remove(session()))
          yield* begin(id)
          yield* log.remove(id)
          yield* log.remove(id)
          assert.strictEqual((yield* log.removals({ after: before })).length, 1)
        })
    )
  })
