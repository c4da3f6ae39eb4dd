/** Pages of the feed, and what is said of removed sessions: LG-18 and LG-19 in specs/log.md. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, FastCheck as fc } from "effect"
import type { SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { cases } from "../support/Cases.ts"
import { logAt, stores, temporaryDatabase } from "../support/Database.ts"
import { begin, created, readAll, renamed, session, storeAs } from "../support/Logs.ts"

const long = (name: string) => renamed(`${name} ${"x".repeat(100 * 1024)}`)

/** All events of the feed after a position, by pages of a size. */
const feedAll = Effect.fnUntraced(function* (after: number, limit: number) {
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
const end = Effect.map(feedAll(0, 512), ({ position }) => position)

for (const [store, layer] of Object.entries(stores)) {
  it.layer(layer)(`the feed on ${store}`, (it) => {
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

    it.effect("LG-18: unknown types are left out, and the position passes them", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const start = yield* end
        const last = (yield* begin(id, 3)).at(-1)?.position
        for (const seq of [2, 3]) yield* storeAs(id, seq, { type: "session.next.later.1" })
        const page = yield* log.readFeed({ after: start })
        assert.deepStrictEqual([page.events.length, page.position, page.hasMore], [2, last, false])
      })
    )

    it.effect(
      "LG-35, LG-18: a page ends before an event that cannot be read; the next fails, and says where that stands",
      () =>
        Effect.gen(function* () {
          const [log, sql, id] = [yield* EventLog, yield* SqlClient.SqlClient, session()]
          const start = yield* end
          const positions = (yield* begin(id, 3)).map(({ position }) => position)
          const [first = 0, second = 0, bad = 0, last = 0] = positions
          yield* sql`UPDATE event SET data = substr(data, 2) WHERE session_id = ${id} AND seq = 2`
          const page = yield* log.readFeed({ after: start })
          assert.deepStrictEqual(
            [page.events.map(({ position }) => position), page.position, page.hasMore],
            [[first, second], second, true]
          )
          // Also where the page was to end there.
          assert.isTrue((yield* log.readFeed({ after: start, limit: 2 })).hasMore)
          const error = yield* Effect.flip(log.readFeed({ after: second }))
          assert.deepInclude(error, { _tag: "EventUnreadable", sessionID: id, seq: 2, position: bad })
          assert.strictEqual((yield* log.readFeed({ after: bad })).position, last)
          yield* log.remove(id)
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
          assert.deepStrictEqual(
            removals.map(({ sessionID }) => sessionID),
            [id, id]
          )
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
}

it.scoped("LG-19: removals are read in pages, and a number is never used twice", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      const [log, sql] = [yield* EventLog, yield* SqlClient.SqlClient]
      yield* begin(session())
      const rows = Array.from({ length: 1_030 }, (_, index) => ({ session_id: `ses_${index}`, position: 1 }))
      for (let from = 0; from < rows.length; from += 103) {
        yield* sql`INSERT INTO session_removal ${sql.insert(rows.slice(from, from + 103))}`
      }
      const sizes: Array<number> = []
      for (let after = 0; ;) {
        const page = yield* log.removals({ after })
        if (page.length === 0) break
        sizes.push(page.length)
        after = page.at(-1)?.number ?? 0
      }
      assert.deepStrictEqual(sizes, [512, 512, 6])
      yield* sql`DELETE FROM session_removal`
      const id = session()
      yield* begin(id)
      yield* log.remove(id)
      assert.strictEqual((yield* log.removals())[0]?.number, 1_031)
    }).pipe(Effect.provide(logAt(filename)))
  })
)

it.scoped("LG-18: whoever reads pages and removals in turn has what the log has, whatever happens in between", () =>
  Effect.promise(() =>
    fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.oneof(
            fc.record({ do: fc.constant("write" as const), session: fc.nat(2), count: fc.integer({ min: 1, max: 4 }) }),
            fc.record({ do: fc.constant("remove" as const), session: fc.nat(2), count: fc.constant(0) }),
            fc.record({
              do: fc.constant("look" as const),
              session: fc.constant(0),
              count: fc.integer({ min: 1, max: 3 })
            })
          ),
          { maxLength: 30 }
        ),
        (steps) =>
          Effect.gen(function* () {
            const log = yield* EventLog
            const ids = [session("a"), session("b"), session("c")]
            const copy = new Map<string, Array<SessionEvent>>()
            let [position, number] = [0, 0]
            /** Takes in a page of at most so many events, removals first. */
            const look = Effect.fnUntraced(function* (limit: number) {
              for (const removal of yield* log.removals({ after: number })) {
                const kept = (copy.get(removal.sessionID) ?? []).filter((event) => event.position > removal.position)
                copy.set(removal.sessionID, kept)
                number = removal.number
              }
              const page = yield* log.readFeed({ after: position, limit })
              for (const event of page.events) copy.set(event.sessionID, [...(copy.get(event.sessionID) ?? []), event])
              position = page.position
              return page.hasMore
            })
            for (const step of steps) {
              const id = ids[step.session] ?? session()
              if (step.do === "look") yield* look(step.count)
              else if (step.do === "remove") yield* log.remove(id)
              else if ((yield* log.latest(id)) < 0) yield* begin(id, step.count)
              else yield* log.append(id, [renamed(`${step.count}`)])
            }
            while (yield* look(2));
            for (const id of ids) {
              const stored = (yield* log.latest(id)) < 0 ? [] : yield* readAll(id)
              assert.deepStrictEqual(copy.get(id) ?? [], [...stored])
            }
          }).pipe(Effect.provide(logAt(":memory:")), Effect.runPromise)
      ),
      { numRuns: cases(40) }
    )
  )
)
