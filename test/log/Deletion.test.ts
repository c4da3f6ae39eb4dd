/** A removed session leaves no byte of its text in the files of the database. */
import { join } from "node:path"
import * as SqlClient from "@effect/sql/SqlClient"
import { assert, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Effect } from "effect"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Removals from "../../packages/log/src/log/Removals.ts"
import { childProgram, startChild } from "../support/Child.ts"
import { logAt, temporaryDatabase } from "../support/Database.ts"
import { begin, readAll, session } from "../support/Logs.ts"
import { begun, pruned } from "../support/Pruning.ts"
import { erases, plant, tracesIn } from "./support/Traces.ts"

it.scopedLive("LG-50: after a removal no file of the database holds a byte of the session's text", () =>
  Effect.gen(function* () {
    const [filename, id, other] = [yield* temporaryDatabase, session(), session()]
    const folder = join(filename, "..")
    yield* Effect.gen(function* () {
      const log = yield* EventLog
      yield* begin(other)
      yield* plant(id, other, 60)
      assert.isNotEmpty(tracesIn(folder))
      assert.isTrue(yield* log.remove(id))
      assert.deepStrictEqual(tracesIn(folder), {})
      assert.strictEqual((yield* readAll(other)).length, 61)
    }).pipe(Effect.provide(logAt(filename)))
    assert.deepStrictEqual(tracesIn(folder), {})
  })
)

it.scopedLive("LG-50: after the removal of a pruned session no byte of its kept blocks and prompts is left", () =>
  Effect.gen(function* () {
    const [filename, id] = [yield* temporaryDatabase, session()]
    const folder = join(filename, "..")
    yield* Effect.gen(function* () {
      const [log, sql] = [yield* EventLog, yield* SqlClient.SqlClient]
      yield* begun(id, 12)
      yield* pruned(id)
      const rows = yield* sql<{ readonly packed: Uint8Array }>`SELECT packed FROM content`
      const texts = ["question 3", ...rows.map(({ packed }) => Buffer.from(packed).toString("latin1").slice(0, 60))]
      assert.isAbove(texts.length, 1)
      for (const text of texts) assert.isNotEmpty(tracesIn(folder, text))
      assert.isTrue(yield* log.remove(id))
      for (const text of texts) assert.deepStrictEqual(tracesIn(folder, text), {})
    }).pipe(Effect.provide(logAt(filename)))
  })
)

it.scopedLive("LG-50: a process that follows the session ends its tail, and keeps no byte of it in the files", () =>
  Effect.gen(function* () {
    const [filename, id, other] = [yield* temporaryDatabase, session(), session()]
    const program = yield* childProgram()
    yield* Effect.gen(function* () {
      const log = yield* EventLog
      yield* begin(other)
      yield* plant(id, other, 120)
      const child = yield* startChild(program.outfile, filename)
      yield* child.tell({ do: "follow", sessionID: id, after: -1 })
      const head = yield* log.latest(id)
      for (let seq = 0; seq <= head; seq++) assert.deepInclude(yield* child.answer, { is: "event", seq })
      assert.isTrue(yield* log.remove(id))
      assert.deepInclude(yield* child.answer, { is: "failed", tag: "SessionNotFound" })
      assert.deepStrictEqual(tracesIn(join(filename, "..")), {})
    }).pipe(Effect.provide(logAt(filename)))
  })
)

it.scopedLive("LG-51: while a reader needs the text it stays, and it goes when the reader has ended", () =>
  Effect.gen(function* () {
    const [filename, id, other] = [yield* temporaryDatabase, session(), session()]
    const folder = join(filename, "..")
    yield* Effect.gen(function* () {
      const [log, sql] = [yield* EventLog, yield* SqlClient.SqlClient]
      yield* begin(other)
      yield* plant(id, other, 30)
      const reader = new Sqlite(filename, { readonly: true })
      reader.exec("BEGIN")
      const count = reader.prepare<[], number>("SELECT count(*) FROM event").pluck()
      const before = count.get()
      assert.isTrue(yield* log.remove(id))
      assert.strictEqual(count.get(), before)
      assert.isNotEmpty(tracesIn(folder))
      const unswept = sql<{ readonly number: number }>`SELECT number FROM session_removal WHERE swept = 0`
      assert.strictEqual((yield* unswept).length, 1)
      reader.exec("COMMIT")
      // What the background does after its pause.
      yield* Effect.scoped(Effect.flatMap(Removals.makeSweeping(sql), ({ sweep }) => sweep))
      assert.deepStrictEqual(tracesIn(folder), {})
      assert.isEmpty(yield* unswept)
      reader.close()
    }).pipe(Effect.provide(logAt(filename)))
  })
)

it.scopedLive("LG-52: a removal that was killed at any instant is whole or finished after the next opening", () =>
  erases(Number(process.env["DAYBOOK_RUNS"] ?? 2), Math.random)
)
