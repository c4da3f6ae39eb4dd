/** Kills copies and restores at random operations, and checks what is left. Used by a quick and a long test. */
import { copyFileSync, existsSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Effect, FastCheck as fc } from "effect"
import * as Backup from "../../packages/log/src/maintenance/Backup.ts"
import { childProgram, runChild } from "./Child.ts"
import { logAt, temporaryFolder } from "./Database.ts"
import { begin, session } from "./Logs.ts"

const remove = (path: string): void => rmSync(path, { force: true })

/** The sessions in a file, or undefined without one. It must be sound. */
const sessionsIn = (path: string): number | undefined => {
  if (!existsSync(path)) return undefined
  const db = new Sqlite(path)
  try {
    assert.strictEqual(db.pragma("integrity_check", { simple: true }), "ok", path)
    return Number(db.prepare("SELECT count(*) FROM event_sequence").pluck().get())
  } finally {
    db.close()
  }
}

const filled = (path: string, sessions: number) =>
  Effect.gen(function* () {
    for (let n = 0; n < sessions; n++) yield* begin(session(), 100)
  }).pipe(Effect.provide(logAt(path)))

const operations = fc.record({ operation: fc.constantFrom("backup", "restore"), at: fc.nat(26), exists: fc.boolean() })

/** Runs so many children; after each, every name holds what it held before, or the whole copy. */
export const survives = (runs: number, seed: number) =>
  Effect.gen(function* () {
    const [{ outfile }, folder] = [yield* childProgram("backupChild.ts"), yield* temporaryFolder]
    const [three, five] = [join(folder, "three.sqlite"), join(folder, "five.sqlite")]
    yield* filled(three, 3)
    yield* filled(five, 5)
    for (const path of [three, five]) new Sqlite(path).close()
    let kills = 0
    for (const { at, exists, operation } of fc.sample(operations, { numRuns: runs, seed })) {
      const target = join(folder, "target.sqlite")
      for (const name of readdirSync(folder)) {
        if (name.startsWith("target.sqlite.replaced")) remove(join(folder, name))
      }
      remove(target)
      if (exists) copyFileSync(three, target)
      const args = operation === "backup" ? [five, target] : [target, five]
      const killed = yield* runChild(outfile, [operation, ...args, `${at}`])
      if (killed) kills += 1
      const found = sessionsIn(target)
      assert.include(killed ? [exists ? 3 : undefined, 5] : [5], found, `${operation} ${at} ${exists}`)
      // What a kill left is deleted by the next copy to the name, and the other database is not touched.
      yield* Backup.backup({ database: five, file: target, force: true })
      assert.deepStrictEqual([sessionsIn(target), sessionsIn(five)], [5, 5])
      assert.deepStrictEqual(
        readdirSync(folder).filter((name) => name.includes(".partial")),
        []
      )
    }
    return kills
  }).pipe(Effect.scoped)
