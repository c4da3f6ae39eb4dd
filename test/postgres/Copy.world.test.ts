/** Copies between a file and PostgreSQL, both ways. */
import { join } from "node:path"
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Chunk, Context, Effect, Layer, Stream, Struct } from "effect"
import { describe } from "vitest"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft, type SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Copy from "../../packages/log/src/maintenance/Copy.ts"
import { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import * as Store from "../../packages/log/src/Store.ts"
import * as Postgres from "../../packages/postgres/src/Postgres.ts"
import { temporaryFolder } from "../support/Harness.ts"
import { admitted, begin, message, readAll, renamed, session } from "../support/Logs.ts"
import { lacks } from "../support/Parts.ts"
import { freshSchema } from "../support/Postgres.ts"

const file = Effect.flatMap(temporaryFolder, (folder) =>
  Layer.build(Layer.fresh(Store.layer({ filename: join(folder, "book.sqlite") })))
)

const server = Effect.flatMap(freshSchema, (settings) => Layer.build(Layer.fresh(Postgres.layer(settings))))

const both = Effect.all([file, server])

const outcomes = (from: Copy.Side, to: Copy.Side) =>
  Effect.map(Stream.runCollect(Copy.copy(from, to)), Chunk.toReadonlyArray)

/** What is stored of an event, whatever its position. */
const stored = (event: SessionEvent) => Struct.omit(event, "position")

const eventsIn = (side: Copy.Side, id: SessionID) =>
  Effect.map(Effect.provide(readAll(id), side), (events) => events.map(stored))

const note = (text: string) => draft("session.next.synthetic", { messageID: message(), text })

/** A session with these texts, some of them long, and a waiting prompt. */
const told = (side: Copy.Side, count: number) =>
  Effect.gen(function* () {
    const [log, id] = [yield* EventLog, session()]
    yield* begin(id)
    yield* log.append(id, [admitted(message())])
    for (let index = 0; index < count; index += 1) {
      yield* log.append(id, [note(`${index}: 𝒳 "quoted" \u0000 ${"long ".repeat(index % 90 === 7 ? 20_000 : 1)}`)])
    }
    return id
  }).pipe(Effect.provide(side))

describe.skipIf(lacks("postgres"))("copying", () => {
  it.scopedLive("PG-30, PG-31: all sessions are copied to PostgreSQL and back, and are equal there", () =>
    Effect.gen(function* () {
      const [[one, pg], other] = [yield* both, yield* file]
      const ids = [yield* told(one, 600), yield* told(one, 1), yield* told(one, 3)] as const
      const copied = yield* outcomes(one, pg)
      assert.sameDeepMembers(
        [...copied],
        [
          { sessionID: ids[0], events: 602 },
          { sessionID: ids[1], events: 3 },
          { sessionID: ids[2], events: 5 }
        ]
      )
      yield* outcomes(pg, other)
      for (const id of ids) {
        const events = yield* eventsIn(one, id)
        assert.deepStrictEqual(yield* eventsIn(pg, id), events)
        assert.deepStrictEqual(yield* eventsIn(other, id), events)
        const shown = (side: Copy.Side) => Context.get(side, SessionStore).get(id)
        assert.deepStrictEqual(yield* shown(pg), yield* shown(one))
      }
    })
  )

  it.scopedLive("PG-32: a copy continues, copies what is new, and skips what is there", () =>
    Effect.gen(function* () {
      const [from, to] = yield* both
      const id = yield* told(from, 20)
      yield* outcomes(from, to)
      assert.deepStrictEqual(yield* outcomes(from, to), [{ sessionID: id, events: 0 }])
      yield* Context.get(from, EventLog).append(id, [note("new")])
      assert.deepStrictEqual(yield* outcomes(from, to), [{ sessionID: id, events: 1 }])
      assert.deepStrictEqual(yield* eventsIn(to, id), yield* eventsIn(from, id))
    })
  )

  it.scopedLive(
    "PG-33: a session that differs in the target or went on there is refused, and nothing is added to it",
    () =>
      Effect.gen(function* () {
        const [from, to] = yield* both
        const [id, ahead, good] = [yield* told(from, 2), yield* told(from, 2), yield* told(from, 2)]
        yield* outcomes(from, to)
        yield* Context.get(to, EventLog).append(id, [renamed("there")])
        yield* Context.get(to, EventLog).append(ahead, [renamed("there")])
        yield* Context.get(from, EventLog).append(id, [renamed("here")])
        yield* Context.get(from, EventLog).append(id, [renamed("more")])
        yield* Context.get(from, EventLog).append(good, [renamed("good")])
        const before = yield* eventsIn(to, id)
        const found = yield* outcomes(from, to)
        const refused = found.flatMap((each) => (each instanceof Copy.CopyRefused ? [each.message] : []))
        assert.sameMembers(refused, [
          `${id} was not copied: another event 4 is in the target`,
          `${ahead} was not copied: it went on in the target, after event 3`
        ])
        assert.deepInclude(found, { sessionID: good, events: 1 })
        assert.deepStrictEqual(yield* eventsIn(to, id), before)
      })
  )

  it.scopedLive("PG-33, PG-35: a session that was pruned or is damaged is refused, and the others are copied", () =>
    Effect.gen(function* () {
      const [from, to] = yield* both
      const [pruned, damaged, good] = [yield* told(from, 2), yield* told(from, 2), yield* told(from, 2)]
      const there = yield* told(from, 2)
      yield* outcomes(from, to)
      yield* Context.get(to, EventLog).remove(pruned)
      yield* Context.get(to, EventLog).remove(good)
      yield* Context.get(to, SqlClient.SqlClient)`UPDATE event_sequence SET floor = 1 WHERE session_id = ${there}`
      const sql = Context.get(from, SqlClient.SqlClient)
      yield* sql`UPDATE event_sequence SET floor = 1 WHERE session_id = ${pruned}`
      yield* sql`UPDATE event SET data = replace(data, 'quoted', 'edited') WHERE seq = 3
        AND session = (SELECT session FROM event_sequence WHERE session_id = ${damaged})`
      const found = yield* outcomes(from, to)
      const refused = found.flatMap((each) => (each instanceof Copy.CopyRefused ? [each] : []))
      assert.sameMembers(
        refused.map(({ sessionID }) => sessionID),
        [pruned, damaged, there]
      )
      for (const [id, where] of [
        [pruned, "pruned;"],
        [there, "pruned in the target;"]
      ]) {
        const refusal = refused.find(({ sessionID }) => sessionID === id)
        assert.include(refusal?.message, `its first events were ${where} \`daybook prune --restore FILE\` puts`)
      }
      assert.deepInclude(found, { sessionID: good, events: 4 })
      assert.strictEqual(yield* Context.get(to, EventLog).latest(pruned), -1)
    })
  )
})
