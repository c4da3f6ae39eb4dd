/**
 * Method: one statement of a write transaction fails, the first, the second, and so on until a run meets no fault.
 * Whatever the place, the tables must be as before or as after a whole append, and the log must go on working.
 */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { type Draft, draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as SqlHook from "../../packages/log/src/log/SqlHook.ts"
import { ReadSql } from "../../packages/log/src/storage/Database.ts"
import { logAt, temporaryDatabase, temporaryFolder } from "../support/Database.ts"
import { Faults, faultyLog } from "../support/FaultySql.ts"
import { heldAppend, rounds } from "../support/Holding.ts"
import { admitted, begin, contents, created, foreign, message, readAll, renamed, session } from "../support/Logs.ts"

/** Drafts that touch every projected table, by insert and by update. */
const rich = (): NonEmptyReadonlyArray<Draft> => {
  const [input, assistantMessageID] = [message(), message()]
  return [
    admitted(input),
    draft("session.next.prompt.promoted", { messageID: input, prompt: { text: "hello" }, timeCreated: 1 }),
    draft("session.next.step.started", { assistantMessageID, agent: "a", model: { providerID: "p", id: "m" } }),
    draft("session.next.text.started", { assistantMessageID, textID: "t" }),
    draft("session.next.text.ended", { assistantMessageID, textID: "t", text: "hello" })
  ]
}

const hook = SqlHook.check((statements, id) => {
  statements.run(
    `INSERT INTO session_instruction SELECT session, 0 FROM event_sequence WHERE session_id = ?
      ON CONFLICT (session, seq) DO UPDATE SET seq = 0`,
    [id]
  )
  return undefined
})

it.scopedLive("EV-2: an append whose Nth statement fails leaves no trace, for every N", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      const [log, faults, id] = [yield* EventLog, yield* Faults, session()]
      yield* begin(id)
      let outcome: Exit.Exit<unknown, { readonly _tag: string }> = Exit.void
      let tried = 0
      do {
        tried += 1
        const before = yield* contents
        faults.ran = []
        faults.fails = (index) => index === tried
        outcome = yield* Effect.exit(log.append(id, rich(), { commit: hook }))
        faults.fails = () => false
        if (Exit.isSuccess(outcome)) break
        assert.deepStrictEqual(yield* contents, before)
        yield* log.append(id, [renamed(`after ${tried}`)])
      } while (tried < 100)
      // BEGIN, heads, last position, head, events, four tables, reserved ids, hook, COMMIT: none was left out.
      assert.isAtLeast(tried, 11)
      assert.strictEqual((yield* readAll(id)).length, tried + 5)
    }).pipe(Effect.provide(faultyLog(filename)))
  })
)

it.scopedLive("LG-22: a fault in a group commit is met by writing each append again, alone: all are stored once", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      const [log, faults, gateSession] = [yield* EventLog, yield* Faults, session()]
      yield* begin(gateSession)
      for (let at = 1; at <= 12; at++) {
        const ids = [session(), session(), session()]
        const { appending: held, open } = yield* heldAppend(gateSession, [renamed("hold")])
        const waiting = yield* Effect.forEach(ids, (id) => Effect.fork(log.append(id, [created, ...rich()])))
        yield* rounds
        let since: number | undefined
        // The held append's own commit comes first, and meets no fault.
        faults.fails = (_, text) => {
          if (since !== undefined) since += 1
          else if (text === "COMMIT") since = 0
          return since === at
        }
        yield* open
        yield* Fiber.join(held)
        yield* Effect.forEach(waiting, Fiber.join)
        faults.fails = () => false
        for (const id of ids) assert.strictEqual((yield* readAll(id)).length, 6)
      }
    }).pipe(Effect.provide(faultyLog(filename)))
  })
)

it.scopedLive("EV-2: an append that keeps failing fails alone; its neighbours in the batch are stored", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      const [log, faults, bad] = [yield* EventLog, yield* Faults, session()]
      const neighbours = Array.from({ length: 10 }, () => session())
      faults.fails = (_, text, parameters) => text.startsWith("INSERT INTO event_sequence ") && parameters.includes(bad)
      const outcomes = yield* Effect.forEach(
        [...neighbours.slice(0, 5), bad, ...neighbours.slice(5)],
        (id) => Effect.either(log.append(id, [created])),
        { concurrency: "unbounded" }
      )
      const [failed, ...others] = outcomes.filter(({ _tag }) => _tag === "Left")
      assert.deepStrictEqual(others, [])
      assert.isTrue(failed?._tag === "Left" && failed.left._tag === "LogUnavailable" && failed.left.reason === "io")
      assert.strictEqual(yield* log.latest(bad), -1)
      for (const id of neighbours) assert.strictEqual(yield* log.latest(id), 0)
    }).pipe(Effect.provide(faultyLog(filename)))
  })
)

it.scopedLive("RP-1: a replay, and a removal, whose Nth statement fails change nothing, for every N", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      const [log, faults, id] = [yield* EventLog, yield* Faults, session()]
      yield* log.append(id, [created, ...rich()])
      const events = yield* foreign(id)
      let removed: Exit.Exit<boolean, unknown> = Exit.succeed(false)
      for (let at = 1; !(Exit.isSuccess(removed) && removed.value); at++) {
        assert.isBelow(at, 30)
        const before = yield* contents
        faults.ran = []
        faults.fails = (index) => index === at
        removed = yield* Effect.exit(log.remove(id))
        faults.fails = () => false
        if (Exit.isFailure(removed)) assert.deepStrictEqual(yield* contents, before)
      }
      let replayed: Exit.Exit<void, unknown> = Exit.fail("not yet")
      for (let at = 1; Exit.isFailure(replayed); at++) {
        assert.isBelow(at, 40)
        const before = yield* contents
        faults.ran = []
        faults.fails = (index) => index === at
        replayed = yield* Effect.exit(log.replay(events))
        faults.fails = () => false
        if (Exit.isFailure(replayed)) assert.deepStrictEqual(yield* contents, before)
      }
      assert.deepStrictEqual(yield* foreign(id), events)
    }).pipe(Effect.provide(faultyLog(filename)))
  })
)

it.scopedLive("ST-9: a full disk is a typed error, stores nothing, and the log goes on when there is room", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    yield* Effect.gen(function* () {
      const [log, sql, id] = [yield* EventLog, yield* SqlClient.SqlClient, session()]
      yield* begin(id)
      const [pages] = yield* sql<{ readonly page_count: number }>`PRAGMA page_count`
      const before = yield* contents
      yield* sql.unsafe(`PRAGMA max_page_count = ${pages?.page_count}`)
      const big = renamed("x".repeat(1_000_000))
      const full = yield* Effect.flip(log.append(id, [big]))
      assert.deepInclude(full, { _tag: "LogUnavailable", reason: "disk-full" })
      assert.deepStrictEqual(yield* contents, before)
      yield* sql.unsafe("PRAGMA max_page_count = 4294967294")
      yield* log.append(id, [big])
      assert.strictEqual(yield* log.latest(id), 1)
      const read = yield* ReadSql
      assert.deepStrictEqual(yield* read`PRAGMA integrity_check`, [{ integrity_check: "ok" }])
    }).pipe(Effect.provide(logAt(`${folder}/full.db`)))
  })
)
