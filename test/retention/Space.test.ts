/** After a prune the file shrinks, in small steps, and the contract `Size.ts`. Spec: specs/log.md. */
import { statSync } from "node:fs"
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Effect, Layer } from "effect"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { atOnce } from "../../packages/log/src/retention/Pace.ts"
import * as Retention from "../../packages/log/src/retention/Retention.ts"
import * as Space from "../../packages/log/src/retention/Space.ts"
import * as Database from "../../packages/log/src/storage/Database.ts"
import { logAt, temporaryDatabase } from "../support/Database.ts"
import { renamed, session } from "../support/Logs.ts"
import { begun } from "../support/Pruning.ts"
import { fittingSize } from "./contract/Size.ts"

const holders = () => Effect.succeed([])

it.scoped("RT-30: after a prune the file has no free pages, and is smaller by what was removed", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      const [log, sql] = [yield* EventLog, yield* SqlClient.SqlClient]
      const ids = [session(), session(), session()]
      for (const id of ids) yield* begun(id, 60, 60)
      yield* sql`PRAGMA wal_checkpoint(TRUNCATE)`
      const before = statSync(filename).size
      const steps: Array<number> = []
      const outcome = yield* Retention.run(
        { keep: 0, holders },
        {
          pace: atOnce,
          // Between two steps others write.
          freed: (pages) =>
            Effect.zipRight(
              Effect.sync(() => steps.push(pages)),
              Effect.orDie(log.append(ids[0] ?? session(), [renamed("meanwhile")]))
            )
        }
      )
      assert.deepInclude(outcome, { sessions: 0, events: 0 })
      const all = yield* Retention.run(
        { to: Number.MAX_SAFE_INTEGER, holders },
        { pace: atOnce, freed: (pages) => Effect.sync(() => steps.push(pages)) }
      )
      assert.deepInclude(all, { sessions: 3, failed: [] })
      assert.isAbove(steps.length, 1)
      assert.isAtMost(Math.max(...steps), 64)
      const space = yield* Space.measure(sql)
      assert.strictEqual(space.freePages, 0)
      assert.isBelow(statSync(filename).size, before)
      assert.strictEqual(statSync(filename).size, space.pages * space.pageSize)
      assert.strictEqual(all.after, statSync(filename).size)
    }).pipe(Effect.provide(logAt(filename)))
  })
)

it.scoped("RT-34: the deletions of a prune leave little in the write-ahead log for one commit to copy", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    // Closing the database deletes its write-ahead log.
    yield* Effect.provide(begun(session("a"), 70, 70_000), logAt(filename))
    assert.isAbove(statSync(filename).size, Database.walLimit / 2)
    let longest = 0
    const progress = () => Effect.sync(() => (longest = Math.max(longest, statSync(`${filename}-wal`).size)))
    yield* Effect.provide(
      Retention.run({ to: Number.MAX_SAFE_INTEGER, holders }, { pace: atOnce, progress }),
      logAt(filename)
    )
    // SQLite's own checkpoint comes at half of the limit.
    assert.isBelow(longest, Database.walLimit / 3)
  })
)

it.scoped("RT-33: a database that cannot give pages back keeps them free, and the prune ends", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    yield* Effect.provide(begun(session("a"), 40, 60), logAt(filename))
    const shell = new Sqlite(filename)
    shell.exec("PRAGMA auto_vacuum = NONE; VACUUM")
    shell.close()
    const outcome = yield* Retention.run({ to: Number.MAX_SAFE_INTEGER, holders }, { pace: atOnce }).pipe(
      Effect.zip(Effect.flatMap(SqlClient.SqlClient, Space.measure)),
      Effect.provide(logAt(filename))
    )
    assert.deepInclude(outcome[0], { sessions: 1, failed: [] })
    assert.isAbove(outcome[1].freePages, 0)
  })
)

fittingSize(Layer.unwrapScoped(Effect.map(temporaryDatabase, logAt)))
