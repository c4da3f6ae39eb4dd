/**
 * Method: the append of a compaction's end fails at its second statement, the third, and so on until it meets no fault;
 * and, from the facade down, in a projector of its transaction.
 */
import { SqlClient, SqlError } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Struct } from "effect"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import type { Projector } from "../../packages/log/src/log/Appends.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { dataOf, failureOf, transcript } from "../runner/support/Runs.ts"
import { temporaryDatabase } from "../support/Database.ts"
import { Faults, faultyLog } from "../support/FaultySql.ts"
import { eventTypes, say, scene } from "../support/Harness.ts"
import { admitted, begin, contents, message, renamed, session } from "../support/Logs.ts"
import { says } from "../support/ScriptedModel.ts"
import { checkpointIn, exchange, long, narrow, summary } from "./support/Talks.ts"

it.scopedLive(
  "CM-7: whichever statement of a compaction's end fails, there is neither event, message nor boundary",
  () =>
    Effect.gen(function* () {
      const filename = yield* temporaryDatabase
      yield* Effect.gen(function* () {
        const [log, sql, faults, id] = [yield* EventLog, yield* SqlClient.SqlClient, yield* Faults, session()]
        const [input, messageID] = [message(), message()]
        yield* begin(id)
        yield* log.append(id, [
          admitted(input),
          draft("session.next.prompt.promoted", { messageID: input, prompt: { text: "hello" }, timeCreated: 1 }),
          draft("session.next.compaction.started", { messageID, reason: "auto" })
        ])
        const ended = draft("session.next.compaction.ended", {
          messageID,
          reason: "auto",
          text: summary("To be whole"),
          recent: "[User]: hello",
          readFiles: ["/work/a.ts"],
          modifiedFiles: [],
          tokensBefore: 9_000,
          cost: 0.1,
          tokens: { input: 10, output: 5, reasoning: 0, cache: { read: 0, write: 0 } }
        })
        let outcome: Exit.Exit<unknown, unknown> = Exit.void
        // A BEGIN that fails is tried again; every later statement fails the append.
        let tried = 1
        do {
          tried += 1
          const before = yield* contents
          faults.ran = []
          faults.fails = (index) => index === tried
          outcome = yield* Effect.exit(log.append(id, [ended]))
          faults.fails = () => false
          if (Exit.isSuccess(outcome)) break
          assert.deepStrictEqual(yield* contents, before)
          yield* log.append(id, [renamed(`after ${tried}`)])
        } while (tried < 50)
        // BEGIN, heads, place, events, message, session, reserved id, COMMIT: none was left out.
        assert.isAtLeast(tried, 7)
        const rows = yield* sql<{
          readonly type: string
        }>`SELECT type FROM session_message WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${id}) ORDER BY seq`
        assert.deepStrictEqual(rows.map(Struct.get("type")), ["user", "compaction"])
        const [row] = yield* sql<{ readonly cost: number; readonly compaction_running: string | null }>`
        SELECT cost, compaction_running FROM session WHERE id = ${id}`
        assert.deepStrictEqual(row, { cost: 0.1, compaction_running: null })
      }).pipe(Effect.provide(faultyLog(filename)))
    })
)

it.scoped("CM-7: an end that cannot be stored fails the run, the past stays, and a later attempt succeeds", () =>
  Effect.gen(function* () {
    let broken = true
    const projector: Projector = {
      name: "broken",
      project: (events) => {
        if (!broken || !events.some(({ type }) => type === "session.next.compaction.ended")) return Effect.void
        return new SqlError.SqlError({
          message: "no",
          cause: Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR" })
        })
      }
    }
    yield* Effect.gen(function* () {
      const { id, model, sessions } = yield* scene()
      for (const name of ["one", "two", "three"]) yield* exchange(id, name)
      yield* model.answer(says(summary("To be lost")))
      yield* say(id, long("four", 300), { resume: false })
      assert.strictEqual(yield* failureOf(sessions.resume(id)), "LogUnavailable")
      assert.notInclude(yield* eventTypes(id), "session.next.compaction.ended")
      assert.isFalse((yield* transcript(id)).some(({ type }) => type === "compaction"))
      const [failed] = yield* dataOf(id, "session.next.compaction.failed")
      // What it cost is told all the same.
      assert.deepInclude(failed?.tokens, { input: 10, output: 5 })
      assert.isUndefined((yield* sessions.get(id)).compaction)
      broken = false
      yield* model.request
      yield* model.answer(says(summary("To be kept")))
      yield* model.answer(says("Four is done."))
      yield* sessions.resume(id)
      yield* model.request
      assert.include(checkpointIn(yield* model.request), "To be kept")
    }).pipe(Effect.provide(narrow({ projectors: [projector] })))
  })
)
