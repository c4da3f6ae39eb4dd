/** Pages of the feed, and what is said of removed sessions: LG-18 and LG-19 in specs/log.md. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, FastCheck as fc } from "effect"
import type { SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { end } from "../contracts/FeedContract.ts"
import { cases } from "../support/Cases.ts"
import { logAt, stores, temporaryDatabase } from "../support/Database.ts"
import { begin, readAll, renamed, session, storeAs } from "../support/Logs.ts"

for (const [store, layer] of Object.entries(stores)) {
  it.layer(layer)(`the feed on ${store}`, (it) => {
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
          yield* sql`UPDATE event SET data = substr(data, 2) WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${id}) AND seq = 2`
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
      { numRuns: cases(16) }
    )
  )
)
