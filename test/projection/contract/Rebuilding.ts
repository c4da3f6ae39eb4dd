/** A rebuild gives the rows that the log had, or leaves them. On every database. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Array as Arr, Chunk, Effect, FastCheck as fc, Fiber, Stream } from "effect"
import { type Draft, draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import * as Doctor from "../../../packages/log/src/maintenance/Doctor.ts"
import * as Rebuild from "../../../packages/log/src/maintenance/Rebuild.ts"
import type { LogLayer } from "../../support/Database.ts"
import { admitted, begin, contents, created, message, renamed, session, unique } from "../../support/Logs.ts"
import { cut, plausibleLog } from "../../support/PlausibleLogs.ts"

export const rebuilding = (layer: LogLayer) => {
  it.layer(layer)("rebuild", (it) => {
    it.effect("RP-7: projections rebuilt from the event rows alone equal the live ones byte for byte", () =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const sql = yield* SqlClient.SqlClient
        const logs = Array.from({ length: 8 }, unique).map((name) => ({
          id: session(),
          drafts: fc.sample(plausibleLog(name, 120), 1)[0] ?? ([created] as const)
        }))
        for (const { drafts, id } of logs) {
          for (const run of cut<Draft>(drafts, [3, 1, 7])) yield* log.append(id, run)
        }
        const live = yield* contents
        yield* sql`DELETE FROM session_part`
        yield* sql`UPDATE session_message SET type = 'broken', settled = NULL`
        yield* sql`DELETE FROM session_input WHERE promoted_seq IS NULL`
        yield* sql`UPDATE session SET title = 'broken', cost = 7, epoch = 0, baseline_seq = NULL`
        const rebuilt = yield* Rebuild.rebuild("all")
        assert.strictEqual(rebuilt.sessions, logs.length)
        assert.deepStrictEqual(yield* contents, live)
      })
    )

    it.effect("RP-7: a log of many pages is rebuilt, sums of fractions included", () =>
      Effect.gen(function* () {
        const [log, sql, id] = [yield* EventLog, yield* SqlClient.SqlClient, session()]
        yield* begin(id)
        for (let n = 0; n < 700; n++) {
          const assistantMessageID = message()
          yield* log.append(id, [
            draft("session.next.step.started", { assistantMessageID, agent: "a", model: { providerID: "p", id: "m" } }),
            draft("session.next.step.ended", {
              assistantMessageID,
              finish: "stop",
              cost: n / 7,
              tokens: { input: n, output: 1, reasoning: 0, cache: { read: 0, write: 0 } }
            })
          ])
        }
        const live = yield* contents
        yield* sql`UPDATE session SET cost = 0, tokens_input = 0 WHERE id = ${id}`
        assert.deepStrictEqual(yield* Rebuild.rebuild(id), { sessions: 1, events: 1401 })
        assert.deepStrictEqual(yield* contents, live)
      })
    )

    it.effect(
      "PJ-8: a rebuild that meets a damaged event, or a floor without its state, fails typed and leaves the rows",
      () =>
        Effect.gen(function* () {
          const [sql, damaged, pruned, missing] = [yield* SqlClient.SqlClient, session(), session(), session()]
          for (const id of [damaged, pruned, missing]) yield* begin(id, 3)
          yield* sql`UPDATE event SET data = '{"title":"title 9"}' WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${damaged}) AND seq = 2`
          yield* sql`UPDATE event_sequence SET floor = 1 WHERE session_id = ${pruned}`
          yield* sql`DELETE FROM event WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${missing}) AND seq = 3`
          const before = yield* contents
          const failures = yield* Effect.forEach([damaged, pruned, missing, session()], (id) =>
            Effect.flip(Rebuild.rebuild(id))
          )
          assert.deepStrictEqual(
            failures.map(({ _tag }) => _tag),
            ["EventUnreadable", "EventUnreadable", "EventUnreadable", "SessionNotFound"]
          )
          assert.deepStrictEqual(yield* contents, before)
        })
    )
  })

  it.effect("PJ-19: what is appended while a session is rebuilt is in its rows, and so is what was there", () =>
    Effect.gen(function* () {
      const [log, sql, id, other] = [yield* EventLog, yield* SqlClient.SqlClient, session(), session()]
      yield* begin(other)
      yield* begin(id)
      // Prompts that wait: several steps of rows.
      for (let n = 0; n < 20; n += 1)
        yield* log.append(
          id,
          Arr.makeBy(20, () => admitted(message()))
        )
      yield* sql`DELETE FROM session_input
          WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${id}) AND admitted_seq > 3`
      const appending = Effect.forEach([id, other], (each) =>
        log.append(each, [renamed(unique()), admitted(message())])
      )
      const appended = yield* Effect.fork(Effect.forever(appending))
      yield* Rebuild.rebuild(id)
      yield* Fiber.interrupt(appended)
      const [after, head] = [yield* contents, yield* log.latest(id)]
      assert.deepStrictEqual(Chunk.toReadonlyArray(yield* Stream.runCollect(Doctor.verify)), [])
      assert.deepStrictEqual(yield* Rebuild.rebuild(id), { sessions: 1, events: head + 1 })
      assert.deepStrictEqual(yield* contents, after)
    }).pipe(Effect.provide(layer))
  )

  it.effect("PJ-8, PG-13: texts with U+0000, rows at wrong places and rows too many are rebuilt as they were", () =>
    Effect.gen(function* () {
      const [log, sql, id] = [yield* EventLog, yield* SqlClient.SqlClient, session()]
      const [assistantMessageID, inputs] = [message(), Arr.makeBy(200, () => message())]
      yield* log.append(id, [
        created,
        renamed("a\0b"),
        ...inputs.map((input) => admitted(input)),
        draft("session.next.step.started", { assistantMessageID, agent: "a", model: { providerID: "p", id: "m" } }),
        ...["t\0", "t", "u"].map((textID) => draft("session.next.text.started", { assistantMessageID, textID }))
      ])
      const live = yield* contents
      assert.deepStrictEqual(Chunk.toReadonlyArray(yield* Stream.runCollect(Doctor.verify)), [])
      const mine = sql`session = (SELECT session FROM event_sequence WHERE session_id = ${id})`
      yield* sql`UPDATE session_input SET admitted_seq = 5000 WHERE id = ${inputs[0] ?? ""}`
      yield* sql`UPDATE session_message SET seq = 400 WHERE ${mine}`
      yield* sql`UPDATE session_part SET key = 'z' WHERE ${mine} AND key = 'u'`
      yield* sql`UPDATE session_part SET key = 'u' WHERE ${mine} AND key = 't'`
      yield* sql`INSERT INTO session_leaf (session, seq, message_id)
          SELECT session, 3, 'x' FROM event_sequence WHERE session_id = ${id}`
      yield* Rebuild.rebuild(id)
      assert.deepStrictEqual(yield* contents, live)
    }).pipe(Effect.provide(layer))
  )
}
