/** Pruning to a size, for each place of a log. Spec: RT-32 in specs/log.md, PG-46 in specs/postgres.md. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { atOnce } from "../../../packages/log/src/retention/Pace.ts"
import * as Retention from "../../../packages/log/src/retention/Retention.ts"
import * as Space from "../../../packages/log/src/retention/Space.ts"
import type { LogLayer } from "../../support/Database.ts"
import { session } from "../../support/Logs.ts"
import { begun } from "../../support/Pruning.ts"

const firstOf = (id: SessionID) => Effect.flatMap(EventLog, (log) => Effect.exit(log.read({ sessionID: id, limit: 1 })))

export const fittingSize = (layer: LogLayer) => {
  it.scopedLive(
    "RT-32: with a size, pruning ends as soon as the database fits; the sessions used last keep their events",
    () =>
      Effect.gen(function* () {
        const [sql, holders] = [yield* SqlClient.SqlClient, Retention.noHolders]
        const ids = ["a", "b", "c", "d"].map((name) => session(name))
        for (const id of ids) yield* begun(id, 30, 300)
        const used = yield* Space.usedBytes(sql)
        const wanted = Math.round(used * 0.8)
        const planned = yield* Stream.runCount(Retention.plan({ maxSize: wanted, holders }))
        assert.isTrue(planned > 0 && planned < 4, `${planned}`)
        const sizes: Array<number> = []
        const outcome = yield* Retention.run(
          { maxSize: wanted, holders },
          {
            pace: atOnce,
            pruned: () => Effect.orDie(Effect.map(Space.usedBytes(sql), (bytes) => void sizes.push(bytes)))
          }
        )
        assert.isAtMost(outcome.after, wanted)
        assert.isAbove(outcome.before, wanted)
        // None was pruned that was not needed.
        assert.deepStrictEqual(
          sizes.map((bytes) => bytes <= wanted),
          sizes.map((_, index) => index === outcome.sessions - 1)
        )
        const firsts = yield* Effect.forEach(ids, firstOf)
        assert.deepStrictEqual(
          firsts.map(({ _tag }) => _tag),
          ids.map((_, index) => (index < outcome.sessions ? "Failure" : "Success"))
        )
        const again = yield* Retention.run({ maxSize: wanted, holders }, { pace: atOnce })
        assert.deepInclude(again, { sessions: 0, before: again.after })
        const small = yield* Retention.run({ maxSize: 1, holders }, { pace: atOnce })
        assert.deepInclude(small, { sessions: ids.length - outcome.sessions })
        assert.isAbove(small.after, 1)
      }).pipe(Effect.provide(Layer.fresh(layer)))
  )
}
