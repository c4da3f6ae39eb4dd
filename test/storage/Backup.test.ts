/** Copies of a database that is used, and restored ones. */
import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { SqlClient } from "@effect/sql"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Backup from "../../packages/log/src/maintenance/Backup.ts"
import * as Doctor from "../../packages/log/src/maintenance/Doctor.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { survives } from "../support/BackupKills.ts"
import { logAt, temporaryFolder } from "../support/Database.ts"
import { begin, readAll, renamed, session } from "../support/Logs.ts"

/** Events of about 2 MB, so that a copy takes several steps. */
const large = Array.from({ length: 40 }, () => renamed("x".repeat(50_000)))

/** A folder with a database of two sessions, closed. */
const prepared = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const [database, file, one, two] = [join(folder, "daybook.db"), join(folder, "copy"), session(), session()]
  yield* Effect.gen(function* () {
    const log = yield* EventLog
    yield* begin(one, 3)
    yield* begin(two)
    for (const title of large) yield* log.append(two, [title])
  }).pipe(Effect.provide(logAt(database)))
  return { folder, database, file, one, two }
})

const eventsIn = (path: string, id: SessionID) => Effect.provide(readAll(id), logAt(path))

const change = (path: string, id: SessionID) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`UPDATE event SET data = '{"title":"changed"}'
      WHERE seq = 1 AND session = (SELECT session FROM event_sequence WHERE session_id = ${id})`
  }).pipe(Effect.provide(logAt(path)))

describe("backup", () => {
  it.scopedLive("ST-42: a copy made during appends holds the database of one instant, and appends continue", () =>
    Effect.gen(function* () {
      const { database, file, one } = yield* prepared
      yield* Effect.gen(function* () {
        const log = yield* EventLog
        let [steps, appended] = [0, 0]
        // Every step commits: without a snapshot the copy would start again each time.
        const onProgress = () => {
          steps += 1
          Effect.runFork(Effect.andThen(log.append(one, [renamed("meanwhile")]), () => (appended += 1)))
        }
        const result = yield* Backup.backup({ database, file, onProgress })
        assert.isAbove(steps, 1)
        assert.deepInclude(result, { file, sessions: 2, bytes: statSync(file).size })
        yield* log.append(one, [renamed("after")])
        assert.isAbove(appended, 0)
        assert.strictEqual((yield* readAll(one)).length, 5 + appended)
        assert.deepStrictEqual(yield* eventsIn(file, one), (yield* readAll(one)).slice(0, 4))
      }).pipe(Effect.provide(logAt(database)))
      const findings = yield* Effect.provide(Stream.runCollect(Doctor.verify), logAt(file))
      assert.deepStrictEqual([...findings], [])
    })
  )

  it.scopedLive("ST-43: a copy is one file with mode 0600 that has its name only when it is complete", () =>
    Effect.gen(function* () {
      const { database, file, folder } = yield* prepared
      const seen: Array<boolean> = []
      yield* Backup.backup({ database, file, onProgress: () => void seen.push(existsSync(file)) })
      assert.isNotEmpty(seen)
      assert.notInclude(seen, true)
      assert.strictEqual(statSync(file).mode & 0o777, 0o600)
      assert.deepStrictEqual(
        readdirSync(folder).filter((name) => name.startsWith("copy")),
        ["copy"]
      )
      // Its bytes alone are the database: a copy of the file needs no write-ahead log.
      assert.strictEqual(readFileSync(file)[18], 1)
    })
  )

  it.scopedLive("ST-44: a copy never replaces a file without force, nor the database itself", () =>
    Effect.gen(function* () {
      const { database, file, folder, one } = yield* prepared
      writeFileSync(file, "mine")
      assert.deepInclude(yield* Effect.flip(Backup.backup({ database, file })), {
        _tag: "BackupFailed",
        reason: "exists"
      })
      const late = join(folder, "late")
      const raced = Backup.backup({ database, file: late, onProgress: () => writeFileSync(late, "mine") })
      assert.deepInclude(yield* Effect.flip(raced), { reason: "exists" })
      assert.deepStrictEqual([readFileSync(file, "utf8"), readFileSync(late, "utf8")], ["mine", "mine"])
      const itself = yield* Effect.flip(Backup.backup({ database, file: database, force: true }))
      assert.deepInclude(itself, { reason: "exists" })
      yield* Backup.backup({ database, file, force: true })
      assert.strictEqual((yield* eventsIn(file, one)).length, 4)
    })
  )

  it.scopedLive("ST-45: with verify, an event that was changed outside Daybook refuses the copy", () =>
    Effect.gen(function* () {
      const { database, file, folder, one } = yield* prepared
      yield* change(database, one)
      const refused = yield* Effect.flip(Backup.backup({ database, file, verify: true }))
      assert.deepInclude(refused, { _tag: "BackupFailed", reason: "unsound" })
      assert.include(refused.message, one)
      assert.isFalse(readdirSync(folder).some((name) => name.startsWith("copy")))
      // Without it the copy is what the database is.
      yield* Backup.backup({ database, file })
    })
  )
})

describe("restore", () => {
  it.scopedLive("ST-46: a restored database holds the copy; the file stays, and so does the replaced database", () =>
    Effect.gen(function* () {
      const { database, file, one } = yield* prepared
      yield* Backup.backup({ database, file })
      const bytes = readFileSync(file)
      yield* Effect.provide(
        Effect.flatMap(EventLog, (log) => log.append(one, [renamed("later")])),
        logAt(database)
      )
      const { aside = "" } = yield* Backup.restore({ database, file })
      assert.strictEqual((yield* eventsIn(database, one)).length, 4)
      assert.strictEqual((yield* eventsIn(aside, one)).length, 5)
      assert.isTrue(bytes.equals(readFileSync(file)))
      yield* Effect.provide(
        Effect.flatMap(EventLog, (log) => log.append(one, [renamed("goes on")])),
        logAt(database)
      )
    })
  )

  it.scoped("ST-46: restores of one second keep each replaced database under a name of its own", () =>
    Effect.gen(function* () {
      const { database, file } = yield* prepared
      yield* Backup.backup({ database, file })
      const restores = yield* Effect.replicateEffect(Backup.restore({ database, file }), 3)
      assert.strictEqual(new Set(restores.map(({ aside }) => aside)).size, 3)
      for (const { aside = "" } of restores) assert.isTrue(existsSync(aside))
    })
  )

  it.scopedLive("ST-46: a database that is used, a damaged copy and another file are refused; nothing changes", () =>
    Effect.gen(function* () {
      const { database, file, folder, one } = yield* prepared
      yield* Backup.backup({ database, file })
      yield* Effect.provide(
        Effect.gen(function* () {
          const refused = yield* Effect.flip(Backup.restore({ database, file }))
          assert.deepInclude(refused, { _tag: "BackupFailed", reason: "in-use" })
        }),
        logAt(database)
      )
      const [text, changed, missing] = [join(folder, "text"), join(folder, "changed"), join(folder, "missing")]
      writeFileSync(text, "no database ".repeat(100))
      copyFileSync(file, changed)
      yield* change(changed, one)
      for (const [bad, reason] of [
        [text, "not-daybook"],
        [changed, "unsound"],
        [missing, "not-found"]
      ] as const) {
        assert.deepInclude(yield* Effect.flip(Backup.restore({ database, file: bad })), { reason })
      }
      const { message } = yield* Effect.flip(Backup.restore({ database, file: missing }))
      assert.strictEqual(message, `${missing}: there is no such file`)
      const nowhere = yield* Effect.flip(Backup.backup({ database, file: join(missing, "copy") }))
      assert.strictEqual(nowhere.message, `${join(missing, "copy")}: ${missing} does not exist`)
      assert.strictEqual((yield* eventsIn(database, one)).length, 4)
      // The copy's own readers left two files beside it, because it is in write-ahead mode.
      assert.deepStrictEqual(
        readdirSync(folder).filter((name) => !name.startsWith("changed-")),
        ["changed", "copy", "daybook.db", "text"]
      )
    })
  )

  it.scopedLive("ST-47: a damaged database is kept aside; a missing one is created", () =>
    Effect.gen(function* () {
      const { database, file, folder, one } = yield* prepared
      yield* Backup.backup({ database, file })
      writeFileSync(database, "damaged ".repeat(1000))
      // A log that is left would be applied to the new database.
      writeFileSync(`${database}-wal`, "log")
      const { aside = "" } = yield* Backup.restore({ database, file })
      assert.strictEqual((yield* eventsIn(database, one)).length, 4)
      assert.include(readFileSync(aside, "utf8"), "damaged")
      assert.isFalse(existsSync(`${database}-journal`))
      const created = join(folder, "new.db")
      const result = yield* Backup.restore({ database: created, file })
      assert.isUndefined(result.aside)
      assert.strictEqual((yield* eventsIn(created, one)).length, 4)
      assert.strictEqual(statSync(created).mode & 0o777, 0o600)
    })
  )

  it.live("ST-43, ST-48: after kills at random operations every name holds a whole database", () =>
    Effect.map(survives(4, 7), (kills) => assert.isAbove(kills, 1))
  )
})
