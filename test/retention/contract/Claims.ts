/** Deletes the events below a raised floor while a restore, a new session with the id, or another prune comes in between. */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Chunk, Deferred, Effect, Exit, Scope, Stream } from "effect"
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import * as Doctor from "../../../packages/log/src/maintenance/Doctor.ts"
import { atOnce } from "../../../packages/log/src/retention/Pace.ts"
import { selectSubject } from "../../../packages/log/src/retention/Plan.ts"
import { finish, prune } from "../../../packages/log/src/retention/Prune.ts"
import { noHolders, restore, run } from "../../../packages/log/src/retention/Retention.ts"
import { type LogLayer, temporaryFolder } from "../../support/Database.ts"
import { contents, readAll, rowsOf, session } from "../../support/Logs.ts"
import { begun, cutWithin } from "../../support/Pruning.ts"

/** Prunes a session of more than one step, and runs the other work once, after the first step that deletes events. */
const prunedWith = Effect.fnUntraced(function* <E, R>(
  id: SessionID,
  archive: string,
  other: Effect.Effect<unknown, E, R>
) {
  const context = yield* Effect.context<R>()
  const once = yield* Effect.once(Effect.orDie(Effect.provide(other, context)))
  yield* prune(yield* cutWithin(id), {
    pace: atOnce,
    archive,
    progress: ({ deleted }) => (deleted > 0 ? once : Effect.void)
  })
})

const archiveIn = (folder: string) => join(folder, readdirSync(folder)[0] ?? "")

export const claims = (layer: LogLayer) => {
  it.scoped("RT-18: a restore while the prune deletes gives every event back", () =>
    Effect.gen(function* () {
      const [folder, id] = [yield* temporaryFolder, session()]
      yield* begun(id, 40)
      const before = yield* contents
      yield* prunedWith(
        id,
        folder,
        Effect.suspend(() => restore(archiveIn(folder), { pace: atOnce }))
      )
      assert.deepStrictEqual(yield* contents, before)
    }).pipe(Effect.provide(layer))
  )

  it.scoped("RT-18: a session that is created again while the prune deletes keeps its events", () =>
    Effect.gen(function* () {
      const [folder, id, log] = [yield* temporaryFolder, session(), yield* EventLog]
      yield* begun(id, 40)
      yield* prunedWith(id, folder, Effect.zipRight(log.remove(id), begun(id, 3)))
      const head = yield* log.latest(id)
      assert.strictEqual((yield* readAll(id)).length, head + 1)
    }).pipe(Effect.provide(layer))
  )

  it.scoped("RT-18: a restore from which another run takes the session is refused, and the session stays pruned", () =>
    Effect.gen(function* () {
      const [folder, id] = [yield* temporaryFolder, session()]
      yield* begun(id, 40)
      yield* prune(yield* cutWithin(id), { pace: atOnce, archive: folder })
      const pruned = yield* contents
      const [deleting, restored] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const context = yield* Effect.context<Effect.Effect.Context<ReturnType<typeof finish>>>()
      const progress = () => Effect.zipRight(Deferred.succeed(deleting, undefined), Deferred.await(restored))
      // Between two steps of the restore the other run deletes the restored events. Then it waits for the restore.
      const other = yield* Effect.once(
        Effect.zipRight(
          Effect.forkScoped(Effect.provide(finish(id, { pace: atOnce, progress }), context)),
          Deferred.await(deleting)
        )
      )
      const scope = yield* Effect.scope
      const error = yield* restore(archiveIn(folder), {
        pace: atOnce,
        progress: () => Scope.extend(other, scope)
      }).pipe(Effect.flip, Effect.ensuring(Deferred.succeed(restored, undefined)))
      assert.strictEqual(error._tag, "PruneLost")
      yield* finish(id, { pace: atOnce })
      assert.deepStrictEqual(yield* contents, pruned)
    }).pipe(Effect.provide(layer))
  )

  it.scoped(
    "RT-11: a prune that stops after any step leaves all or a pruned session, and the next run finishes it",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const findings = Effect.map(Stream.runCollect(Doctor.verify), Chunk.toReadonlyArray)
        for (let [stop, isStopped] = [0, true]; isStopped; stop += 1) {
          const id = session()
          yield* begun(id, 14, 2)
          const [cut, all] = [yield* cutWithin(id), yield* readAll(id)]
          let steps = 0
          const progress = () => Effect.suspend(() => (steps++ === stop ? Effect.interrupt : Effect.void))
          isStopped = Exit.isFailure(yield* Effect.exit(prune(cut, { pace: atOnce, progress })))
          const floor = (yield* selectSubject(sql, id))?.floor ?? Number.NaN
          assert.include([-1, cut.to], floor)
          assert.deepStrictEqual(yield* readAll(id, floor), all.slice(floor + 1))
          assert.deepStrictEqual(yield* findings, [])
          yield* run({ to: Number.MAX_SAFE_INTEGER, holders: noHolders }, { pace: atOnce })
          assert.strictEqual((yield* selectSubject(sql, id))?.floor, cut.to)
          assert.deepStrictEqual(yield* rowsOf(id), [])
          assert.deepStrictEqual(yield* sql`SELECT session_id FROM session_floor WHERE claim IS NOT NULL`, [])
          assert.deepStrictEqual(yield* findings, [])
        }
      }).pipe(Effect.provide(layer))
  )
}
