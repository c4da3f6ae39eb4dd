/** Writes of several callers in one commit: which share it, and what one of them that fails does to the others. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Cause, Effect, Exit, Layer } from "effect"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import type { Statements } from "../../packages/log/src/storage/Connection.ts"
import { jointly } from "../../packages/log/src/storage/GroupCommit.ts"
import { temporaryDatabase } from "../support/Database.ts"
import { Faults, faultyLog } from "../support/FaultySql.ts"
import { begin, renamed, session } from "../support/Logs.ts"

const faulty = Layer.unwrapScoped(Effect.map(temporaryDatabase, (filename) => faultyLog(filename)))

class Unwanted {
  readonly _tag = "Unwanted"
}

const isUnwanted = (thrown: unknown): thrown is Unwanted => thrown instanceof Unwanted

it.layer(faulty)("group commit", (it) => {
  const scene = Effect.gen(function* () {
    const [sql, faults] = [yield* SqlClient.SqlClient, yield* Faults]
    yield* sql`CREATE TABLE IF NOT EXISTS word (word TEXT NOT NULL UNIQUE)`
    yield* sql`DELETE FROM word`
    const write = (word: string) => (statements: Statements) => statements.run("INSERT INTO word VALUES (?)", [word])
    const words = Effect.map(sql<{ readonly word: string }>`SELECT word FROM word ORDER BY rowid`, (rows) =>
      rows.map(({ word }) => word)
    )
    faults.ran = []
    return { sql, faults, write, words, commits: () => faults.ran.filter((text) => text === "COMMIT").length }
  })

  it.effect("EX-781: writes and appends that wait together are one commit, in their order", () =>
    Effect.gen(function* () {
      const { commits, faults, sql, words, write } = yield* scene
      const [id, log] = [session(), yield* EventLog]
      yield* begin(id)
      faults.ran = []
      const [, stored] = yield* Effect.all(
        [jointly(sql, write("one")), log.append(id, [renamed("beside")]), jointly(sql, write("two"))],
        { concurrency: "unbounded" }
      )
      assert.strictEqual(commits(), 1)
      assert.deepStrictEqual(yield* words, ["one", "two"])
      assert.strictEqual(stored[0].seq, 1)
    })
  )

  it.effect("EX-781: work that throws writes nothing, and the others are committed", () =>
    Effect.gen(function* () {
      const { commits, sql, words, write } = yield* scene
      const throwing = (thrown: unknown) =>
        jointly(
          sql,
          (statements) => {
            write("never")(statements)
            throw thrown
          },
          isUnwanted
        )
      const [first, typed, defect, taken, last] = yield* Effect.all(
        [
          jointly(sql, write("one")),
          throwing(new Unwanted()),
          throwing(new Error("broken")),
          jointly(sql, write("one")),
          jointly(sql, write("two"))
        ].map(Effect.exit),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(yield* words, ["one", "two"])
      assert.strictEqual(commits(), 1)
      assert.deepStrictEqual([first, last], [Exit.succeed(1), Exit.succeed(1)])
      assert.isTrue(typed !== undefined && Exit.isFailure(typed) && Cause.isFailType(typed.cause))
      assert.isTrue(defect !== undefined && Exit.isFailure(defect) && Cause.isDieType(defect.cause))
      assert.isTrue(taken !== undefined && Exit.isFailure(taken) && Cause.isFailType(taken.cause))
    })
  )

  it.effect("EX-782: after a failure of the database each write is committed alone, once", () =>
    Effect.gen(function* () {
      const { commits, faults, sql, words, write } = yield* scene
      let failures = 0
      faults.fails = (_, text) => text === "COMMIT" && ++failures === 1
      yield* Effect.all([jointly(sql, write("one")), jointly(sql, write("two"))], { concurrency: "unbounded" })
      faults.fails = () => false
      assert.deepStrictEqual(yield* words, ["one", "two"])
      assert.strictEqual(commits(), 3)
    })
  )

  it.effect("EX-782: a write that the database refuses alone fails with its error", () =>
    Effect.gen(function* () {
      const { faults, sql, words, write } = yield* scene
      faults.fails = (_, text) => text === "COMMIT"
      const error = yield* Effect.flip(jointly(sql, write("one")))
      faults.fails = () => false
      assert.strictEqual(error._tag, "SqlError")
      assert.deepStrictEqual(yield* words, [])
    })
  )
})
