/** Kills imports at random statements, imports again, and compares. Used by a quick and a long test. */
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { NodeFileSystem } from "@effect/platform-node"
import { assert } from "@effect/vitest"
import { Effect, FastCheck as fc, Layer } from "effect"
import { isComplete } from "../../packages/log/src/domain/Imported.ts"
import * as Store from "../../packages/log/src/Store.ts"
import { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import { importLog } from "../../packages/formats/src/import/Import.ts"
import * as LogSource from "../../packages/formats/src/import/LogSource.ts"
import { linesOf, longRecords } from "../formats/support/EntryTexts.ts"
import { eventsOf } from "../formats/support/RoundTrips.ts"
import { childProgram, runChild } from "./Child.ts"
import { temporaryFolder } from "./Database.ts"

const storeAt = (filename: string) => Effect.provide(Layer.merge(Store.layer({ filename }), NodeFileSystem.layer))

/** Imports the log and returns the session's events without what a database assigns. */
const imported = (filename: string, log: string) =>
  Effect.gen(function* () {
    const { sessionID } = yield* importLog((ends) => LogSource.open(log, "auto", ends), { directory: "/tmp" })
    const session = yield* (yield* SessionStore).get(sessionID)
    assert.isTrue(session.imported !== undefined && isComplete(session.imported))
    assert.strictEqual((yield* (yield* SessionStore).list({})).items.length, 1)
    const events = yield* eventsOf(sessionID)
    return events.map(({ created, data, seq, type }) => ({ created, data, seq, type }))
  }).pipe(storeAt(filename))

/** A session that an import left unfinished says so. */
const assertHonest = (filename: string, whole: number) =>
  Effect.gen(function* () {
    for (const { id, imported } of (yield* (yield* SessionStore).list({})).items)
      if ((yield* eventsOf(id)).length < whole) assert.isTrue(imported !== undefined && !isComplete(imported))
  }).pipe(storeAt(filename))

/** Runs so many children, up to three on a database; returns how many were killed. */
export const survives = Effect.fnUntraced(function* (runs: number, seed: number) {
  const [{ outfile }, folder] = [yield* childProgram("importChild.ts"), yield* temporaryFolder]
  const log = join(folder, "log.jsonl")
  writeFileSync(log, linesOf(longRecords(400)))
  const clean = yield* imported(join(folder, "clean.sqlite"), log)
  const filename = join(folder, "killed.sqlite")
  let killed = 0
  for (const [n, at] of fc.sample(fc.nat(120), { numRuns: runs, seed }).entries()) {
    if (yield* runChild(outfile, [filename, log, String(at)])) killed += 1
    yield* assertHonest(filename, clean.length)
    if (n % 3 !== 2 && n < runs - 1) continue
    assert.deepStrictEqual(yield* imported(filename, log), clean)
    for (const end of ["", "-wal", "-shm"]) rmSync(`${filename}${end}`, { force: true })
  }
  return killed
})
