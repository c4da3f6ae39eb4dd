/** Verification and rebuild, on PostgreSQL. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Chunk, Deferred, Effect, Fiber, Layer, Stream } from "effect"
import { describe } from "vitest"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Doctor from "../../packages/log/src/maintenance/Doctor.ts"
import * as Rebuild from "../../packages/log/src/maintenance/Rebuild.ts"
import { immediately } from "../../packages/log/src/storage/Transaction.ts"
import { rebuilding } from "../projection/contract/Rebuilding.ts"
import { verification } from "../storage/contract/Verification.ts"
import { begin, renamed, session } from "../support/Logs.ts"
import { lacks } from "../support/Parts.ts"
import { postgresLog } from "../support/Postgres.ts"

const findings = Effect.map(Stream.runCollect(Doctor.verify), Chunk.toReadonlyArray)

const damages = [
  [
    "a last position that an event is beyond",
    "UPDATE log_head SET position = 2",
    /the last position is 2, an event has 4/
  ],
  ["a last session that a head is beyond", "UPDATE log_head SET session = 0", /the last session is 0, a head has 1/],
  ["a log without last numbers", "DELETE FROM log_head", /the row of the last position is missing/],
  ["events without a session", "UPDATE event SET session = 77", /rows of event belong to session number 77/],
  [
    "messages without a session",
    "INSERT INTO session_message (id, session, seq, type, time_created) VALUES ('m', 88, 0, 'user', 0)",
    /rows of session_message belong to session number 88/
  ]
] as const

describe.skipIf(lacks("postgres"))("PostgreSQL", () => {
  verification(postgresLog)
  rebuilding(postgresLog)

  for (const [name, statement, what] of damages) {
    it.effect(`PG-40: ${name} is found`, () =>
      Effect.gen(function* () {
        yield* begin(session(), 3)
        yield* (yield* SqlClient.SqlClient).unsafe(statement)
        const [found] = yield* findings
        assert.match(found?.what ?? "", what)
        assert.strictEqual(found?.severity, "error")
      }).pipe(Effect.provide(postgresLog))
    )
  }

  it.effect("PG-41: a rebuild waits for its session's head, and appends of other sessions pass meanwhile", () =>
    Effect.gen(function* () {
      const [log, sql, id, other] = [yield* EventLog, yield* SqlClient.SqlClient, session(), session()]
      yield* begin(id, 3)
      yield* begin(other)
      yield* sql`UPDATE session SET title = 'broken' WHERE id = ${id}`
      const [held, enough] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holding = Effect.all([
        sql`SELECT 1 FROM event_sequence WHERE session_id = ${id} FOR UPDATE`,
        Deferred.succeed(held, undefined),
        Deferred.await(enough)
      ])
      const holder = yield* Effect.fork(immediately(sql)(holding))
      yield* Deferred.await(held)
      const rebuilding = yield* Effect.fork(Rebuild.rebuild(id))
      const waiting = Effect.map(
        sql`SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FROM event_sequence%'`,
        ({ length }) => length > 0
      )
      yield* Effect.repeat(waiting, { until: (is) => is })
      yield* log.append(other, [renamed("meanwhile")])
      yield* Deferred.succeed(enough, undefined)
      yield* Fiber.join(holder)
      yield* Fiber.join(rebuilding)
      assert.deepStrictEqual(yield* findings, [])
    }).pipe(Effect.provide(Layer.fresh(postgresLog)))
  )
})
