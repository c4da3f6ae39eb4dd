/**
 * What a database in memory leaves on a disk: nothing. Method: SQLite's folder for temporary files is one of the test's
 * own, and the system tells of every file that is made in it, also of one that is unlinked at once.
 */
import { readdirSync, watch, writeFileSync } from "node:fs"
import { join } from "node:path"
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Queue } from "effect"
import * as Daybook from "../../packages/embedded/src/Daybook.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { memoryLog, temporaryFolder } from "../support/Database.ts"
import { answerTo, runtime, scene } from "../support/Harness.ts"
import { begin, session } from "../support/Logs.ts"
import { callParts, calls } from "../support/ScriptedModel.ts"

/** The names of all files that were made in the folder while the effect ran; `sentinel` is made after it. */
const madeIn = <A, E, R>(folder: string, effect: Effect.Effect<A, E, R>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const names = yield* Queue.unbounded<string>()
      yield* Effect.acquireRelease(
        Effect.sync(() => watch(folder, (_, name) => void Queue.unsafeOffer(names, String(name)))),
        (watcher) => Effect.sync(() => watcher.close())
      )
      yield* effect
      writeFileSync(join(folder, "sentinel"), "")
      const made = new Set<string>()
      for (let name = ""; name !== "sentinel"; made.add(name)) name = yield* Queue.take(names)
      return [...made]
    })
  )

/** The process with its folders for temporary files inside the given one. */
const withTemporary = <A, E, R>(folder: string, effect: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const before = { TMPDIR: process.env["TMPDIR"], SQLITE_TMPDIR: process.env["SQLITE_TMPDIR"] }
      Object.assign(process.env, { TMPDIR: folder, SQLITE_TMPDIR: folder })
      return before
    }),
    () => effect,
    (before) =>
      Effect.sync(() => {
        for (const [name, value] of Object.entries(before)) {
          if (value === undefined) delete process.env[name]
          else process.env[name] = value
        }
      })
  )

it.scopedLive("ST-15: a sort larger than the cache, in a database in memory, makes no file", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const sorting = Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* begin(session(), 10)
      yield* sql`PRAGMA cache_size = 10`
      const rows = yield* sql<{ readonly n: number }>`WITH RECURSIVE line (n) AS (
          SELECT 1 UNION ALL SELECT n + 1 FROM line WHERE n < 100000)
        SELECT count(*) AS n FROM (SELECT n FROM line ORDER BY randomblob(200) LIMIT 99999 OFFSET 1)`
      assert.strictEqual(rows[0]?.n, 99_999)
    })
    const made = yield* madeIn(folder, withTemporary(folder, Effect.provide(sorting, memoryLog)))
    assert.deepStrictEqual(made, ["sentinel"])
  })
)

it.scopedLive("TO-26: a whole run in memory that keeps nothing makes no file, whatever its tools print", () =>
  Effect.gen(function* () {
    const [folder, work] = [yield* temporaryFolder, yield* temporaryFolder]
    const permissions = [{ permission: "*", resource: "*", verdict: "allow" as const }]
    const options: Partial<Daybook.Options> = { toolOutputs: false, agents: [{ name: "free", permissions }] }
    const run = Effect.gen(function* () {
      const { id, log, model, sessions } = yield* scene(work)
      yield* sessions.switchAgent(id, "free")
      yield* model.answer(calls(callParts("call", "bash", { command: "seq 1 100000" })))
      yield* answerTo(id, "print much", "seen")
      yield* log.append(id, [draft("session.next.renamed", { title: "x".repeat(1_000_000) })])
      const { items } = yield* sessions.messages({ sessionID: id })
      const tool = items
        .flatMap((item) => (item.type === "assistant" ? item.content : []))
        .find((it) => it.type === "tool")
      assert.include(JSON.stringify(tool), "It was not kept.")
      assert.notInclude(JSON.stringify(tool), "outputPaths")
    })
    const whole = Effect.provide(run, Layer.fresh(runtime(options)))
    assert.deepStrictEqual(yield* madeIn(folder, withTemporary(folder, whole)), ["sentinel"])
    assert.deepStrictEqual(readdirSync(work), [])
  })
)
