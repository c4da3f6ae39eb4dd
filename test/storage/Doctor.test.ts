/** Verification of a database in a file or in memory. */
import { closeSync, openSync, readFileSync, writeSync } from "node:fs"
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Chunk, Effect, Stream } from "effect"
import * as Doctor from "../../packages/log/src/maintenance/Doctor.ts"
import { schemaVersion } from "../../packages/log/src/storage/Database.ts"
import { logAt, memoryLog, temporaryDatabase } from "../support/Database.ts"
import { begin, contents, session } from "../support/Logs.ts"
import { full, verification } from "./contract/Verification.ts"

const findings = Effect.map(Stream.runCollect(Doctor.verify), Chunk.toReadonlyArray)

verification(memoryLog)

it.scopedLive("ST-12: a sound file has no findings, and verifying writes nothing to the file", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      yield* full(session())
      yield* begin(session(), 1500)
      const [before, bytes] = [yield* contents, readFileSync(filename)]
      assert.deepStrictEqual(yield* findings, [])
      assert.deepStrictEqual(yield* contents, before)
      assert.isTrue(readFileSync(filename).equals(bytes))
    }).pipe(Effect.provide(logAt(filename)))
  })
)

it.effect("ST-13: a payload that is no JSON any more is found", () =>
  Effect.gen(function* () {
    const [sql, id] = [yield* SqlClient.SqlClient, session()]
    yield* full(id)
    yield* sql`UPDATE event SET data = substr(data, 2) WHERE seq = 4`
    const [found] = yield* findings
    assert.strictEqual(found?.sessionID, id)
    assert.match(found?.what ?? "", /event 4 /)
  }).pipe(Effect.provide(memoryLog))
)

it.effect("ST-13: types that this build does not know, other settings and another schema are warnings or errors", () =>
  Effect.gen(function* () {
    const [sql, id] = [yield* SqlClient.SqlClient, session()]
    yield* full(id)
    yield* sql`PRAGMA synchronous = NORMAL`
    yield* sql`INSERT INTO migration (migration_id, name) VALUES (${schemaVersion + 1}, 'later')`
    const found = yield* findings
    assert.deepStrictEqual(
      found.map(({ severity, what }) => [severity, what]),
      [
        ["warning", "synchronous is 1, not 2"],
        ["error", `the schema is version ${schemaVersion + 1}, this build knows ${schemaVersion}`]
      ]
    )
  }).pipe(Effect.provide(memoryLog))
)

it.scopedLive("ST-13: a broken page of the file is a finding, not the end of the check", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    yield* Effect.provide(begin(session(), 3000), logAt(filename))
    yield* Effect.provide(full(session()), logAt(filename))
    yield* Effect.gen(function* () {
      // A page in the middle of the event table loses its header.
      const [page] = yield* (yield* SqlClient.SqlClient)<{ readonly pageno: number }>`
        SELECT pageno FROM dbstat WHERE name = 'event' AND pagetype = 'leaf' LIMIT 1 OFFSET 20`
      const file = openSync(filename, "r+")
      writeSync(file, Buffer.alloc(64, 255), 0, 64, ((page?.pageno ?? 100) - 1) * 4096)
      closeSync(file)
      const found = yield* findings
      assert.isTrue(found.some(({ severity, what }) => severity === "error" && what.includes("damaged")))
    }).pipe(Effect.provide(logAt(filename)))
  })
)
