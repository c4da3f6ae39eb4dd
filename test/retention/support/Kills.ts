/** Kills processes that prune and restore at random steps, and checks that nothing is lost and nothing half. */
import { fork } from "node:child_process"
import { copyFileSync, existsSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { SqlClient } from "@effect/sql"
import { assert } from "@effect/vitest"
import { Chunk, Effect, Random, Stream } from "effect"
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import * as Doctor from "../../../packages/log/src/maintenance/Doctor.ts"
import * as Archive from "../../../packages/log/src/retention/Archive.ts"
import { atOnce } from "../../../packages/log/src/retention/Pace.ts"
import * as Retention from "../../../packages/log/src/retention/Retention.ts"
import { restore } from "../../../packages/log/src/retention/Retention.ts"
import * as Store from "../../../packages/log/src/Store.ts"
import { temporaryFolder } from "../../support/Database.ts"
import { contents, readAll, session } from "../../support/Logs.ts"
import { program } from "../../support/Program.ts"
import { begun, cutWithin } from "../../support/Pruning.ts"
import { readModels } from "../../support/ReadModels.ts"

const here = fileURLToPath(new URL(".", import.meta.url))

/** Runs the child; kills it after so many steps. Returns the number of its steps. */
const run = (program: string, words: ReadonlyArray<string>, kill: number) =>
  Effect.async<number>((resume) => {
    const child = fork(program, [...words], { stdio: "inherit", execArgv: [] })
    let steps = 0
    const count = () => {
      if (steps++ === kill) child.kill("SIGKILL")
    }
    child.on("message", count)
    child.on("exit", () => resume(Effect.succeed(steps)))
    if (kill < 0) child.on("spawn", () => child.kill("SIGKILL"))
  })

const names = ["a", "b", "c"].map(session)

/** What the template shows above the planned floors, and all of its events. */
const recorded = Effect.forEach(names, (id) =>
  Effect.gen(function* () {
    const { to } = yield* cutWithin(id)
    const events = yield* readAll(id)
    return { id, to, events, shown: yield* readModels(id, { after: to, inputs: [] }) }
  })
)
type Recorded = Effect.Effect.Success<typeof recorded>

const floorOf = Effect.fnUntraced(function* (sessionID: SessionID) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{
    readonly floor: number
  }>`SELECT floor FROM event_sequence WHERE session_id = ${sessionID}`
  return row?.floor ?? Number.NaN
})

/** The archives in a folder; none if the process was killed before it made the folder. */
const archivesIn = (folder: string) =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => name.endsWith(".jsonl.gz"))
        .map((name) => join(folder, name))
    : []

/** Everything is as before or pruned; archives are whole. */
const nothingHalf = Effect.fnUntraced(function* (before: Recorded, archives: string, checkup: boolean) {
  const log = yield* EventLog
  for (const { events, id, shown, to } of before) {
    const floor = yield* floorOf(id)
    assert.include([-1, to], floor)
    assert.deepStrictEqual(yield* readAll(id, floor), events.slice(floor + 1))
    assert.deepStrictEqual(yield* readModels(id, { after: to, inputs: [] }), shown)
    assert.strictEqual(yield* log.latest(id), events.length - 1)
  }
  for (const path of archivesIn(archives)) {
    const { header, events } = yield* Archive.read(path)
    const ids = (yield* Stream.runCollect(events))
      .pipe(Chunk.toReadonlyArray)
      .flat()
      .map(({ id }) => id)
    const whole = before.find(({ id }) => id === header.sessionID)?.events.slice(0, header.to + 1)
    assert.deepStrictEqual(
      ids,
      whole?.map(({ id }) => id as string)
    )
  }
  if (checkup) assert.deepStrictEqual(Chunk.toReadonlyArray(yield* Stream.runCollect(Doctor.verify)), [])
})

/** Another run finishes a prune that was killed, and its archives give the first state back. */
const finishes = Effect.fnUntraced(function* (before: Recorded, first: unknown, archives: string) {
  const sql = yield* SqlClient.SqlClient
  const request = { to: Number.MAX_SAFE_INTEGER, holders: Retention.noHolders }
  yield* Retention.run(request, { pace: atOnce, archive: archives })
  for (const { id, to } of before) {
    assert.strictEqual(yield* floorOf(id), to)
    assert.deepStrictEqual(
      yield* sql`SELECT e.seq FROM event e JOIN event_sequence h USING (session)
        WHERE h.session_id = ${id} AND e.seq <= ${to}`,
      []
    )
  }
  assert.deepStrictEqual(yield* sql`PRAGMA freelist_count`, [{ freelist_count: 0 }])
  for (const path of archivesIn(archives)) yield* restore(path, { pace: atOnce })
  assert.deepStrictEqual(yield* contents, first)
})

/** Kills a process that prunes, or one that restores, so many times. */
export const survives = (kills: number, seed: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const [pruning, template] = [yield* program(join(here, "pruneChild.ts")), join(folder, "template.db")]
      const at = (filename: string) => Store.layer({ filename })
      const [before, first] = yield* Effect.forEach(names, (id) => begun(id, 10, 10)).pipe(
        Effect.zipRight(Effect.all([recorded, contents])),
        Effect.provide(at(template))
      )
      const all = yield* Effect.gen(function* () {
        copyFileSync(template, join(folder, "whole.db"))
        return yield* run(pruning, [join(folder, "whole.db"), join(folder, "whole")], Number.MAX_SAFE_INTEGER)
      })
      for (let kill = 0; kill < kills; kill++) {
        const [filename, archives] = [join(folder, `${kill}.db`), join(folder, `archives-${kill}`)]
        const restoring = kill % 3 === 2
        copyFileSync(restoring ? join(folder, "whole.db") : template, filename)
        const words = restoring ? archivesIn(join(folder, "whole")) : []
        const step = yield* Random.nextIntBetween(0, restoring ? words.length * 2 : all)
        yield* run(pruning, [filename, restoring ? join(folder, "whole") : archives, ...words], step)
        const kept = restoring ? join(folder, "whole") : archives
        yield* Effect.gen(function* () {
          yield* nothingHalf(before, kept, kill % 5 === 0)
          if (kill % 5 === 0 && !restoring) yield* finishes(before, first, archives)
        }).pipe(
          Effect.provide(at(filename)),
          Effect.tapErrorCause(() => Effect.sync(() => console.log(`kill ${kill} at step ${step}, seed ${seed}`)))
        )
        for (const end of ["", "-wal", "-shm"]) rmSync(`${filename}${end}`, { force: true })
      }
    }).pipe(Effect.withRandom(Random.make(seed)))
  )
